/* SPDX-License-Identifier: MIT */
/* What drivers import and what allocates: refuse.h's table of it. */
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/ke/synchronization.h"
#include "tests/harness/kernel.h"
#include "tests/harness/refuse.h"

#define TAG 0x64656672u
#define NAME(text)                                                                                 \
    {                                                                                              \
        sizeof text - sizeof(WCHAR), sizeof text, (WCHAR *)(text)                                  \
    }
#define NONPAGED 0x40u
#define SECTION_MAP_READ 0x4u

/* Drivers alone call these, by their names. */
PVOID ExAllocatePool2(ULONG64, SIZE_T, ULONG);
PVOID ExAllocatePool(ULONG, SIZE_T);
PVOID ExAllocatePoolWithTag(ULONG, SIZE_T, ULONG);
VOID ExFreePool(PVOID);
PVOID MmAllocateContiguousMemory(SIZE_T, LARGE_INTEGER);
VOID MmFreeContiguousMemory(PVOID);
NTSTATUS IoCreateDevice(PDRIVER_OBJECT, ULONG, PUNICODE_STRING, ULONG, ULONG, BOOLEAN,
                        PDEVICE_OBJECT *);
VOID IoDeleteDevice(PDEVICE_OBJECT);
NTSTATUS IoCreateSymbolicLink(PUNICODE_STRING, PUNICODE_STRING);
NTSTATUS IoDeleteSymbolicLink(PUNICODE_STRING);
NTSTATUS PsSetCreateThreadNotifyRoutine(PVOID);
NTSTATUS PsRemoveCreateThreadNotifyRoutine(PVOID);
NTSTATUS PsSetCreateProcessNotifyRoutine(PVOID, BOOLEAN);
PVOID KeRegisterNmiCallback(PVOID, PVOID);
NTSTATUS KeDeregisterNmiCallback(PVOID);
NTSTATUS ZwOpenSection(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES);
NTSTATUS ZwMapViewOfSection(HANDLE, HANDLE, PVOID *, ULONG_PTR, SIZE_T, PLARGE_INTEGER, PSIZE_T,
                            ULONG, ULONG, ULONG);
NTSTATUS ZwUnmapViewOfSection(HANDLE, PVOID);
VOID IofCompleteRequest(PIRP, CHAR);

/* --- Memory: NULL is the refusal. --- */

static PVOID memory;

static NTSTATUS got(PVOID p)
{
    memory = p;
    return p ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}

static NTSTATUS pool(void) { return got(ExAllocatePool(0, 100)); }
static NTSTATUS pool_tagged(void) { return got(ExAllocatePoolWithTag(0, 100, TAG)); }
static NTSTATUS pool_two(void) { return got(ExAllocatePool2(NONPAGED, 100, TAG)); }
static NTSTATUS pool_of_pages(void) { return got(ExAllocatePool2(NONPAGED, 3 * PAGE_SIZE, TAG)); }
static NTSTATUS pool_of_no_kind(void) { return got(ExAllocatePool2(0, 100, TAG)); }
static void free_pool(void) { ExFreePool(memory); }

static NTSTATUS contiguous(void)
{
    return got(MmAllocateContiguousMemory(3 * PAGE_SIZE, (LARGE_INTEGER){ .QuadPart = -1 }));
}

static NTSTATUS contiguous_too_low(void)
{
    PVOID before = memory;
    NTSTATUS status = got(MmAllocateContiguousMemory(3 * PAGE_SIZE, (LARGE_INTEGER){ { 0, 0 } }));
    memory = before;
    return status;
}

static void free_contiguous(void) { MmFreeContiguousMemory(memory); }

static NTSTATUS no_kind(void)
{
    PVOID before = memory;
    NTSTATUS status = pool_of_no_kind();
    memory = before;
    return status;
}

#define WANT .may = { STATUS_INSUFFICIENT_RESOURCES }
static const struct refusal_row memories[] = {
    { "ExAllocatePool", pool, free_pool, .least = 1, WANT },
    { "ExAllocatePoolWithTag", pool_tagged, free_pool, .least = 1, WANT },
    { "ExAllocatePool2", pool_two, free_pool, .least = 1, WANT,
      .others = { { no_kind, STATUS_INSUFFICIENT_RESOURCES } } },
    { "ExAllocatePool2 of pages", pool_of_pages, free_pool, .least = 2, WANT },
    { "MmAllocateContiguousMemory", contiguous, free_contiguous, .least = 2, WANT,
      .others = { { contiguous_too_low, STATUS_INSUFFICIENT_RESOURCES } } },
};

TEST(driver_refused, memory, "a driver without pool is refused it, and nothing is kept")
{
    refuse_each(memories, ARRAY_SIZE(memories));
}

