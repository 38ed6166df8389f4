/* SPDX-License-Identifier: MIT */
#include "kernel/image/program.h"
#include "kernel/base/cpu.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/image/image.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt_process.h"

#define STACK_LEAST 0x10000ul
#define STACK_MOST 0x10000000ul
#define COMMIT_LEAST 0x10000ul

static uint64_t within(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least  ? least
           : value > most ? most
                          : (value + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
}

static void copy_text(char *to, const char *from, size_t capacity)
{
    size_t n = strlen(from);
    memcpy(to, from, n < capacity ? n : capacity - 1);
}

/* The PEB with what ntdll's loader has to know. */
static bool make_peb(struct process *process, const struct image *image, uint64_t base,
                     const struct image *ntdll, uint64_t ntdll_base, const char *line)
{
    static const struct peb template = { .major = WINDOWS_MAJOR,
                                         .build = WINDOWS_BUILD,
                                         .platform = WINDOWS_PLATFORM };
    struct peb peb = template;
    struct start_information start = { image->pe.size, ntdll_base, ntdll->pe.size, "", "" };
    uint64_t at = memory_system(process, PEB_SIZE);
    peb.image_base = (void *)base;
    peb.processors = cpu_count;
    peb.image_subsystem = image->pe.subsystem;
    copy_text(start.name, image->name, sizeof start.name);
    copy_text(start.line, line, sizeof start.line);
    process->peb = at;
    return at && process_write(process, at, &peb, sizeof peb) &&
           process_write(process, at + START_AT, &start, sizeof start);
}

static const char *fill_process(struct process *process, struct image *image, struct image *ntdll,
                                const char *line)
{
    uint64_t base, ntdll_base;
    const struct pe *pe = &image->pe;
    if (!NT_SUCCESS(image_map(ntdll, process, &ntdll_base)) ||
        !NT_SUCCESS(image_map(image, process, &base)) ||
        !make_peb(process, image, base, ntdll, ntdll_base, line))
        return "does not fit into memory: MEMORY= gives the machine more";
    process->fault_ends_all = true;
    process->start = base + pe->entry;
    process->stack_reserve = within(pe->stack_reserve, STACK_LEAST, STACK_MOST);
    process->stack_commit = within(pe->stack_commit, COMMIT_LEAST, process->stack_reserve);
    process->thread_entry = image_export(ntdll, "LdrInitializeThunk");
    process->exception_entry = image_export(ntdll, "KiUserExceptionDispatcher");
    return NULL;
}

static const char *check_image(struct image *image)
{
    const char *wrong = image_prepare(image);
    if (wrong)
        return wrong;
    if (image->pe.flags & PE_DLL)
        return "is a library, not a program: DLL= brings libraries";
    if (image->pe.subsystem != PE_CONSOLE && image->pe.subsystem != PE_WINDOW)
        return image->pe.subsystem == PE_NATIVE ? "is a driver, not a program: DRIVER= loads it"
                                                : "is no program for Windows";
    return image->pe.entry ? NULL : "has no entry point";
}

const char *program_process(struct image *image, const char *line, struct process **process,
                            const char **who)
{
    struct image *ntdll = image_find("ntdll.dll", strlen("ntdll.dll"));
    *who = "ntdll.dll";
    const char *wrong = image_prepare(ntdll);
    if (!wrong) {
        *who = image->name;
        wrong = check_image(image);
    }
    if (wrong)
        return wrong;
    *process = process_create();
    if (!*process)
        return "gets no process: no memory";
    wrong = fill_process(*process, image, ntdll, line);
    if (wrong)
        object_release(&(*process)->object);
    return wrong;
}

const char *program_start(struct image *image, const char *line, struct process **process,
                          const char **who)
{
    const char *wrong = program_process(image, line, process, who);
    if (wrong)
        return wrong;
    struct thread *thread =
        thread_create_user("program", *process, (*process)->start, (*process)->peb, cpu_all());
    if (thread)
        object_release(&thread->object);
    else
        object_release(&(*process)->object);
    return thread ? NULL : "gets no thread: no memory";
}

/* --- Names of addresses. --- */

static bool nearest_export(const struct image *image, uint32_t rva, char *name, size_t capacity,
                           uint32_t *offset)
{
    const char *candidate;
    uint32_t at;
    bool found = false;
    for (uint32_t n = 0; n < 0x10000 && pe_export_at(&image->pe, image->pages, n, &candidate, &at);
         n++)
        if (at <= rva && (!found || rva - at < *offset)) {
            print_to(name, capacity, "%s", candidate);
            *offset = rva - at;
            found = true;
        }
    return found;
}

bool program_symbol(const struct process *process, uint64_t address, char *text, size_t capacity)
{
    char name[80];
    uint32_t offset;
    const struct image *image = image_at(process, address);
    if (!image)
        return false;
    uint32_t rva = (uint32_t)(address - image->base);
    if (pe_symbol(&image->pe, image->file, image->file_size, rva, name, sizeof name, &offset) ||
        nearest_export(image, rva, name, sizeof name, &offset))
        print_to(text, capacity, "%s!%s+0x%x", image->name, name, offset);
    else
        print_to(text, capacity, "%s+0x%x", image->name, rva);
    return true;
}
