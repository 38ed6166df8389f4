/* SPDX-License-Identifier: MIT */
/* Calls that requests to a device queue to their thread: ReadFileEx, WriteFileEx and the routines
 * of NtReadFile, NtWriteFile and NtDeviceIoControlFile, against device_driver.c; and what requests
 * leave behind. */
#include "../programs/nt.h"
#include <string.h>
#include "device.h"

#define APCS 120
#define UNKNOWN CODE(0xbff, BUFFERED, 0)
#define REQUESTS 64 /* of 100 bytes each, more than a page */

NTSTATUS NTAPI NtReadFile(HANDLE, HANDLE, PIO_APC_ROUTINE, PVOID, PIO_STATUS_BLOCK, PVOID, ULONG,
                          PLARGE_INTEGER, PULONG);
NTSTATUS NTAPI NtWriteFile(HANDLE, HANDLE, PIO_APC_ROUTINE, PVOID, PIO_STATUS_BLOCK, PVOID, ULONG,
                           PLARGE_INTEGER, PULONG);

static HANDLE file;
static ULONG called;
static DWORD error, bytes, caller;
static LPOVERLAPPED which[4];

static VOID CALLBACK on_end(DWORD Error, DWORD Bytes, LPOVERLAPPED Overlapped)
{
    error = Error;
    bytes = Bytes;
    caller = GetCurrentThreadId();
    which[called++ % 4] = Overlapped;
}

static PVOID given;
static PIO_STATUS_BLOCK block_given;
static VOID NTAPI on_block(PVOID Context, PIO_STATUS_BLOCK Block, ULONG Reserved)
{
    given = Context;
    block_given = Block;
    called += 1 + Reserved;
}

static OVERLAPPED at(DWORD offset) { return (OVERLAPPED){ .Offset = offset, .hEvent = &called }; }

/* --- Win32. --- */

