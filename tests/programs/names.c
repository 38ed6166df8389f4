/* SPDX-License-Identifier: MIT */
/* Events, semaphores and mutexes with names. */
#include "nt.h"
#include <string.h>

NTSTATUS NTAPI NtCreateEvent(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES, ULONG, BOOLEAN);
NTSTATUS NTAPI NtOpenEvent(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES);
NTSTATUS NTAPI NtOpenMutant(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES);

static NTSTATUS create(const WCHAR *name, int length, ULONG flags, PHANDLE handle)
{
    UNICODE_STRING string = { (USHORT)length, (USHORT)length, (WCHAR *)name };
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes,
                                     .ObjectName = &string,
                                     .Attributes = flags };
    return NtCreateEvent(handle, EVENT_ALL_ACCESS, &attributes, 0, FALSE);
}
#define CREATE(name, flags) create(name, sizeof(name) - sizeof(WCHAR), flags, &handle)

static NTSTATUS open_by(NTSTATUS NTAPI function(PHANDLE, ACCESS_MASK, POBJECT_ATTRIBUTES),
                        const WCHAR *name)
{
    UNICODE_STRING string;
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes, .ObjectName = &string };
    HANDLE handle;
    RtlInitUnicodeString(&string, name);
    NTSTATUS status = function(&handle, SYNCHRONIZE, &attributes);
    if (NT_SUCCESS(status))
        CloseHandle(handle);
    return status;
}

static void check_name_statuses(void)
{
    HANDLE handle, another;
    static WCHAR long_name[400] = L"\\BaseNamedObjects\\";
    OBJECT_ATTRIBUTES attributes = { .Length = sizeof attributes };
    UNICODE_STRING string = { 10, 10, KERNEL_ADDRESS };
    for (int i = 18; i < 400; i++)
        long_name[i] = 'x';
    IS(CREATE(L"\\BaseNamedObjects\\one", 0), STATUS_SUCCESS);
    IS(create(L"\\BaseNamedObjects\\one", 42, 0, &another), STATUS_OBJECT_NAME_COLLISION);
    IS(create(L"\\BaseNamedObjects\\one", 42, OBJ_OPENIF, &another), STATUS_OBJECT_NAME_EXISTS);
    IS(CloseHandle(another), TRUE);
    IS(create(L"\\BaseNamedObjects\\One", 42, 0, &another), STATUS_SUCCESS); /* letters count */
    IS(CloseHandle(another), TRUE);
    IS(open_by(NtOpenEvent, L"\\BaseNamedObjects\\one"), STATUS_SUCCESS);
    IS(open_by(NtOpenMutant, L"\\BaseNamedObjects\\one"), STATUS_OBJECT_TYPE_MISMATCH);
    IS(open_by(NtOpenEvent, L"\\BaseNamedObjects\\two"), STATUS_OBJECT_NAME_NOT_FOUND);
    IS(open_by(NtOpenEvent, L""), STATUS_OBJECT_PATH_SYNTAX_BAD);
    IS(NtOpenEvent(&another, SYNCHRONIZE, NULL), STATUS_INVALID_PARAMETER);
    IS(NtOpenEvent(KERNEL_ADDRESS, SYNCHRONIZE, &attributes), STATUS_ACCESS_VIOLATION);
    IS(CloseHandle(handle), TRUE);
    IS(open_by(NtOpenEvent, L"\\BaseNamedObjects\\one"), STATUS_OBJECT_NAME_NOT_FOUND);
    IS(CREATE(L"one", 0), STATUS_OBJECT_PATH_SYNTAX_BAD);
    IS(CREATE(L"\\Nowhere\\one", 0), STATUS_OBJECT_PATH_NOT_FOUND);
    IS(CREATE(L"\\BaseNamedObjects\\", 0), STATUS_OBJECT_PATH_NOT_FOUND);
    IS(CREATE(L"\\BaseNamedObjects\\a\\b", 0), STATUS_OBJECT_PATH_NOT_FOUND);
    IS(create(L"\\BaseNamedObjects\\one", 41, 0, &handle), STATUS_OBJECT_NAME_INVALID);
    IS(create(long_name, 2 * 318, 0, &handle), STATUS_SUCCESS);
    IS(CloseHandle(handle), TRUE);
    IS(create(long_name, 2 * 319, 0, &handle), STATUS_OBJECT_NAME_INVALID);
    IS(create(KERNEL_ADDRESS, 42, 0, &handle), STATUS_ACCESS_VIOLATION);
    attributes.ObjectName = &string;
    IS(NtOpenEvent(&another, SYNCHRONIZE, &attributes), STATUS_ACCESS_VIOLATION);
    attributes.ObjectName = KERNEL_ADDRESS;
    IS(NtOpenEvent(&another, SYNCHRONIZE, &attributes), STATUS_ACCESS_VIOLATION);
    attributes.RootDirectory = &string;
    IS(NtOpenEvent(&another, SYNCHRONIZE, &attributes), STATUS_INVALID_HANDLE);
    attributes.Length--;
    IS(NtOpenEvent(&another, SYNCHRONIZE, &attributes), STATUS_INVALID_PARAMETER);
}

