/* SPDX-License-Identifier: MIT */
/* Devices of device_driver.c from ring 3: every status that NtCreateFile, NtDeviceIoControlFile,
 * NtReadFile and NtWriteFile say by themselves, each way of passing buffers, threads that end while
 * the driver has their request. */
#include "../programs/nt.h"
#include <string.h>
#include "device.h"

#define NOWHERE ((PVOID)0x123456)

NTSTATUS NTAPI NtReadFile(HANDLE, HANDLE, PIO_APC_ROUTINE, PVOID, PIO_STATUS_BLOCK, PVOID, ULONG,
                          PLARGE_INTEGER, PULONG);
NTSTATUS NTAPI NtWriteFile(HANDLE, HANDLE, PIO_APC_ROUTINE, PVOID, PIO_STATUS_BLOCK, PVOID, ULONG,
                           PLARGE_INTEGER, PULONG);

static HANDLE open_it(const char *name, DWORD access)
{
    return CreateFileA(name, access, 0, NULL, OPEN_EXISTING, 0, NULL);
}

/* Statuses, by name and by attributes. */
static NTSTATUS create(const WCHAR *name, USHORT length, ULONG attributes_length, PHANDLE handle)
{
    UNICODE_STRING string = { length, length, (WCHAR *)name };
    OBJECT_ATTRIBUTES attributes = { .Length = attributes_length,
                                     .ObjectName = name ? &string : NULL };
    IO_STATUS_BLOCK block;
    return NtCreateFile(handle, GENERIC_READ, &attributes, &block, NULL, 0, 0, FILE_OPEN, 0, NULL,
                        0);
}

#define CREATE(name) create(name, sizeof(name) - sizeof(WCHAR), sizeof(OBJECT_ATTRIBUTES), &handle)

static void check_create(void)
{
    HANDLE handle = NULL, another;
    static WCHAR long_name[300] = L"\\Device\\";
    IO_STATUS_BLOCK block;
    IS(CREATE(L"\\Device\\Plain"), STATUS_SUCCESS);
    IS(CloseHandle(handle), TRUE);
    IS(CREATE(L"\\DosDevices\\pLAIN"), STATUS_SUCCESS);
    IS(NtClose(handle), STATUS_SUCCESS);
    IS(create(L"\\??\\Plain", 18, sizeof(OBJECT_ATTRIBUTES), NULL), STATUS_ACCESS_VIOLATION);
    IS(create(L"\\??\\Plain", 18, sizeof(OBJECT_ATTRIBUTES), KERNEL_ADDRESS),
       STATUS_ACCESS_VIOLATION);
    IS(NtCreateFile(&handle, GENERIC_READ, NULL, &block, NULL, 0, 0, FILE_OPEN, 0, NULL, 0),
       STATUS_ACCESS_VIOLATION);
    IS(create(NOWHERE, 18, sizeof(OBJECT_ATTRIBUTES), &handle), STATUS_ACCESS_VIOLATION);
    IS(create(L"\\??\\Plain", 18, 47, &handle), STATUS_INVALID_PARAMETER);
    IS(create(NULL, 0, sizeof(OBJECT_ATTRIBUTES), &handle), STATUS_OBJECT_NAME_INVALID);
    IS(create(L"", 0, sizeof(OBJECT_ATTRIBUTES), &handle), STATUS_OBJECT_NAME_INVALID);
    IS(create(L"\\??\\Plain", 17, sizeof(OBJECT_ATTRIBUTES), &handle), STATUS_OBJECT_NAME_INVALID);
    IS(create(long_name, 512, sizeof(OBJECT_ATTRIBUTES), &handle), STATUS_OBJECT_NAME_INVALID);
    IS(CREATE(L"\\Device\\None"), STATUS_OBJECT_NAME_NOT_FOUND);
    IS(CREATE(L"\\Device\\Plainer"), STATUS_OBJECT_NAME_NOT_FOUND);
    IS(CREATE(L"\\Device\\Plain\\x"), STATUS_DEVICE_BUSY); /* what the driver says */
    IS(CREATE(L"\\??\\Plain\\x"), STATUS_DEVICE_BUSY);
    IS(CREATE(L"\\Device\\Only"), STATUS_SUCCESS);
    IS(create(L"\\Device\\Only", 24, sizeof(OBJECT_ATTRIBUTES), &another), STATUS_ACCESS_DENIED);
    IS(NtClose(handle), STATUS_SUCCESS);
    IS(CREATE(L"\\Device\\Only"), STATUS_SUCCESS);
    IS(NtClose(handle), STATUS_SUCCESS);
}