/* --- Devices, links, files. --- */

static DRIVER_OBJECT driver;
static PDEVICE_OBJECT first, second;
static uint32_t opened, closed, controlled; /* requests that the driver got */
static UNICODE_STRING first_name = NAME(u"\\Device\\RefusedFirst"),
                      second_name = NAME(u"\\Device\\RefusedSecond"),
                      link_name = NAME(u"\\DosDevices\\RefusedLink"),
                      inside_name = NAME(u"\\Device\\RefusedFirst\\Inside"),
                      bad_name = NAME(u"RefusedWithoutFolder"), folder_name = NAME(u"\\Device\\"),
                      deep_name = NAME(u"\\Device\\RefusedFolder\\Deep");

static NTAPI NTSTATUS complete(PDEVICE_OBJECT, PIRP irp)
{
    const UCHAR major = irp->Tail.Overlay.CurrentStackLocation->MajorFunction;
    opened += major == IRP_MJ_CREATE;
    closed += major == IRP_MJ_CLOSE;
    controlled += major == IRP_MJ_DEVICE_CONTROL;
    irp->IoStatus = (IO_STATUS_BLOCK){ .Status = STATUS_SUCCESS };
    IofCompleteRequest(irp, 0);
    return STATUS_SUCCESS;
}

static NTSTATUS create_named(UNICODE_STRING *name, PDEVICE_OBJECT *device)
{
    return IoCreateDevice(&driver, 16, name, 0x22, 0, FALSE, device);
}

static void make_device(void)
{
    driver = (DRIVER_OBJECT){ .DriverUnload = NULL };
    for (unsigned i = 0; i < ARRAY_SIZE(driver.MajorFunction); i++)
        driver.MajorFunction[i] = complete;
    CHECK_OK(create_named(&first_name, &first));
    first->Flags &= ~(ULONG)DO_DEVICE_INITIALIZING;
    opened = closed = 0;
}

static void delete_device(void)
{
    IoDeleteDevice(first);
    CHECK(driver.DeviceObject == NULL);
    CHECK_EQ(closed, opened);
}

static NTSTATUS open_named(UNICODE_STRING *name, HANDLE *handle)
{
    IO_STATUS_BLOCK block;
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes, .ObjectName = name };
    return NtCreateFile(handle, GENERIC_READ, &attributes, &block, NULL, 0, 0, 0, 0, NULL, 0);
}

/* It can be opened, and its driver is told of the end. */
static void use_device(void)
{
    HANDLE handle = NULL;
    const uint32_t before = closed;
    CHECK_OK(open_named(&first_name, &handle));
    CHECK_OK(NtClose(handle));
    CHECK_EQ(closed, before + 1);
}

static NTSTATUS create_second(void) { return create_named(&second_name, &second); }
static void delete_second(void) { IoDeleteDevice(second); }

static NTSTATUS create_again(UNICODE_STRING *name)
{
    PDEVICE_OBJECT unused;
    return create_named(name, &unused);
}

static NTSTATUS create_first_again(void) { return create_again(&first_name); }
static NTSTATUS create_badly(void) { return create_again(&bad_name); }
static NTSTATUS create_nameless(void) { return create_again(&folder_name); }
static NTSTATUS create_deep(void) { return create_again(&deep_name); }
static NTSTATUS create_link(void) { return IoCreateSymbolicLink(&link_name, &first_name); }
static void delete_link(void) { CHECK_OK(IoDeleteSymbolicLink(&link_name)); }

static NTSTATUS link_taken(void) { return IoCreateSymbolicLink(&first_name, &link_name); }
static NTSTATUS open_inside(void) { return open_named(&inside_name, &refuse_made); }
static NTSTATUS open_absent(void) { return open_named(&second_name, &refuse_made); }

#define CHAIN 8 /* LINKS_FOLLOWED of kernel/driver/driver_names.c */

/* The last of so many links that lead to each other and to the device; the one before it does. */
static NTSTATUS open_chained(void)
{
    WCHAR text[CHAIN + 1][16];
    UNICODE_STRING names[CHAIN + 1] = { first_name };
    HANDLE handle = NULL;
    for (unsigned i = 1; i <= CHAIN; i++) {
        memcpy(text[i], u"\\Device\\link?", 28);
        text[i][12] = (WCHAR)('0' + i);
        names[i] = (UNICODE_STRING){ 26, 28, text[i] };
        CHECK_OK(IoCreateSymbolicLink(&names[i], &names[i - 1]));
    }
    CHECK_OK(open_named(&names[CHAIN - 1], &handle));
    CHECK_OK(NtClose(handle));
    NTSTATUS status = open_named(&names[CHAIN], &refuse_made);
    for (unsigned i = 1; i <= CHAIN; i++)
        CHECK_OK(IoDeleteSymbolicLink(&names[i]));
    return status;
}

