/* SPDX-License-Identifier: MIT */
/* image_mutex guards what image_prepare writes; the list itself is made at boot. */
#include "kernel/ke/copy.h"
#include "kernel/image/image.h"
#include "kernel/base/assert.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/ke/memory.h"
#include "kernel/ke/mutex.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

#define IMAGES_MAX (BOOT_MODULES_MAX + 16u) /* those and the kernel's own */
#define MOVED_FROM 0x7ff000000000ul         /* where images go whose own place is taken */

/* kernel/image/images.asm */
struct linked_image {
    const char *name;
    const uint8_t *start, *end;
};
extern const struct linked_image linked_images[];

static struct image images[IMAGES_MAX];
static unsigned count, linked;
static struct mutex image_mutex = MUTEX("images");

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

/* The program's name, without folders. */
static void set_name(struct image *image, const char *line)
{
    unsigned n = 0;
    for (const char *p = line; *p && *p != ' '; p++) {
        if (*p == '/' || *p == '\\')
            n = 0;
        else if (n < IMAGE_NAME_MAX - 1)
            image->name[n++] = lower(*p);
    }
    image->name[n] = 0;
}

static void add_image(const char *line, const uint8_t *file, size_t size)
{
    ASSERT(count < IMAGES_MAX);
    struct image *image = &images[count++];
    set_name(image, line);
    image->file = file;
    image->file_size = size;
}

void image_init(const struct boot_info *info)
{
    for (const struct linked_image *l = linked_images; l->name; l++)
        add_image(l->name, l->start, (size_t)(l->end - l->start));
    linked = count;
    for (unsigned i = 0; i < info->module_count; i++) {
        const struct boot_module *m = &info->modules[i];
        add_image(m->line, phys_to_virt(m->start), m->end - m->start);
    }
}

struct image *image_module(unsigned n) { return n < count - linked ? &images[linked + n] : NULL; }

const struct image *image_laid_out(unsigned n)
{
    for (unsigned i = 0; i < count; i++)
        if (images[i].pages && n-- == 0)
            return &images[i];
    return NULL;
}

static struct image *find_among(unsigned from, unsigned end, const char *name, size_t length)
{
    for (unsigned i = from; i < end; i++) {
        size_t n = 0;
        while (n < length && images[i].name[n] && images[i].name[n] == lower(name[n]))
            n++;
        if (n == length && !images[i].name[n])
            return &images[i];
    }
    return NULL;
}

struct image *image_find(const char *name, size_t length)
{
    return find_among(0, count, name, length);
}

/* --- Preparing. --- */

static bool is_taken(uint64_t base, uint64_t size)
{
    for (unsigned i = 0; i < count; i++)
        if (images[i].pages && base < images[i].base + images[i].pe.size &&
            images[i].base < base + size)
            return true;
    return false;
}

static uint64_t choose_base(const struct pe *pe)
{
    uint64_t base = pe->base;
    if (base >= MEMORY_LOWEST && base < (uint64_t)USER_END - pe->size && !is_taken(base, pe->size))
        return base;
    for (base = MOVED_FROM; is_taken(base, pe->size);)
        base += PE_SIZE_MAX;
    return base;
}

static const char *prepare_sections(struct image *image)
{
    const struct pe *pe = &image->pe;
    const char *wrong = pe_open(&image->pe, image->file, image->file_size);
    if (wrong)
        return wrong;
    uint64_t base = choose_base(pe);
    uint8_t *pages = phys_alloc(pe->size / PAGE_SIZE);
    if (!pages)
        return "needs more memory than there is: MEMORY= gives the machine more";
    pe_lay_out(pe, image->file, pages);
    wrong = pe_relocate(pe, pages, base - pe->base);
    if (wrong) {
        phys_free(pages, pe->size / PAGE_SIZE);
        return wrong;
    }
    image->base = base;
    image->pages = pages;
    return NULL;
}

const char *image_prepare(struct image *image)
{
    mutex_acquire(&image_mutex);
    if (!image->pages && !image->wrong)
        image->wrong = prepare_sections(image);
    mutex_release(&image_mutex);
    return image->wrong;
}

/* --- Mapping. --- */

/* What page table entries of this page say: the headers and what is between sections is read-only
 * and zero. */