static NTSTATUS control(HANDLE file, ULONG code, PVOID in, ULONG input, PVOID out, ULONG output,
                        ULONG_PTR *information)
{
    IO_STATUS_BLOCK block = { .Information = 0 };
    NTSTATUS status =
        NtDeviceIoControlFile(file, NULL, NULL, NULL, &block, code, in, input, out, output);
    if (information)
        *information = block.Information;
    return status;
}

static void check_control(HANDLE file)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL), no_right;
    HANDLE reads = open_it("\\\\.\\Plain", GENERIC_READ),
           writes = open_it("\\\\.\\Plain", GENERIC_WRITE);
    IO_STATUS_BLOCK block;
    char text[8] = "abcdefg";
    IS(NtDeviceIoControlFile(file, NULL, NULL, NULL, NULL, ECHO, NULL, 0, NULL, 0),
       STATUS_ACCESS_VIOLATION);
    IS(NtDeviceIoControlFile(file, NULL, NULL, NULL, KERNEL_ADDRESS, ECHO, NULL, 0, NULL, 0),
       STATUS_ACCESS_VIOLATION);
    IS(control(NULL, ECHO, NULL, 0, NULL, 0, NULL), STATUS_INVALID_HANDLE);
    IS(control(event, ECHO, NULL, 0, NULL, 0, NULL), STATUS_OBJECT_TYPE_MISMATCH);
    IS(control(writes, WANTS_READ, NULL, 0, NULL, 0, NULL), STATUS_ACCESS_DENIED);
    IS(control(reads, WANTS_WRITE, NULL, 0, NULL, 0, NULL), STATUS_ACCESS_DENIED);
    IS(control(reads, WANTS_READ, NULL, 0, NULL, 0, NULL), STATUS_SUCCESS);
    IS(control(writes, WANTS_WRITE, NULL, 0, NULL, 0, NULL), STATUS_SUCCESS);
    IS(control(file, SERVES, NULL, 0, NULL, 0, NULL), STATUS_SUCCESS);
    IS(NtDeviceIoControlFile(file, NULL, NULL, NULL, KERNEL_ADDRESS, ECHO, NULL, 0, NULL, 0),
       STATUS_ACCESS_VIOLATION); /* the program's own pointers are not taken so */
    IS(control(file, ECHO, text, (16 << 20) + 1, NULL, 0, NULL), STATUS_INSUFFICIENT_RESOURCES);
    IS(control(file, ECHO, NULL, 0, text, (16 << 20) + 1, NULL), STATUS_INSUFFICIENT_RESOURCES);
    IS(control(file, 0x80002ffc, NULL, 0, NULL, 0, NULL), STATUS_INVALID_DEVICE_REQUEST);
    IS(NtDeviceIoControlFile(file, file, NULL, NULL, &block, ECHO, NULL, 0, NULL, 0),
       STATUS_OBJECT_TYPE_MISMATCH);
    IS(NtDeviceIoControlFile(file, (HANDLE)0x7ffc, NULL, NULL, &block, ECHO, NULL, 0, NULL, 0),
       STATUS_INVALID_HANDLE);
    no_right = limited(event, SYNCHRONIZE);
    IS(NtDeviceIoControlFile(file, no_right, NULL, NULL, &block, ECHO, NULL, 0, NULL, 0),
       STATUS_ACCESS_DENIED);
    IS(NtDeviceIoControlFile(file, event, NULL, NULL, &block, ECHO, text, 3, text, 3),
       STATUS_SUCCESS);
    IS(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    IS(memcmp(text, "cbadefg", 8), 0);
    IS(CloseHandle(event) && CloseHandle(no_right) && CloseHandle(reads) && CloseHandle(writes),
       TRUE);
}