static HANDLE file, done;

static void make_opened(void)
{
    make_device();
    CHECK_OK(NtCreateEvent(&done, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE));
    CHECK_OK(open_named(&first_name, &file));
}

static void close_opened(void)
{
    CHECK_OK(NtClose(done));
    CHECK_OK(NtClose(file));
    delete_device();
}

static NTSTATUS control_by(ULONG code, ULONG output)
{
    IO_STATUS_BLOCK block;
    char in[16] = "", out[32] = "";
    return NtDeviceIoControlFile(file, done, NULL, NULL, &block, code, in, sizeof in, out, output);
}

#define TOO_MUCH ((16u << 20) + 1) /* IO_BUFFER_MAX of kernel/driver/transfer.c */
static NTSTATUS control_buffered(void) { return control_by(METHOD_BUFFERED, 32); }
static NTSTATUS control_directly(void) { return control_by(METHOD_OUT_DIRECT, 32); }
static NTSTATUS control_much_out(void) { return control_by(METHOD_BUFFERED, TOO_MUCH); }

#define FIRST .make = make_device, .unmake = delete_device, .use = use_device
#define OPENED .make = make_opened, .unmake = close_opened, .use = use_device
static const struct refusal_row devices[] = {
    { "IoCreateDevice", create_second, delete_second, .least = 2, WANT, FIRST,
      .others = { { create_first_again, STATUS_OBJECT_NAME_COLLISION },
                  { create_badly, STATUS_OBJECT_PATH_SYNTAX_BAD },
                  { create_nameless, STATUS_OBJECT_NAME_INVALID },
                  { create_deep, STATUS_OBJECT_PATH_NOT_FOUND } } },
    { "IoCreateSymbolicLink", create_link, delete_link, .least = 3, WANT, FIRST,
      .others = { { create_link, STATUS_OBJECT_NAME_COLLISION },
                  { link_taken, STATUS_OBJECT_NAME_COLLISION } } },
    { "NtCreateFile", open_inside, refuse_close_made, .least = 6, WANT, FIRST,
      .others = { { open_absent, STATUS_OBJECT_NAME_NOT_FOUND },
                  { open_chained, STATUS_OBJECT_NAME_NOT_FOUND } } },
    { "NtDeviceIoControlFile", control_buffered, refuse_undo_nothing, .least = 2, WANT, OPENED,
      .others = { { control_much_out, STATUS_INSUFFICIENT_RESOURCES } } },
    { "NtDeviceIoControlFile, direct", control_directly, refuse_undo_nothing, .least = 3, WANT,
      OPENED },
};

TEST(driver_refused, devices,
     "whatever a device, a link or a file lacks, it is refused, keeps nothing, and a "
     "device that "
     "was there can be opened")
{
    refuse_each(devices, ARRAY_SIZE(devices));
}

static NTSTATUS close_it(void) { return NtClose(file); }
static void open_it(void) { CHECK_OK(open_named(&first_name, &file)); }

/* A close cannot be refused: what it needs the file has since it was opened. */
static const struct refusal_row ends[] = {
    { "NtClose of a file", close_it, open_it, .may = { STATUS_SUCCESS }, OPENED },
};

TEST(driver_refused, ends,
     "a driver is told that a file is closed, whatever there is no memory for")
{
    refuse_each(ends, ARRAY_SIZE(ends));
}

/* --- Routines that are called, and sections. --- */

static uint32_t notices; /* atomic */

static NTAPI void notice(HANDLE, HANDLE, BOOLEAN)
{
    __atomic_fetch_add(&notices, 1, __ATOMIC_RELAXED);
}

static NTAPI void notice_too(HANDLE, HANDLE, BOOLEAN) {}

static NTAPI BOOLEAN ignore_nmi(PVOID, BOOLEAN handled) { return handled; }

#define ROUTINE(routine) ((PVOID)(uint64_t)(routine))
static void make_noticed(void) { CHECK_OK(PsSetCreateThreadNotifyRoutine(ROUTINE(notice))); }
static void unmake_noticed(void) { CHECK_OK(PsRemoveCreateThreadNotifyRoutine(ROUTINE(notice))); }

static void end_at_once(void *unused) { (void)unused; }

static void use_noticed(void)
{
    const uint32_t before = __atomic_load_n(&notices, __ATOMIC_RELAXED);
    team_end(thread_create("noticed", end_at_once, NULL, cpu_all()));
    CHECK(__atomic_load_n(&notices, __ATOMIC_RELAXED) > before);
}

