/* SPDX-License-Identifier: MIT */
/* A program that installs its own driver, hello_driver.sys, which DRIVER= has loaded. */
#include "../programs/check.h"
#include <winsvc.h>

static DWORD state(SC_HANDLE service)
{
    SERVICE_STATUS_PROCESS s = { 0 };
    DWORD needed = 0;
    FAILS(QueryServiceStatusEx(service, SC_STATUS_PROCESS_INFO, (LPBYTE)&s, 35, &needed), FALSE,
          ERROR_INSUFFICIENT_BUFFER);
    IS(needed, sizeof s);
    IS(QueryServiceStatusEx(service, SC_STATUS_PROCESS_INFO, (LPBYTE)&s, sizeof s, &needed), TRUE);
    IS(s.dwServiceType, SERVICE_KERNEL_DRIVER);
    return s.dwCurrentState;
}

static SC_HANDLE create(SC_HANDLE manager, const char *name, const char *path)
{
    return CreateServiceA(manager, name, name, SERVICE_ALL_ACCESS, SERVICE_KERNEL_DRIVER,
                          SERVICE_DEMAND_START, SERVICE_ERROR_NORMAL, path, NULL, NULL, NULL, NULL,
                          NULL);
}

/* The service manager has the privilege of its own, a program has to enable it. */
static void load_without_manager(void)
{
    typedef LONG(NTAPI * LOAD_DRIVER)(const void *);
    typedef LONG(NTAPI * ADJUST_PRIVILEGE)(ULONG, BOOLEAN, BOOLEAN, BOOLEAN *);
    static WCHAR path[] = L"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\hello_driver";
    struct {
        USHORT length, size;
        WCHAR *buffer;
    } name = { sizeof path - 2, sizeof path, path };
    const HMODULE ntdll = GetModuleHandleA("ntdll.dll");
    const LOAD_DRIVER load = (LOAD_DRIVER)(void *)GetProcAddress(ntdll, "NtLoadDriver");
    const ADJUST_PRIVILEGE adjust =
        (ADJUST_PRIVILEGE)(void *)GetProcAddress(ntdll, "RtlAdjustPrivilege");
    BOOLEAN was;
    IS(load(&name), (LONG)0xc0000061);
    IS(adjust(10, TRUE, FALSE, &was), 0);
    IS(was, FALSE);
    IS(load(&name), (LONG)0xc000010e);
    IS(load(NULL), (LONG)0xc0000005);
    for (unsigned i = 0; i < 3; i++)
        IS((name.length = (USHORT[]){ 0, 3, 642 }[i], load(&name)), (LONG)0xc0000033);
    IS(adjust(10, FALSE, FALSE, &was), 0);
    IS(was, TRUE);
    IS(load(NULL), (LONG)0xc0000061);
}

int main(void)
{
    SERVICE_STATUS status;
    SC_HANDLE manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_ALL_ACCESS), service, same, other;
    FAILS(OpenSCManagerA(NULL, "Other", 0), NULL, ERROR_DATABASE_DOES_NOT_EXIST);
    FAILS(OpenServiceA(manager, "Mine", SERVICE_ALL_ACCESS), NULL, ERROR_SERVICE_DOES_NOT_EXIST);
    FAILS(create(NULL, "Mine", "x.sys"), NULL, ERROR_INVALID_HANDLE);
    FAILS(create(manager, "a\\b", "x.sys"), NULL, ERROR_INVALID_NAME);
    FAILS(create(manager, "Mine", ""), NULL, ERROR_INVALID_PARAMETER);
    service = create(manager, "Mine", "\"C:\\Program Files\\It\\HELLO_driver.sys\"");
    FAILS(create(manager, "MINE", "x.sys"), NULL, ERROR_SERVICE_EXISTS);
    same = OpenServiceW(manager, L"mine", SERVICE_ALL_ACCESS);
    IS(state(service), SERVICE_STOPPED);
    FAILS(ControlService(service, SERVICE_CONTROL_STOP, &status), FALSE, ERROR_SERVICE_NOT_ACTIVE);
    FAILS(StartServiceA(service, 0, NULL), FALSE, ERROR_SERVICE_ALREADY_RUNNING);
    IS(state(same), SERVICE_RUNNING);
    FAILS(ControlService(same, SERVICE_CONTROL_PAUSE, &status), FALSE,
          ERROR_INVALID_SERVICE_CONTROL);
    IS(ControlService(same, SERVICE_CONTROL_STOP, &status), TRUE);
    IS(status.dwCurrentState, SERVICE_STOPPED);
    IS(QueryServiceStatus(service, &status), TRUE);
    IS(status.dwCurrentState, SERVICE_STOPPED);
    IS(DeleteService(service), TRUE);
    FAILS(DeleteService(same), FALSE, ERROR_SERVICE_MARKED_FOR_DELETE);
    FAILS(StartServiceW(same, 0, NULL), FALSE, ERROR_SERVICE_MARKED_FOR_DELETE);
    IS(CloseServiceHandle(service), TRUE);
    FAILS(create(manager, "Mine", "x.sys"), NULL, ERROR_SERVICE_MARKED_FOR_DELETE);
    IS(CloseServiceHandle(same), TRUE);
    FAILS(QueryServiceStatus(same, &status), FALSE, ERROR_INVALID_HANDLE);
    other = create(manager, "Mine", "C:\\none.sys");
    FAILS(StartServiceA(other, 0, NULL), FALSE, ERROR_FILE_NOT_FOUND);
    service = OpenServiceA(manager, "hello_driver", SERVICE_ALL_ACCESS);
    IS(state(service), SERVICE_RUNNING);
    IS(CloseServiceHandle(manager), TRUE);
    FAILS(CloseServiceHandle(NULL), FALSE, ERROR_INVALID_HANDLE);
    load_without_manager();
    return check_result();
}
