/* SPDX-License-Identifier: MIT */
/* Drivers come and go at PASSIVE_LEVEL, one at a time, by one thread. A driver's pages are the
 * kernel's in a range of their own: code is not writable there, data not executable. */
#include "kernel/base/upcalls.h"
#include "kernel/base/panic.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/driver_export.h"
#include "kernel/driver/io.h"
#include "kernel/driver/request.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"

bool driver_is(const struct image *image)
{
    const size_t length = strlen(image->name);
    return length > 4 && !strcmp(image->name + length - 4, ".sys");
}

/* --- Imports. --- */

#define HANDLERS "handlers.sys"

static void *import_address(const struct driver *driver, const struct pe_import *import, unsigned n)
{
    /* NT: each build of Windows numbers its routines anew, so ordinals are none of this table. */
    void *address =
        import->name && export_library(import->library) ? export_find(import->name) : NULL;
    if (!address) {
        print("# %s imports %s!%s, which is missing: its use is a bug check\n", driver->name,
              import->library, import->name ? import->name : "(a number)");
        address = (void *)driver_missing_address(driver, n);
    }
    return address;
}

static const char *bind_imports(struct driver *driver)
{
    struct pe_imports at = { 0 };
    struct pe_import import;
    enum pe_step step;
    for (unsigned n = 0;
         (step = pe_next_import(&driver->pe, driver->pages, &at, &import)) == PE_FOUND; n++)
        if (import.slot) {
            void *address = import_address(driver, &import, n);
            memcpy(driver->pages + import.slot, &address, sizeof address);
        }
    return step == PE_BROKEN
               ? "has an import table that reaches beyond the image: the file is damaged"
               : NULL;
}

/* --- Mapping. --- */

/* NT: a section marked writable and executable is executable only; old linkers marked INIT so. A
 * packed image has no pages that are one section's. */
static uint64_t driver_page_flags(const struct driver *driver, const uint8_t *file, uint32_t rva)
{
    if (driver->pe.packed)
        return PTE_WRITE;
    for (unsigned i = 0; i < driver->pe.sections; i++) {
        struct pe_section s = pe_section(&driver->pe, file, i);
        if (rva >= s.rva && rva - s.rva < s.size)
            return s.executable ? 0 : (s.writable ? PTE_WRITE : 0) | PTE_NX;
    }
    return PTE_NX;
}

static void unmap_pages(struct driver *driver)
{
    for (uint32_t rva = 0; rva < driver->pe.size; rva += PAGE_SIZE)
        vm_unmap(vm_kernel_pml4, driver->base + rva);
    phys_free(driver->pages, driver->pe.size / PAGE_SIZE);
    driver->base = 0;
}

static const char *map_pages(struct driver *driver, const uint8_t *file)
{
    for (uint32_t rva = 0; rva < driver->pe.size; rva += PAGE_SIZE)
        if (!vm_map(vm_kernel_pml4, driver->base + rva, virt_to_phys(driver->pages + rva),
                    driver_page_flags(driver, file, rva)))
            return "needs more memory for page tables than there is: MEMORY= gives the machine "
                   "more";
    return NULL;
}

static const char *fill_image(struct driver *driver, const struct image *image)
{
    pe_lay_out(&driver->pe, image->file, driver->pages);
    const char *wrong = pe_relocate(&driver->pe, driver->pages, driver->base - driver->pe.base);
    const uint32_t at = wrong ? 0 : pe_cookie(&driver->pe, driver->pages, driver->base);
    const uint64_t cookie = rdtsc() * 0x9e3779b97f4a7c15 >> 16; /* the upper 16 bits are 0 */
    if (at)
        memcpy(driver->pages + at, &cookie, sizeof cookie);
    if (!wrong)
        wrong = bind_imports(driver);
    return wrong ? wrong : map_pages(driver, image->file);
}

static const char *check_image(struct driver *driver, const struct image *image)
{
    const char *wrong = pe_open(&driver->pe, image->file, image->file_size);
    if (wrong)
        return wrong;
    if (driver->pe.subsystem != PE_NATIVE)
        return "is no driver: its subsystem is not native (the linker's --subsystem,native)";
    return driver->pe.entry ? NULL : "has no entry point";
}

static void set_string(UNICODE_STRING *string, WCHAR *buffer, size_t capacity, const char *text)
{
    size_t n = 0;
    for (; n < capacity - 1 && text[n]; n++)
        buffer[n] = (WCHAR)text[n];
    buffer[n] = 0;
    *string = (UNICODE_STRING){ (USHORT)(2 * n), (USHORT)(2 * capacity), buffer };
}

