/* SPDX-License-Identifier: MIT */
/* Loads a module as a multiboot 1 loader would: by the header's addresses, or by its ELF program
 * headers. Source: Multiboot Specification 0.6.96 "The layout of Multiboot header", "Machine
 * state". */
#include "boot/payload.h"
#include "boot/multiboot.h"
#include "boot/space.h"
#include "hal/machine/acpi.h"
#include "hal/machine/smp.h"
#include "kernel/base/cpu.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "pmu/virt/virt.h"

#define HEADER_MAGIC 0x1badb002u
#define HEADER_SEARCH 8192
#define HEADER_ADDRESSES (1u << 16)
#define HEADER_UNKNOWN                                                                             \
    0xfff8u /* required features that we lack: all but alignment, memory, video (ignored) */
#define ELF_MAGIC 0x464c457fu
#define PT_LOAD 1
#define APIC_ID_LAST 254u
#define HIGHEST (1ul << 32) /* what 32-bit code can reach */

static const char loader_name[] = "ntpmu";

/* What the guest is told, where QEMU's loader puts it: a guest may map only low memory at first. As
 * there, an image that lies here takes its place. */
#define LOW 0x9000u
#define LOW_MAP_MAX 53
#define LOW_STRINGS (BOOT_MODULES_MAX * BOOT_LINE_MAX)
#define DEVICE_UNKNOWN 0x8000ffffu /* the first disk */

struct header {
    uint32_t magic, flags, checksum, header_addr, load_addr, load_end_addr, bss_end_addr,
        entry_addr;
};

/* 32 or 64 bits: class 1 or 2. */
struct elf {
    uint32_t magic;
    uint8_t class, rest[11];
    uint16_t type, machine;
    uint32_t version;
    union {
        struct {
            uint32_t entry, phoff, shoff, flags;
            uint16_t ehsize, phentsize, phnum;
        } narrow;
        struct {
            uint64_t entry, phoff, shoff;
            uint32_t flags;
            uint16_t ehsize, phentsize, phnum;
        } wide;
    };
};

struct segment32 {
    uint32_t type, offset, vaddr, paddr, filesz, memsz, flags, align;
};

struct segment64 {
    uint32_t type, flags;
    uint64_t offset, vaddr, paddr, filesz, memsz, align;
};

struct low {
    struct mb1_map_entry map[LOW_MAP_MAX];
    uint64_t unused;
    struct mb1_info info;
    uint32_t drives[2], config, loader_name; /* of info */
    struct mb1_module modules[BOOT_MODULES_MAX];
    char strings[LOW_STRINGS + sizeof loader_name];
};
_Static_assert(offsetof(struct low, info) == 0x500, "where QEMU's loader has it");
#define LOW_ADDRESS(member) (LOW + (uint32_t)offsetof(struct low, member))

static const struct header *find_header(const uint8_t *image, uint32_t size)
{
    for (uint32_t i = 0; i + 12 <= size && i < HEADER_SEARCH; i += 4) {
        const struct header *h = (const void *)(image + i);
        if (h->magic == HEADER_MAGIC && h->magic + h->flags + h->checksum == 0)
            return h;
    }
    return NULL;
}

static bool load_flat(const struct boot_info *boot, const uint8_t *image, uint32_t size,
                      const struct header *h, uint32_t *entry)
{
    uint64_t before = h->header_addr - h->load_addr,
             offset = (uint64_t)((const uint8_t *)h - image);
    if (h->header_addr < h->load_addr || before > offset ||
        (h->load_end_addr && h->load_end_addr < h->load_addr)) {
        print("# payload: its multiboot header's addresses make no sense\n");
        return false;
    }
    uint64_t bytes = h->load_end_addr ? h->load_end_addr - h->load_addr : size - (offset - before);
    if (bytes > size - (offset - before)) {
        print("# payload: the file is shorter than its header says\n");
        return false;
    }
    uint64_t whole =
        h->bss_end_addr > h->load_addr + bytes ? h->bss_end_addr - h->load_addr : bytes;
    *entry = h->entry_addr;
    return space_place(boot, image + (offset - before), bytes, h->load_addr, whole, 0);
}

/* One program header of either kind; loads what it says. */
static bool load_segment(const struct boot_info *boot, const uint8_t *image, uint32_t size,
                         const void *at, bool wide)
{
    const struct segment32 *s = at;
    struct segment64 t = *(const struct segment64 *)at;
    if (!wide)
        t = (struct segment64){ s->type, 0, s->offset, 0, s->paddr, s->filesz, s->memsz, 0 };
    if (t.filesz > size || t.offset > size - t.filesz || t.memsz < t.filesz) {
        print("# payload: its ELF program headers lead out of the file\n");
        return false;
    }
    if (t.paddr >= HIGHEST || t.memsz >= HIGHEST) {
        print("# payload: wants to be loaded above 4 GB\n");
        return false;
    }
    return t.type != PT_LOAD || !t.memsz ||
           space_place(boot, image + t.offset, t.filesz, t.paddr, t.memsz, 0);
}