static void check_buffered(HANDLE file)
{
    char in[5000], out[5000];
    ULONG_PTR n;
    struct end given = { STATUS_INVALID_PARAMETER, sizeof in };
    memset(in, 'x', sizeof in);
    in[0] = 'a';
    IS(control(file, ECHO, in, sizeof in, out, sizeof out, &n), STATUS_SUCCESS);
    IS(n, sizeof in);
    IS(out[sizeof out - 1], 'a');
    memset(out, 0, sizeof out);
    IS(control(file, ECHO, in, 10, out, 5, &n),
       STATUS_BUFFER_OVERFLOW); /* a warning: as much as fits */
    IS(n, 10);
    IS(memcmp(out, "xxxxxxxxx", 5), 0);
    IS(control(file, ECHO, NULL, 0, NULL, 0, &n), STATUS_SUCCESS);
    IS(control(file, ECHO, NULL, 1, NULL, 0, NULL), STATUS_ACCESS_VIOLATION);
    IS(control(file, ECHO, KERNEL_ADDRESS, 4, NULL, 0, NULL), STATUS_ACCESS_VIOLATION);
    IS(control(file, ECHO, in, 4, NOWHERE, 4, NULL), STATUS_ACCESS_VIOLATION);
    IS(control(file, ECHO, in, 4, KERNEL_ADDRESS, 4, NULL), STATUS_ACCESS_VIOLATION);
    IS(control(file, ECHO, in, 4, (PVOID) "constant", 4, NULL), STATUS_ACCESS_VIOLATION);
    memset(out, 1, sizeof out);
    IS(control(file, END_WITH, &given, sizeof given, out, sizeof out, &n),
       STATUS_INVALID_PARAMETER); /* nothing comes back */
    IS(out[100], 1);
    given.status = STATUS_SUCCESS;
    given.information = 0x7fffffff; /* more than there is */
    IS(control(file, END_WITH, &given, sizeof given, out, 200, &n), STATUS_SUCCESS);
    IS(n, 0x7fffffff);
    IS(out[199], 0x5a);
    IS(out[200], 1);
    IS(control(file, LATER, NULL, 0, out, 4, &n), STATUS_SUCCESS);
    IS(n, 4);
    IS(*(ULONG *)out, 77);
}

static void check_direct(HANDLE file)
{
    unsigned char in[4] = { 1, 2, 3, 4 },
                  *out = VirtualAlloc(NULL, 0x4000, MEM_COMMIT, PAGE_READWRITE);
    DWORD old;
    ULONG_PTR n;
    memset(out, 1, 0x2000);
    IS(control(file, SUM, in, 4, out + 0xff0, 0x20, &n), STATUS_SUCCESS); /* two pages */
    IS(n, 10 + 0x20);
    IS(control(file, SUM, in, 4, NULL, 0, &n), STATUS_SUCCESS); /* no MDL */
    IS(n, 10);
    IS(control(file, SUM, NULL, 4, out, 4, &n), STATUS_ACCESS_VIOLATION);
    IS(control(file, SUM, in, 4, NOWHERE, 4, &n), STATUS_ACCESS_VIOLATION);
    IS(control(file, FILL, in, 1, out + 0xff0, 0x20, &n), STATUS_SUCCESS);
    IS(n, 0x20);
    IS(out[0xfef] + 16 * out[0xff0] + 256 * out[0x100f] + 4096 * out[0x1010], 0x1221);
    IS(control(file, FILL, in, 1, KERNEL_ADDRESS, 4, NULL), STATUS_ACCESS_VIOLATION);
    IS(VirtualProtect(out + 0x1000, 0x1000, PAGE_READONLY, &old), TRUE);
    IS(control(file, FILL, in, 1, out + 0xff0, 0x20, NULL),
       STATUS_ACCESS_VIOLATION); /* its second page */
    IS(out[0xff0], 2);
    IS(control(file, SUM, in, 4, out + 0xff0, 0x20, &n), STATUS_SUCCESS); /* which is only read */
    IS(n, 10 + 0x40);
    IS(control(file, FILL, in, 1, out + 0x3ff0, 0x20, NULL), STATUS_ACCESS_VIOLATION);
    IS(control(file, COPY, in, 4, out, 4, &n), STATUS_SUCCESS);
    IS(n, 4);
    IS(memcmp(in, out, 4), 0);
    VirtualFree(out, 0, MEM_RELEASE);
}