static void make_object(struct driver *driver)
{
    char service[40], text[80];
    DRIVER_OBJECT *o = &driver->object;
    print_to(service, sizeof service, "%s", driver->name);
    for (char *p = service; *p; p++)
        *p = *p == '.' ? 0 : *p;
    *o = (DRIVER_OBJECT){ .Type = 4,
                          .Size = sizeof *o,
                          .DriverStart = (PVOID)driver->base,
                          .DriverSize = driver->pe.size,
                          .DriverExtension = &driver->extension,
                          .DriverInit = (PDRIVER_INITIALIZE)(driver->base + driver->pe.entry) };
    driver->extension = (DRIVER_EXTENSION){ .DriverObject = o };
    for (unsigned i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++)
        o->MajorFunction[i] = driver_default_dispatch;
    print_to(text, sizeof text, "\\Driver\\%s", service);
    set_string(&o->DriverName, driver->object_name, 80, text);
    print_to(text, sizeof text, "\\Registry\\Machine\\System\\CurrentControlSet\\Services\\%s",
             service);
    set_string(&driver->registry, driver->path, 80, text);
    driver->extension.ServiceKeyName = driver->registry;
}

/* Before the first driver: handlers.sys, which finds the handlers of drivers' exceptions. */
static const char *load_handlers(const struct image *first)
{
    static struct driver *handlers;
    const struct image *image = image_find(HANDLERS, strlen(HANDLERS));
    if (handlers || first == image)
        return NULL;
    const char *wrong = driver_load(image, &handlers);
    if (!wrong)
        exceptions_go_to(handlers);
    return wrong;
}

const char *driver_load(const struct image *image, struct driver **made)
{
    const char *none = load_handlers(image);
    if (none)
        return none;
    struct driver *driver = driver_free_slot();
    if (!driver)
        return "is the ninth driver: at most 8 can be loaded";
    driver->name = image->name;
    const char *wrong = check_image(driver, image);
    if (wrong)
        return wrong;
    driver->pages = phys_alloc(driver->pe.size / PAGE_SIZE);
    if (!driver->pages)
        return "needs more memory than there is: MEMORY= gives the machine more";
    driver_take_slot(driver);
    panic_owner = driver_place;
    panic_first = exception_trap;
    trap_tick = exception_tick;
    wrong = fill_image(driver, image);
    if (wrong) {
        unmap_pages(driver);
        return wrong;
    }
    make_object(driver);
    *made = driver;
    return NULL;
}

/* --- Calls. --- */

struct run {
    struct driver *driver;
    bool unload;
    NTSTATUS status;
};

static void run_routine(void *argument)
{
    struct run *r = argument;
    struct driver_call call;
    DRIVER_OBJECT *o = &r->driver->object;
    export_watch();
    driver_enter(&call, r->unload ? (void *)o->DriverUnload : (void *)o->DriverInit);
    if (r->unload)
        o->DriverUnload(o);
    else
        r->status = o->DriverInit(o, &r->driver->registry);
    driver_leave(&call);
}

static NTSTATUS run_in_thread(struct driver *driver, bool unload)
{
    struct run r = { driver, unload, STATUS_SUCCESS };
    struct thread *thread = thread_create_system(driver->name, run_routine, &r, cpu_all());
    if (!thread)
        return STATUS_NO_MEMORY;
    if (driver_wait)
        driver_wait(&thread->object);
    else
        sched_wait(&thread->object, SCHED_FOREVER, Executive);
    object_release(&thread->object);
    return r.status;
}

NTSTATUS driver_start(struct driver *driver)
{
    print("# driver: %s at 0x%lx, %u KB\n", driver->name, driver->base, driver->pe.size >> 10);
    NTSTATUS status = run_in_thread(driver, false);
    if (NT_SUCCESS(status))
        devices_initialized(driver);
    return status;
}

bool driver_stop(struct driver *driver, bool started)
{
    if (started && !driver->object.DriverUnload) {
        print("# driver: %s has no DriverUnload and stays\n", driver->name);
        return true;
    }
    if (started)
        run_in_thread(driver, true);
    timers_left(driver);
    routines_left(driver);
    nmi_left(driver);
    counters_left(driver);
    devices_left(driver);
    threads_left(driver);
    pool_left(driver);
    if (!driver->left)
        unmap_pages(driver);
    return !driver->left;
}
