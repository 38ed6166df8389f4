/* SPDX-License-Identifier: MIT */
/* Devices of device_driver.c from ring 3: every status that NtCreateFile and NtDeviceIoControlFile
 * say by themselves, each way of passing buffers, a request that stays; what is refused; what
 * requests leave behind. */
#include "../programs/nt.h"
#include <string.h>
#include "device.h"

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
    IS(CREATE(L"\\Device\\Plain"), STATUS_SUCCESS);
    IS(CloseHandle(handle), TRUE);
    IS(CREATE(L"\\DosDevices\\pLAIN"), STATUS_SUCCESS);
    IS(NtClose(handle), STATUS_SUCCESS);
    IS(create(L"\\??\\Plain", 18, sizeof(OBJECT_ATTRIBUTES), NULL), STATUS_ACCESS_VIOLATION);
    IS(create(L"\\??\\Plain", 18, 47, &handle), STATUS_INVALID_PARAMETER);
    IS(create(long_name, 512, sizeof(OBJECT_ATTRIBUTES), &handle), STATUS_OBJECT_NAME_INVALID);
    IS(CREATE(L"\\Device\\None"), STATUS_OBJECT_NAME_NOT_FOUND);
    IS(CREATE(L"\\Device\\Plainer"), STATUS_OBJECT_NAME_NOT_FOUND);
    IS(CREATE(L"\\Device\\Plain\\x"), STATUS_DEVICE_BUSY); /* what the driver says */
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
    VirtualFree(out, 0, MEM_RELEASE);
}

/* Its event is set, and it says how much it was. */
static void check_overlapped(HANDLE file)
{
    char text[8] = "1234567";
    DWORD n = 0;
    struct end end = { STATUS_SUCCESS, 5 };
    OVERLAPPED one = { .hEvent = CreateEventA(NULL, TRUE, FALSE, NULL) };
    IS(DeviceIoControl(file, END_WITH, &end, sizeof end, text, sizeof text, NULL, &one), TRUE);
    IS(WaitForSingleObject(one.hEvent, 0), WAIT_OBJECT_0);
    IS(GetOverlappedResult(file, &one, &n, TRUE) && n == 5, TRUE);
    IS(HasOverlappedIoCompleted(&one) && ResetEvent(one.hEvent), TRUE);
    end.status = STATUS_DISK_FULL;
    IS(DeviceIoControl(file, END_WITH, &end, sizeof end, text, sizeof text, &n, &one), FALSE);
    FAILS(GetOverlappedResult(file, &one, &n, TRUE), FALSE, ERROR_DISK_FULL);
    IS(CloseHandle(one.hEvent), TRUE);
    HANDLE again = open_it("\\\\?\\Plain", GENERIC_READ);
    IS(again != INVALID_HANDLE_VALUE && CloseHandle(again), TRUE);
}

/* --- What is refused, with a line that names the driver. --- */

static VOID NTAPI no_routine(PVOID Context, PIO_STATUS_BLOCK Block, ULONG Reserved) {}

static void check_refused(HANDLE file)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);
    IO_STATUS_BLOCK block;
    ULONG_PTR n;
    char byte = 0;
    DWORD done = 7;
    FAILS(ReadFile(file, &byte, 1, &done, NULL), FALSE, ERROR_NOT_SUPPORTED);
    IS(done, 0);
    FAILS(WriteFile(file, &byte, 1, NULL, NULL), FALSE, ERROR_NOT_SUPPORTED);
    FAILS(ReadFile(NULL, &byte, 1, NULL, NULL), FALSE, ERROR_INVALID_HANDLE);
    FAILS(WriteFile(event, &byte, 1, NULL, NULL), FALSE, ERROR_INVALID_HANDLE);
    IS(control(file, REFUSED, &byte, 1, &byte, 1, &n), STATUS_NOT_SUPPORTED);
    IS(NtDeviceIoControlFile(file, event, no_routine, NULL, &block, ECHO, NULL, 0, NULL, 0),
       STATUS_NOT_SUPPORTED);
    IS(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
    CloseHandle(event);
}

/* --- A request that stays: a thread that is to end meanwhile ends with it. --- */

static NTSTATUS ended_with = 1;

static DWORD WINAPI ask(LPVOID unused)
{
    HANDLE file = open_it("\\\\.\\Plain", GENERIC_READ);
    ended_with = control(file, PEND, NULL, 0, NULL, 0, NULL);
    CloseHandle(file);
    return 5;
}

static ULONG_PTR pending(HANDLE file)
{
    ULONG_PTR n;
    control(file, PENDS, NULL, 0, NULL, 0, &n);
    return n;
}

static HANDLE start(HANDLE file)
{
    HANDLE thread = CreateThread(NULL, 0, ask, NULL, 0, NULL);
    while (!pending(file))
        Sleep(1);
    return thread;
}

static struct report report_of(HANDLE file)
{
    struct report t;
    control(file, REPORT, NULL, 0, &t, sizeof t, NULL);
    return t;
}

static void check_stays(HANDLE file)
{
    struct report before = report_of(file), after;
    ULONG_PTR n;
    HANDLE thread = start(file);
    IS(control(file, FINISH, NULL, 0, NULL, 0, &n), STATUS_SUCCESS);
    IS(n, 1);
    IS(end_of(thread), 5);
    IS(ended_with, STATUS_SUCCESS);
    ended_with = 1;
    thread = start(file);
    IS(TerminateThread(thread, 9), TRUE);
    IS(WaitForSingleObject(thread, 5), WAIT_TIMEOUT);
    IS(control(file, FINISH, NULL, 0, NULL, 0, &n), STATUS_SUCCESS);
    IS(end_of(thread), 9);
    IS(ended_with, 1);
    after = report_of(file); /* one handle is still open: a thread that is ended closes none */
    IS(after.closed - before.closed, 1);
    IS(after.cleaned - before.cleaned, 1);
    IS(after.opened - before.opened, 2);
    IS(after.threads - before.threads, 2);
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
    IS(file != INVALID_HANDLE_VALUE, TRUE);
    check_create();
    check_control(file);
    check_buffered(file);
    check_direct(file);
    check_overlapped(file);
    check_refused(file);
    check_stays(file);
    check_views(file);
    struct report end = report_of(file);
    IS(end.opened - end.closed, 2);
    return check_result();
}