static bool load_elf(const struct boot_info *boot, const uint8_t *image, uint32_t size,
                     uint32_t *entry)
{
    const struct elf *elf = (const void *)image;
    if (size < sizeof *elf || elf->magic != ELF_MAGIC || (elf->class != 1 && elf->class != 2)) {
        print("# payload: neither an ELF file nor a multiboot header with addresses\n");
        return false;
    }
    bool wide = elf->class == 2;
    uint64_t offset = wide ? elf->wide.phoff : elf->narrow.phoff;
    unsigned n = wide ? elf->wide.phnum : elf->narrow.phnum;
    unsigned step = wide ? elf->wide.phentsize : elf->narrow.phentsize;
    for (; n--; offset += step) {
        if (offset > size || sizeof(struct segment64) > size - offset) {
            print("# payload: its ELF program headers lead out of the file\n");
            return false;
        }
        if (!load_segment(boot, image, size, image + offset, wide))
            return false;
    }
    *entry = (uint32_t)(wide ? elf->wide.entry : elf->narrow.entry);
    return true;
}

static void make_map(struct low *low)
{
    struct mb1_info *info = &low->info;
    struct space_range r;
    unsigned n;
    for (n = 0; n < LOW_MAP_MAX && space_range(n, &r); n++) {
        low->map[n] = (struct mb1_map_entry){ sizeof low->map[0] - sizeof low->map[0].size, r.start,
                                              r.end - r.start, r.type };
        if (r.type == BOOT_RAM && r.start == 0)
            info->mem_lower = (uint32_t)(r.end >> 10);
        if (r.type == BOOT_RAM && r.start == 1 << 20)
            info->mem_upper = (uint32_t)((r.end - r.start) >> 10);
    }
    info->mmap_addr = LOW_ADDRESS(map);
    info->mmap_length = n * sizeof low->map[0];
}

/* The string's address for the guest; *used: characters of low->strings. */
static uint32_t add_string(struct low *low, unsigned *used, const char *string)
{
    unsigned at = *used;
    *used += (unsigned)strlen(string) + 1;
    memcpy(low->strings + at, string, *used - at);
    return LOW_ADDRESS(strings) + at;
}

/* The modules after the first are the guest's. */
static bool make_info(const struct boot_info *boot)
{
    struct low *low = (struct low *)space_at(LOW);
    unsigned used = 0;
    if (!space_place(boot, low, 0, LOW, sizeof *low, 0))
        return false;
    low->info = (struct mb1_info){ .flags = MB1_HAS_MEMORY | MB1_HAS_DEVICE | MB1_HAS_LINE |
                                            MB1_HAS_MAP | MB1_HAS_MODULES | MB1_HAS_NAME,
                                   .boot_device = DEVICE_UNKNOWN,
                                   .cmdline = add_string(low, &used, boot->modules[0].line),
                                   .mods_count = boot->module_count - 1,
                                   .mods_addr = LOW_ADDRESS(modules) };
    low->loader_name = add_string(low, &used, loader_name);
    for (unsigned i = 1; i < boot->module_count; i++)
        low->modules[i - 1] =
            (struct mb1_module){ boot->modules[i].start, boot->modules[i].end,
                                 add_string(low, &used, boot->modules[i].line), 0 };
    make_map(low);
    return true;
}

static bool load_multiboot(const struct boot_info *boot, struct virt_payload *payload)
{
    const uint8_t *image = space_at(boot->modules[0].start);
    uint32_t size = boot->modules[0].end - boot->modules[0].start;
    const struct header *h = find_header(image, size);
    uint32_t entry;
    if (!h)
        print("# payload: the module has no multiboot 1 header, and is no Linux\n");
    else if (h->flags & HEADER_UNKNOWN)
        print("# payload: it requires multiboot features %x\n", h->flags & HEADER_UNKNOWN);
    if (!h || (h->flags & HEADER_UNKNOWN))
        return false;
    if (!make_info(boot) || !(h->flags & HEADER_ADDRESSES ? load_flat(boot, image, size, h, &entry)
                                                          : load_elf(boot, image, size, &entry)))
        return false;
    payload->entry = entry;
    payload->info = LOW_ADDRESS(info);
    return true;
}

/* Those that the local APIC's own registers reach. Before we move: ACPI's tables are the guest's,
 * and stay. */
static void find_cpus(const struct boot_info *boot, struct virt_payload *payload)
{
    static struct acpi_info acpi;
    cpu_detect();
    acpi_read(boot, &acpi);
    payload->apic_ids = acpi.apic_ids;
    payload->start_page = smp_free_page(boot);
    for (unsigned i = 0; i < acpi.apic_count && payload->cpu_count < MAX_CPUS; i++)
        if (acpi.apic_ids[i] <= APIC_ID_LAST)
            acpi.apic_ids[payload->cpu_count++] = acpi.apic_ids[i];
    payload->cpu_size = payload->cpu_count > 1 ? virt_cpu_pages() * PAGE_SIZE : 0;
}

bool payload_load(struct boot_info *boot, struct virt_payload *payload)
{
    if (!boot->module_count) {
        print("# payload: the loader brought no module\n");
        return false;
    }
    find_cpus(boot, payload);
    if (!space_make(boot, (uint64_t)payload->cpu_count * payload->cpu_size))
        return false;
    payload->end = space_end();
    payload->cpu_pages = space_more();
    return linux_is(boot) ? linux_load(boot, payload) : load_multiboot(boot, payload);
}