static NTSTATUS notify_too(void) { return PsSetCreateThreadNotifyRoutine(ROUTINE(notice_too)); }
static void no_more(void) { CHECK_OK(PsRemoveCreateThreadNotifyRoutine(ROUTINE(notice_too))); }

static NTSTATUS notify_process(void)
{
    return PsSetCreateProcessNotifyRoutine(ROUTINE(notice_too), FALSE);
}

static void no_more_process(void)
{
    CHECK_OK(PsSetCreateProcessNotifyRoutine(ROUTINE(notice_too), TRUE));
}

static NTSTATUS call_at_nmi(void) { return got(KeRegisterNmiCallback(ROUTINE(ignore_nmi), NULL)); }
static void call_no_more(void) { CHECK_OK(KeDeregisterNmiCallback(memory)); }
static NTSTATUS end_no_call(void) { return KeDeregisterNmiCallback(&memory); }

static NTSTATUS open_as(const WCHAR *text, ACCESS_MASK access)
{
    UNICODE_STRING name = { 0, 0, (WCHAR *)(uint64_t)text };
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes, .ObjectName = &name };
    while (text[name.Length / sizeof *text])
        name.Length += sizeof *text;
    return ZwOpenSection(&refuse_made, access, &attributes);
}

/* In any case. */
static NTSTATUS open_section(void) { return open_as(u"\\device\\physicalMemory", GENERIC_ALL); }
static NTSTATUS open_other(void) { return open_as(u"\\Device\\Memory", GENERIC_ALL); }

static HANDLE section;
static PVOID view;

static void make_section(void)
{
    CHECK_OK(open_section());
    section = refuse_made;
}

static void close_section(void) { CHECK_OK(NtClose(section)); }

static NTSTATUS map_as(HANDLE of, uint64_t at, SIZE_T size)
{
    LARGE_INTEGER offset = { .QuadPart = 1 << 20 };
    PVOID mapped = (PVOID)at;
    NTSTATUS status = ZwMapViewOfSection(of, NtCurrentProcess(), &mapped, 0, 0, &offset, &size, 1,
                                         0, PAGE_READWRITE);
    view = NT_SUCCESS(status) ? mapped : view;
    return status;
}

static NTSTATUS map_section(void) { return map_as(section, 0, 3 * PAGE_SIZE); }
static NTSTATUS map_other(void) { return map_as((HANDLE)0x7777, 0, PAGE_SIZE); }

/* Writable, by a handle that may read. */
static NTSTATUS map_poorly(void)
{
    const HANDLE before = refuse_made;
    CHECK_OK(open_as(u"\\Device\\PhysicalMemory", SECTION_MAP_READ));
    NTSTATUS status = map_as(refuse_made, 0, PAGE_SIZE);
    refuse_close_made();
    refuse_made = before;
    return status;
}

static void unmap_section(void) { CHECK_OK(ZwUnmapViewOfSection(NtCurrentProcess(), view)); }

#define NOTICED .make = make_noticed, .unmake = unmake_noticed, .use = use_noticed
static const struct refusal_row routines[] = {
    { "PsSetCreateThreadNotifyRoutine", notify_too, no_more, .least = 1, WANT, NOTICED },
    { "PsSetCreateProcessNotifyRoutine", notify_process, no_more_process, .least = 1,
      .may = { STATUS_INVALID_PARAMETER }, NOTICED,
      .others = { { notify_process, STATUS_INVALID_PARAMETER } } },
    { "KeRegisterNmiCallback", call_at_nmi, call_no_more, .least = 1, WANT, NOTICED,
      .others = { { end_no_call, STATUS_INVALID_HANDLE } } },
    { "ZwOpenSection", open_section, refuse_close_made, .least = 2, WANT,
      .others = { { open_other, STATUS_OBJECT_NAME_NOT_FOUND } } },
    { "ZwMapViewOfSection", map_section, unmap_section, .least = 1,
      .may = { STATUS_NO_MEMORY, STATUS_INSUFFICIENT_RESOURCES }, .in_process = true,
      .make = make_section, .unmake = close_section,
      .others = { { map_other, STATUS_INVALID_HANDLE }, { map_poorly, STATUS_ACCESS_DENIED } } },
};

TEST(driver_refused, routines,
     "a routine that has no place is refused, and the one before it is called; sections and views "
     "keep nothing")
{
    refuse_each(routines, ARRAY_SIZE(routines));
    /* An address of a process, which this thread does not have. */
    CHECK_STATUS(map_as(NULL, 0x10000, PAGE_SIZE), STATUS_INVALID_PARAMETER_4);
}