static void check_win32(void)
{
    char text[8] = "written", back[3][8] = { "" };
    OVERLAPPED one = at(8), two = at(8), three = at(10);
    IS(WriteFileEx(file, text, 8, &one, on_end), TRUE);
    IS(SleepEx(1, FALSE), 0);
    IS(called, 0);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(called, 1);
    IS(error, 0);
    IS(bytes, 8);
    IS(which[0] == &one, TRUE);
    IS(caller, GetCurrentThreadId());
    IS(one.hEvent == &called, TRUE); /* is the program's own */
    IS(HasOverlappedIoCompleted(&one), TRUE);

    called = 0;
    SetLastError(ERROR_BUSY);
    IS(ReadFileEx(file, back[0], 8, &two, on_end), TRUE);
    IS(GetLastError(), ERROR_SUCCESS);
    IS(ReadFileEx(file, back[1], 4, &three, on_end), TRUE);
    IS(WaitForSingleObject(GetCurrentThread(), 1), WAIT_TIMEOUT);
    IS(called, 0);
    IS(WaitForSingleObjectEx(GetCurrentThread(), INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(called, 2); /* in their order */
    IS(which[0] == &two && which[1] == &three, TRUE);
    IS(bytes, 4);
    IS(strcmp(back[0], "written") || strcmp(back[1], "itte"), 0);
    DWORD n = 0;
    IS(GetOverlappedResult(file, &two, &n, TRUE), TRUE);
    IS(n, 8);
    IS(SleepEx(0, TRUE), 0); /* no more */

    called = 0;
    one = at(STORE_SIZE); /* the end of the file is reported at once */
    FAILS(ReadFileEx(file, back[2], 8, &one, on_end), FALSE, ERROR_HANDLE_EOF);
    FAILS(ReadFileEx(file, KERNEL_ADDRESS, 8, &two, on_end), FALSE, ERROR_NOACCESS);
    FAILS(ReadFileEx(NULL, back[2], 8, &two, on_end), FALSE, ERROR_INVALID_HANDLE);
    FAILS(ReadFileEx(file, back[2], 8, NULL, on_end), FALSE, ERROR_INVALID_PARAMETER);
    FAILS(WriteFileEx(GetStdHandle(STD_OUTPUT_HANDLE), text, 8, &two, on_end), FALSE,
          ERROR_INVALID_PARAMETER);
    one.OffsetHigh = 1; /* 4 GB after what is there */
    one.Offset = 8;
    FAILS(ReadFileEx(file, back[2], 8, &one, on_end), FALSE, ERROR_HANDLE_EOF);
    IS(SleepEx(0, TRUE), 0);
    IS(called, 0);
    one = at(WARNS); /* fails, and has been done: what the routine gets */
    FAILS(ReadFileEx(file, back[2], 8, &one, on_end), FALSE, ERROR_MORE_DATA);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(called, 1);
    IS(error, ERROR_MORE_DATA);
}

/* An event is set, and the block says how much it was. */
static void check_overlapped(void)
{
    char text[8] = "1234567";
    DWORD n = 0;
    struct end end = { STATUS_SUCCESS, 5 };
    OVERLAPPED one = at(8);
    one.hEvent = CreateEventA(NULL, TRUE, FALSE, NULL);
    IS(WriteFile(file, text, 8, NULL, &one), TRUE);
    IS(WaitForSingleObject(one.hEvent, 0), WAIT_OBJECT_0);
    IS(GetOverlappedResult(file, &one, &n, TRUE) && n == 8, TRUE);
    IS(ResetEvent(one.hEvent), TRUE);
    one.OffsetHigh = 1;
    FAILS(ReadFile(file, text, 8, &n, &one), FALSE, ERROR_HANDLE_EOF);
    one.hEvent = CreateEventA(NULL, TRUE, FALSE, NULL);
    IS(DeviceIoControl(file, END_WITH, &end, sizeof end, text, sizeof text, NULL, &one), TRUE);
    IS(WaitForSingleObject(one.hEvent, 0), WAIT_OBJECT_0);
    IS(GetOverlappedResult(file, &one, &n, TRUE) && n == 5, TRUE);
    end.status = STATUS_DISK_FULL;
    IS(DeviceIoControl(file, END_WITH, &end, sizeof end, text, sizeof text, &n, &one), FALSE);
    FAILS(GetOverlappedResult(file, &one, &n, TRUE), FALSE, ERROR_DISK_FULL);
    HANDLE again = CreateFileA("\\\\?\\Plain", GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
    IS(again != INVALID_HANDLE_VALUE && CloseHandle(again), TRUE);
}

/* --- Native. --- */

static NTSTATUS control(ULONG code, HANDLE event, PVOID in, ULONG input, PVOID out, ULONG output,
                        PIO_STATUS_BLOCK block)
{
    return NtDeviceIoControlFile(file, event, on_block, &given, block, code, in, input, out,
                                 output);
}

static void check_control(void)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, NULL);
    IO_STATUS_BLOCK block = { .Information = 0 };
    ULONG value = 0;
    struct end end = { STATUS_BUFFER_OVERFLOW, sizeof end };
    called = 0;
    IS(control(LATER, event, NULL, 0, &value, sizeof value, &block), STATUS_SUCCESS);
    IS(called, 0);
    IS(WaitForSingleObjectEx(event, INFINITE, TRUE), WAIT_OBJECT_0); /* the event comes first */
    IS(called, 0);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(called, 1);
    IS(given == &given && block_given == &block, TRUE);
    IS(value, 77);
    IS(block.Information, sizeof value);
    IS(control(END_WITH, NULL, &end, sizeof end, &end, sizeof end, &block),
       STATUS_BUFFER_OVERFLOW); /* a warning */
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    end = (struct end){ STATUS_DISK_FULL, 0 };
    IS(control(END_WITH, NULL, &end, sizeof end, &end, sizeof end, &block), STATUS_DISK_FULL);
    IS(SleepEx(0, TRUE), 0);
    IS(called, 2);
    CloseHandle(event);
}

static NTSTATUS transfer(BOOL writes, PVOID routine)
{
    static IO_STATUS_BLOCK block;
    static char buffer[4];
    LARGE_INTEGER offset = { .QuadPart = 0 };
    return (writes ? NtWriteFile : NtReadFile)(file, NULL, routine, NULL, &block, buffer,
                                               sizeof buffer, &offset, NULL);
}

/* As many as fit; then the device is not asked. */
static void check_room(void)
{
    called = 0;
    for (int i = 0; i < APCS; i++)
        if (transfer(i % 2, on_block) != STATUS_SUCCESS)
            failures++;
    IS(transfer(FALSE, on_block), STATUS_INSUFFICIENT_RESOURCES);
    IS(transfer(TRUE, on_block), STATUS_INSUFFICIENT_RESOURCES);
    IS(transfer(TRUE, NULL), STATUS_SUCCESS);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(called, APCS);
    IS(transfer(FALSE, on_block), STATUS_SUCCESS);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(called, APCS + 1);
}

/* --- A routine that is none, a thread that ends. --- */

static ULONG_PTR went_to;
static VOID NTAPI nothing(VOID) {}
static LONG CALLBACK come_back(EXCEPTION_POINTERS *e)
{
    if (e->ExceptionRecord->ExceptionCode != STATUS_ACCESS_VIOLATION)
        return EXCEPTION_CONTINUE_SEARCH;
    went_to = e->ContextRecord->Rip;
    e->ContextRecord->Rip = (ULONG_PTR)nothing;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static void check_wrong_routine(void)
{
    PVOID handler = AddVectoredExceptionHandler(1, come_back);
    IS(transfer(FALSE, KERNEL_ADDRESS), STATUS_SUCCESS);
    IS(SleepEx(INFINITE, TRUE), WAIT_IO_COMPLETION);
    IS(went_to, KERNEL_ADDRESS);
    RemoveVectoredExceptionHandler(handler);
}

static DWORD WINAPI pend(LPVOID block) { return control(PEND, NULL, NULL, 0, NULL, 0, block); }

static ULONG_PTR pending(void)
{
    IO_STATUS_BLOCK block;
    NtDeviceIoControlFile(file, NULL, NULL, NULL, &block, PENDS, NULL, 0, NULL, 0);
    return block.Information;
}

static void check_end(void)
{
    IO_STATUS_BLOCK block;
    DWORD code = 0;
    HANDLE thread = CreateThread(NULL, 0, pend, &block, 0, NULL);
    called = 0;
    while (!pending())
        Sleep(1);
    IS(TerminateThread(thread, 9), TRUE);
    IS(WaitForSingleObject(thread, 60000), WAIT_OBJECT_0);
    IS(GetExitCodeThread(thread, &code), TRUE);
    IS(code, 9);
    IS(pending(), 0);
    IS(called, 0);
    CloseHandle(thread);
}

/* --- What requests leave of the kernel's memory, those that fail too: nothing. --- */

static void request_often(void)
{
    static char text[3000];
    DWORD n;
    for (unsigned i = 0; i < REQUESTS; i++) {
        DeviceIoControl(file, ECHO, text, sizeof text, text, sizeof text, &n, NULL);
        DeviceIoControl(file, ECHO, NULL, 1, text, sizeof text, &n, NULL);
        DeviceIoControl(file, ECHO, text, sizeof text, NULL, 1, &n, NULL);
        DeviceIoControl(file, SUM, text, sizeof text, text, sizeof text, &n, NULL);
        DeviceIoControl(file, FILL, text, sizeof text, NULL, 1, &n, NULL);
        DeviceIoControl(file, COPY, text, sizeof text, text, sizeof text, &n, NULL);
        DeviceIoControl(file, UNKNOWN, text, sizeof text, text, sizeof text, &n, NULL);
        CloseHandle(CreateFileA("\\\\.\\Plain", GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL));
        CreateFileA("\\\\.\\Plain\\x", GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
    }
}

static ULONGLONG available(void)
{
    MEMORYSTATUSEX m = { .dwLength = sizeof m };
    GlobalMemoryStatusEx(&m);
    return m.ullAvailPhys;
}

static void check_memory(void)
{
    request_often(); /* what is kept for the next ones */
    ULONGLONG before = available();
    request_often();
    IS(available(), before);
}

int main(void)
{
    file =
        CreateFileA("\\\\.\\Plain", GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
    check_win32();
    check_overlapped();
    check_control();
    check_room();
    check_wrong_routine();
    check_end();
    check_memory();
    CloseHandle(file);
    return check_result();
}