static NTSTATUS read_at(HANDLE file, PVOID buffer, ULONG length, LONGLONG at, ULONG_PTR *n)
{
    IO_STATUS_BLOCK block = { .Information = 0 };
    LARGE_INTEGER offset = { .QuadPart = at };
    NTSTATUS status = NtReadFile(file, NULL, NULL, NULL, &block, buffer, length, &offset, NULL);
    *n = block.Information;
    return status;
}

static NTSTATUS write_at(HANDLE file, PVOID buffer, ULONG length, LONGLONG at, ULONG_PTR *n)
{
    IO_STATUS_BLOCK block = { .Information = 0 };
    LARGE_INTEGER offset = { .QuadPart = at };
    NTSTATUS status = NtWriteFile(file, NULL, NULL, NULL, &block, buffer, length, &offset, NULL);
    *n = block.Information;
    return status;
}

static void check_transfer(const char *name)
{
    HANDLE file = open_it(name, GENERIC_READ | GENERIC_WRITE), reads = open_it(name, GENERIC_READ);
    HANDLE writes = open_it(name, FILE_APPEND_DATA), event = CreateEventA(NULL, TRUE, FALSE, NULL);
    char text[] = "0123456789", got[STORE_SIZE + 4];
    OVERLAPPED overlapped = { .Offset = 3, .hEvent = event };
    IO_STATUS_BLOCK block;
    ULONG_PTR n;
    DWORD done;
    IS(write_at(file, text, 10, 0, &n), STATUS_SUCCESS);
    IS(n, 10);
    IS(write_at(file, text, 10, -2, &n), STATUS_SUCCESS); /* after the last one */
    IS(WriteFile(file, "end", 3, &done, NULL), TRUE);
    IS(done, 3);
    IS(read_at(file, got, 23, 0, &n), STATUS_SUCCESS);
    IS(n, 23);
    IS(memcmp(got, "01234567890123456789end", 23), 0);
    IS(read_at(file, got, 10, STORE_SIZE - 4, &n), STATUS_SUCCESS);
    IS(n, 4);
    IS(read_at(file, got, 10, STORE_SIZE, &n), STATUS_END_OF_FILE);
    IS(ReadFile(file, got, 10, &done, NULL), TRUE); /* where the last one that succeeded ended */
    IS(done, 0);
    IS(ReadFile(file, got, 4, &done, &overlapped), TRUE);
    IS(memcmp(got, "3456", 4), 0);
    IS(overlapped.InternalHigh, 4);
    IS(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    overlapped.Offset = STORE_SIZE;
    FAILS(ReadFile(file, got, 4, &done, &overlapped), FALSE, ERROR_HANDLE_EOF);
    IS(read_at(file, got, 0, 5, &n), STATUS_SUCCESS);
    IS(n, 0);
    IS(read_at(file, got, 1, -1, &n), STATUS_INVALID_PARAMETER);
    IS(read_at(file, got, 1, -3, &n), STATUS_INVALID_PARAMETER);
    IS(write_at(file, text, 1, -3, &n), STATUS_INVALID_PARAMETER);
    IS(write_at(file, text, 1, -1, &n), STATUS_DISK_FULL); /* at the end: the driver knows */
    IS(read_at(writes, got, 1, 0, &n), STATUS_ACCESS_DENIED);
    IS(write_at(reads, text, 1, 0, &n), STATUS_ACCESS_DENIED);
    IS(write_at(writes, text, 1, 0, &n), STATUS_SUCCESS);
    IS(read_at(event, got, 1, 0, &n), STATUS_OBJECT_TYPE_MISMATCH);
    IS(read_at(NULL, got, 1, 0, &n), STATUS_INVALID_HANDLE);
    IS(read_at(file, got, (16 << 20) + 1, 0, &n), STATUS_INSUFFICIENT_RESOURCES);
    IS(NtReadFile(file, NULL, NULL, NULL, &block, got, 1, KERNEL_ADDRESS, NULL),
       STATUS_ACCESS_VIOLATION);
    IS(NtReadFile(file, NULL, NULL, NULL, NOWHERE, got, 1, NULL, NULL), STATUS_ACCESS_VIOLATION);
    IS(NtWriteFile(file, NULL, NULL, NULL, NULL, got, 1, NULL, NULL), STATUS_ACCESS_VIOLATION);
    if (!strstr(name, "Neither")) { /* there the driver would be hurt, as on Windows */
        IS(read_at(file, NOWHERE, 4, 0, &n), STATUS_ACCESS_VIOLATION);
        IS(read_at(file, KERNEL_ADDRESS, 4, 0, &n), STATUS_ACCESS_VIOLATION);
        IS(read_at(file, (PVOID) "constant", 4, 0, &n), STATUS_ACCESS_VIOLATION);
        IS(write_at(file, NOWHERE, 4, 0, &n), STATUS_ACCESS_VIOLATION);
        IS(write_at(file, KERNEL_ADDRESS, 4, 0, &n), STATUS_ACCESS_VIOLATION);
        IS(write_at(file, (PVOID) "constant", 4, 0, &n), STATUS_SUCCESS);
    }
    IS(CloseHandle(file) && CloseHandle(reads) && CloseHandle(writes) && CloseHandle(event), TRUE);
}

/* --- One device above another. --- */

static void check_stack(void)
{
    HANDLE file = open_it("\\\\.\\Lower", GENERIC_READ);
    struct report before, after;
    char text[3] = "ab";
    ULONG_PTR n;
    IS(control(file, REPORT, NULL, 0, &before, sizeof before, &n), STATUS_SUCCESS);
    IS(control(file, ECHO, text, 2, text, 2, &n), STATUS_SUCCESS);
    IS(text[0], 'b');
    IS(control(file, LATER, NULL, 0, &n, 4, NULL), STATUS_SUCCESS); /* pending below */
    IS(control(file, TWICE, NULL, 0, NULL, 0, &n), STATUS_SUCCESS);
    IS(n, 5);
    IS(control(file, REPORT, NULL, 0, &after, sizeof after, &n), STATUS_SUCCESS);
    IS(after.pending - before.pending, 1); /* the one of a timer */
    IS(after.above - before.above,
       3); /* the first of the two, and what was between them without TWICE */
    IS(CloseHandle(file), TRUE);
}

/* --- Threads that end. --- */

struct job {
    const char *name;
    ULONG code;
    NTSTATUS status;
};

static DWORD WINAPI ask(LPVOID argument)
{
    struct job *job = argument;
    HANDLE file = open_it(job->name, GENERIC_READ);
    job->status = control(file, job->code, NULL, 0, NULL, 0, NULL);
    CloseHandle(file);
    return 5;
}

static ULONG_PTR pending(HANDLE file)
{
    ULONG_PTR n;
    control(file, PENDS, NULL, 0, NULL, 0, &n);
    return n;
}

static HANDLE start(struct job *job, HANDLE file)
{
    ULONG_PTR before = pending(file);
    HANDLE thread = CreateThread(NULL, 0, ask, job, 0, NULL);
    while (pending(file) == before)
        Sleep(1);
    return thread;
}

static struct report report_of(HANDLE file)
{
    struct report t;
    control(file, REPORT, NULL, 0, &t, sizeof t, NULL);
    return t;
}

static void check_ends(HANDLE file, const char *name)
{
    struct job stays = { name, PEND, 1 }, deaf = { name, PEND_DEAF, 1 };
    struct report before = report_of(file), after;
    ULONG_PTR n;
    HANDLE thread = start(&stays, file);
    IS(control(file, FINISH, NULL, 0, NULL, 0, &n), STATUS_SUCCESS);
    IS(n, 1);
    IS(end_of(thread), 5);
    IS(stays.status, STATUS_SUCCESS);

    thread = start(&stays, file); /* the driver cancels it */
    IS(TerminateThread(thread, 9), TRUE);
    IS(end_of(thread), 9);
    after = report_of(file);
    IS(after.cancelled - before.cancelled, 1);
    IS(pending(file), 0);

    /* The driver does not, and has it for longer than the thread lives. */
    thread = start(&deaf, file);
    IS(TerminateThread(thread, 10), TRUE);
    IS(end_of(thread), 10);
    IS(pending(file), 1);
    IS(control(file, FINISH, NULL, 0, NULL, 0, &n), STATUS_SUCCESS);
    IS(n, 1);
    IS(pending(file), 0);
    after = report_of(file); /* their handles are still open: a thread that is ended closes none */
    IS(after.closed - before.closed, 1);
    IS(after.cleaned - before.cleaned, 1);
    IS(after.opened - before.opened, 3);
    IS(after.threads - before.threads, 3);
    IS(after.processes, 1);
}

/* --- Physical memory in the program's half of the address space. --- */

static struct view view_of(HANDLE file, ULONG64 base, ULONG64 size, ULONG unmap)
{
    struct view v = { base, size, 0, 0, unmap, -1 };
    DWORD n;
    IS(DeviceIoControl(file, VIEW, &v, sizeof v, &v, sizeof v, &n, NULL), TRUE);
    return v;
}

static void check_views(HANDLE file)
{
    static const ULONG64 places[] = { 0, 0x400000000000, 0x7ffffff00000 };
    MEMORY_BASIC_INFORMATION info;
    DWORD old;
    for (ULONG i = 0; i < ARRAYSIZE(places); i++) {
        struct view v = view_of(file, places[i], 4, 0);
        volatile ULONG *number = (ULONG *)(ULONG_PTR)(v.base + v.at);
        IS(v.status, 0);
        IS(!places[i] || v.base == places[i], 1);
        IS(v.size >= v.at + 4 && !(v.size & 0xfff), 1);
        *number = i + 7;
        IS(VirtualQuery((PVOID)number, &info, sizeof info), sizeof info);
        IS(info.Type, MEM_MAPPED);
        IS(info.Protect & 0xff, PAGE_READWRITE);
        IS(info.AllocationBase == (PVOID)(ULONG_PTR)v.base, 1);
        IS(VirtualFree(info.AllocationBase, 0, MEM_RELEASE), FALSE);
        IS(VirtualProtect((PVOID)number, 4, PAGE_READONLY, &old), TRUE);
        IS(*number, i + 7);
        IS(view_of(file, v.base, 4, 0).status, (LONG)0xc0000018); /* it is taken */
        IS(view_of(file, v.base + v.at, 0, 1).number, i + 7);
        IS(view_of(file, v.base, 0, 1).status, (LONG)0xc0000019);
        IS(VirtualQuery((PVOID)number, &info, sizeof info), sizeof info);
        IS(info.State, MEM_FREE);
    }
    IS(view_of(file, 0x12345000, 4, 0).status, (LONG)0xc0000220);
    IS(view_of(file, 0x7ffffff00000, 0x200000, 0).status, (LONG)0xc0000018);
    IS(view_of(file, 0, 0, 0).status, (LONG)0xc000000d);
    IS(view_of(file, 0, 4, 0).status, 0); /* it stays until the program ends */
}

int main(void)
{
    HANDLE file = open_it("\\\\.\\Plain", GENERIC_READ | GENERIC_WRITE);
    struct job deaf = { "\\\\.\\Plain", PEND_DEAF, 1 };
    struct report end;
    IS(file != INVALID_HANDLE_VALUE, TRUE);
    check_create();
    check_control(file);
    check_buffered(file);
    check_direct(file);
    check_transfer("\\\\.\\Plain");
    check_transfer("\\\\.\\Direct");
    check_transfer("\\\\.\\Neither");
    check_stack();
    check_ends(file, "\\\\.\\Plain");
    check_ends(file, "\\\\.\\Lower");
    check_views(file);
    end = report_of(file); /* four threads were ended, and their handles are open */
    IS(end.opened - end.closed, 5);
    start(&deaf, file); /* the driver completes it when it goes */
    return check_result();
}