static void check_names(void)
{
    HANDLE first = CreateEventW(NULL, TRUE, FALSE, L"Local\\ready"), second, mutex, semaphore;
    char name[MAX_PATH + 20];
    LONG before = 99;
    IS(first && GetLastError() == ERROR_SUCCESS, TRUE);
    second = CreateEventA(NULL, FALSE, TRUE, "ready"); /* its kind and state are as they are */
    IS(second && GetLastError() == ERROR_ALREADY_EXISTS, TRUE);
    IS(WaitForSingleObject(second, 0), WAIT_TIMEOUT);
    IS(SetEvent(first), TRUE);
    IS(WaitForSingleObject(second, 0), WAIT_OBJECT_0);
    IS(WaitForSingleObject(second, 0), WAIT_OBJECT_0);
    FAILS(CreateMutexA(NULL, TRUE, "ready"), NULL, ERROR_INVALID_HANDLE);
    FAILS(OpenSemaphoreW(SYNCHRONIZE, FALSE, L"ready"), NULL, ERROR_INVALID_HANDLE);
    IS(CloseHandle(first) && CloseHandle(second), TRUE);
    FAILS(OpenEventW(SYNCHRONIZE, FALSE, L"ready"), NULL, ERROR_FILE_NOT_FOUND);
    FAILS(OpenEventA(SYNCHRONIZE, FALSE, NULL), NULL, ERROR_INVALID_PARAMETER);
    FAILS(CreateEventA(NULL, FALSE, FALSE, "a\\b"), NULL, ERROR_PATH_NOT_FOUND);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    FAILS(CreateEventA(NULL, FALSE, FALSE, name), NULL, ERROR_FILENAME_EXCED_RANGE);
    mutex = CreateMutexW(NULL, TRUE, L"Global\\one at a time");
    second = OpenMutexA(SYNCHRONIZE, FALSE, "one at a time");
    IS(WaitForSingleObject(second, 0), WAIT_OBJECT_0); /* the owner is the same thread */
    IS(ReleaseMutex(second) && ReleaseMutex(mutex), TRUE);
    IS(ReleaseMutex(mutex), FALSE);
    IS(CloseHandle(second) && CloseHandle(mutex), TRUE);
    semaphore = CreateSemaphoreExA(NULL, 2, 5, "places", 0, SEMAPHORE_ALL_ACCESS);
    second = OpenSemaphoreA(SEMAPHORE_MODIFY_STATE, FALSE, "places");
    IS(ReleaseSemaphore(second, 3, &before), TRUE);
    IS(before, 2);
    IS(WaitForSingleObject(second, 0), WAIT_FAILED); /* what it was not opened for */
    IS(GetLastError(), ERROR_ACCESS_DENIED);
    IS(ReleaseSemaphore(semaphore, 1, NULL), FALSE);
    IS(CloseHandle(second) && CloseHandle(semaphore), TRUE);
}

int main(void)
{
    check_name_statuses();
    check_names();
    return check_result();
}