static uint64_t page_flags(const struct image *image, uint32_t rva)
{
    for (unsigned i = 0; i < image->pe.sections; i++) {
        struct pe_section s = pe_section(&image->pe, image->file, i);
        if (rva >= s.rva && rva - s.rva < s.size)
            return PTE_PRESENT | PTE_USER | (s.writable ? PTE_WRITE : 0) |
                   (s.executable ? 0 : PTE_NX);
    }
    return PTE_PRESENT | PTE_USER | PTE_NX;
}

/* Writable pages become the process's own. */
static bool map_shared(const struct image *image, struct process *process)
{
    for (uint32_t rva = 0; rva < image->pe.size; rva += PAGE_SIZE) {
        uint64_t flags = page_flags(image, rva);
        uint8_t *page = image->pages + rva;
        if (flags & PTE_WRITE) {
            page = phys_alloc(1);
            if (!page)
                return false;
            memcpy(page, image->pages + rva, PAGE_SIZE);
        } else {
            phys_hold(virt_to_phys(page));
            flags |= PTE_SHARED;
        }
        if (!vm_put(process->pml4, image->base + rva, virt_to_phys(page) | flags)) {
            phys_free(page, 1);
            return false;
        }
    }
    return true;
}

/* At another address than others have it, nothing can be shared. */
static bool map_moved(const struct image *image, struct process *process, uint64_t base)
{
    uint8_t *pages = phys_alloc(image->pe.size / PAGE_SIZE);
    if (!pages)
        return false;
    memcpy(pages, image->pages, image->pe.size);
    const char *wrong = pe_relocate(&image->pe, pages, base - image->base);
    for (uint32_t rva = 0; rva < image->pe.size; rva += PAGE_SIZE)
        if (wrong || !vm_put(process->pml4, base + rva,
                             virt_to_phys(pages + rva) | page_flags(image, rva))) {
            phys_free(pages + rva, (image->pe.size - rva) / PAGE_SIZE);
            return false;
        }
    return true;
}

NTSTATUS image_map(struct image *image, struct process *process, uint64_t *base)
{
    *base = image->base;
    NTSTATUS status =
        memory_reserve(process, base, image->pe.size, REGION_IMAGE, PAGE_EXECUTE_WRITECOPY);
    if (status == STATUS_CONFLICTING_ADDRESSES && !(image->pe.flags & PE_NO_RELOCATIONS)) {
        *base = 0;
        status =
            memory_reserve(process, base, image->pe.size, REGION_IMAGE, PAGE_EXECUTE_WRITECOPY);
    }
    if (!NT_SUCCESS(status))
        return status;
    bool mapped =
        *base == image->base ? map_shared(image, process) : map_moved(image, process, *base);
    if (!mapped)
        memory_release(process, *base);
    return mapped ? STATUS_SUCCESS : STATUS_NO_MEMORY;
}

const struct image *image_at(const struct process *process, uint64_t address)
{
    for (unsigned i = 0; i < count; i++)
        if (images[i].pages && address >= images[i].base &&
            address - images[i].base < images[i].pe.size)
            return vm_entry(process->pml4, images[i].base) ? &images[i] : NULL;
    return NULL;
}

uint64_t image_export(const struct image *image, const char *name)
{
    uint32_t rva;
    const char *forward;
    bool found = pe_export(&image->pe, image->pages, name, 0, &rva, &forward) && !forward;
    return found ? image->base + rva : 0;
}

NTSTATUS load_image(PCSTR Name, SIZE_T Length, PVOID *Base, PSIZE_T Size)
{
    char name[IMAGE_NAME_MAX];
    uint64_t base = 0;
    if (Length >= sizeof name)
        return STATUS_DLL_NOT_FOUND;
    NTSTATUS status = copy_in(name, Name, Length);
    if (NT_SUCCESS(status))
        status = copy_probe(Base, sizeof base);
    if (!NT_SUCCESS(status))
        return status;
    struct image *image = find_among(linked, count, name, Length); /* the program's own folder */
    if (!image)
        image = find_among(0, linked, name, Length);
    if (!image)
        return STATUS_DLL_NOT_FOUND;
    const char *wrong = image_prepare(image);
    if (wrong) {
        print("# %s %s\n", image->name, wrong);
        return STATUS_INVALID_IMAGE_FORMAT;
    }
    status = image_map(image, thread_current()->process, &base);
    SIZE_T size = image->pe.size;
    if (NT_SUCCESS(status))
        status = copy_out(Size, &size, sizeof size);
    return NT_SUCCESS(status) ? copy_out(Base, &base, sizeof base) : status;
}
