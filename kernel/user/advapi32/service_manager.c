/* SPDX-License-Identifier: MIT */
/* The service manager, for programs that load their own driver: DRIVER= has loaded it before they
 * begin. NT: there is no registry, and no other service. What a program creates is its own; each
 * loaded driver is a service by its file's name without .sys, too. One that is stopped stays until
 * the run ends. Source: Windows' documentation of each routine. */
#include "kernel/user/advapi32/trace.h"
#include <winsvc.h>

#define SERVICES 16
#define NAME_MAX 256u /* as documented, without the NUL */
#define STATUS_IMAGE_ALREADY_LOADED ((NTSTATUS)0xC000010E)
#define SE_LOAD_DRIVER_PRIVILEGE 10

NTSTATUS NTAPI NtLoadDriver(PUNICODE_STRING DriverServiceName);
NTSTATUS NTAPI write_console(const char *text, ULONG length);

static struct service {
    WCHAR name[NAME_MAX + 1]; /* L: lock; empty: free */
    WCHAR image[NAME_MAX + 1];
    unsigned handles;
    BOOL running, deleted;
} services[SERVICES];
static char manager; /* its address is the manager's handle */
static SRWLOCK lock = SRWLOCK_INIT;

static BOOL end_call(DWORD error)
{
    ReleaseSRWLockExclusive(&lock);
    if (error)
        SetLastError(error);
    return !error;
}

static WCHAR lower_unit(WCHAR c) { return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c; }

static BOOL same_name(const WCHAR *a, const WCHAR *b)
{
    for (; *a && lower_unit(*a) == lower_unit(*b); a++)
        b++;
    return lower_unit(*a) == lower_unit(*b);
}

/* False: the text is longer than a name. */
static BOOL copy_name(WCHAR *to, const WCHAR *from)
{
    unsigned n = 0;
    for (; from[n] && n < NAME_MAX; n++)
        to[n] = from[n];
    to[n] = 0;
    return !from[n];
}

static const WCHAR *widen_service(WCHAR *to, const char *from)
{
    unsigned n = 0;
    for (; from && from[n] && n < NAME_MAX; n++)
        to[n] = (unsigned char)from[n];
    to[n] = 0;
    return from ? to : NULL;
}

/* The file's name without folders and quotes. */
static const WCHAR *file_of(const WCHAR *path)
{
    const WCHAR *last = path;
    for (; *path; path++)
        if (*path == '\\' || *path == '/' || *path == '"')
            last = path[1] ? path + 1 : last;
    return last;
}

/* STATUS_IMAGE_ALREADY_LOADED: it is loaded. NT: Windows' service manager is a process of its own,
 * which has the privilege. */
static NTSTATUS load_driver(const WCHAR *image)
{
    static const WCHAR start[] = L"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\";
    WCHAR text[ARRAYSIZE(start) + NAME_MAX + 1];
    unsigned n = 0;
    for (; start[n]; n++)
        text[n] = start[n];
    for (; *image && *image != '.' && *image != '"'; image++)
        text[n++] = *image;
    UNICODE_STRING name = { (USHORT)(n * sizeof(WCHAR)), (USHORT)(n * sizeof(WCHAR)), text };
    BOOLEAN had, was;
    RtlAdjustPrivilege(SE_LOAD_DRIVER_PRIVILEGE, TRUE, FALSE, &had);
    const NTSTATUS status = NtLoadDriver(&name);
    RtlAdjustPrivilege(SE_LOAD_DRIVER_PRIVILEGE, had, FALSE, &was);
    return status;
}

static struct service *find_service(const WCHAR *name)
{
    for (unsigned i = 0; i < SERVICES; i++)
        if (services[i].name[0] && same_name(services[i].name, name))
            return &services[i];
    return NULL;
}

static struct service *add_service(const WCHAR *name, const WCHAR *image, BOOL running)
{
    for (unsigned i = 0; i < SERVICES; i++)
        if (!services[i].name[0]) {
            struct service *s = &services[i];
            *s = (struct service){ .handles = 1, .running = running };
            copy_name(s->name, name);
            copy_name(s->image, image);
            return s;
        }
    return NULL;
}

/* Takes the lock, and finds what a handle means; NULL: nothing. */
static struct service *lock_service(SC_HANDLE handle)
{
    AcquireSRWLockExclusive(&lock);
    for (unsigned i = 0; i < SERVICES; i++)
        if (handle == (SC_HANDLE)&services[i] && services[i].handles)
            return &services[i];
    return NULL;
}

/* ERROR_DATABASE_DOES_NOT_EXIST. NT: lpMachineName has no effect. */
SC_HANDLE WINAPI OpenSCManagerW(LPCWSTR lpMachineName, LPCWSTR lpDatabaseName,
                                DWORD dwDesiredAccess)
{
    if (!lpDatabaseName || same_name(lpDatabaseName, SERVICES_ACTIVE_DATABASEW))
        return (SC_HANDLE)&manager;
    SetLastError(ERROR_DATABASE_DOES_NOT_EXIST);
    return NULL;
}

SC_HANDLE WINAPI OpenSCManagerA(LPCSTR lpMachineName, LPCSTR lpDatabaseName, DWORD dwDesiredAccess)
{
    WCHAR database[NAME_MAX + 1];
    return OpenSCManagerW(NULL, widen_service(database, lpDatabaseName), dwDesiredAccess);
}

/* ERROR_INVALID_HANDLE; ERROR_INVALID_NAME; ERROR_INVALID_PARAMETER: no kernel driver (NT: those
 * alone are services here), or no path; ERROR_SERVICE_EXISTS; ERROR_SERVICE_MARKED_FOR_DELETE;
 * ERROR_NOT_ENOUGH_MEMORY: the seventeenth. */
SC_HANDLE WINAPI CreateServiceW(SC_HANDLE hSCManager, LPCWSTR lpServiceName, LPCWSTR lpDisplayName,
                                DWORD dwDesiredAccess, DWORD dwServiceType, DWORD dwStartType,
                                DWORD dwErrorControl, LPCWSTR lpBinaryPathName,
                                LPCWSTR lpLoadOrderGroup, LPDWORD lpdwTagId, LPCWSTR lpDependencies,
                                LPCWSTR lpServiceStartName, LPCWSTR lpPassword)
{
    WCHAR name[NAME_MAX + 1];
    struct service *s = NULL;
    AcquireSRWLockExclusive(&lock);
    if (hSCManager != (SC_HANDLE)&manager)
        return end_call(ERROR_INVALID_HANDLE), NULL;
    if (!lpServiceName || !*lpServiceName || !copy_name(name, lpServiceName) ||
        file_of(name) != name)
        return end_call(ERROR_INVALID_NAME), NULL;
    if (dwServiceType != SERVICE_KERNEL_DRIVER || !lpBinaryPathName || !*lpBinaryPathName)
        return end_call(ERROR_INVALID_PARAMETER), NULL;
    s = find_service(name);
    if (s)
        return end_call(s->deleted ? ERROR_SERVICE_MARKED_FOR_DELETE : ERROR_SERVICE_EXISTS), NULL;
    s = add_service(name, file_of(lpBinaryPathName), FALSE);
    end_call(s ? ERROR_SUCCESS : ERROR_NOT_ENOUGH_MEMORY);
    return (SC_HANDLE)s;
}

SC_HANDLE WINAPI CreateServiceA(SC_HANDLE hSCManager, LPCSTR lpServiceName, LPCSTR lpDisplayName,
                                DWORD dwDesiredAccess, DWORD dwServiceType, DWORD dwStartType,
                                DWORD dwErrorControl, LPCSTR lpBinaryPathName,
                                LPCSTR lpLoadOrderGroup, LPDWORD lpdwTagId, LPCSTR lpDependencies,
                                LPCSTR lpServiceStartName, LPCSTR lpPassword)
{
    WCHAR name[NAME_MAX + 1], path[NAME_MAX + 1];
    return CreateServiceW(hSCManager, widen_service(name, lpServiceName), NULL, dwDesiredAccess,
                          dwServiceType, dwStartType, dwErrorControl,
                          widen_service(path, lpBinaryPathName), NULL, lpdwTagId, NULL, NULL, NULL);
}

/* ERROR_INVALID_HANDLE; ERROR_INVALID_NAME; ERROR_SERVICE_DOES_NOT_EXIST. */
SC_HANDLE WINAPI OpenServiceW(SC_HANDLE hSCManager, LPCWSTR lpServiceName, DWORD dwDesiredAccess)
{
    struct service *s;
    AcquireSRWLockExclusive(&lock);
    if (hSCManager != (SC_HANDLE)&manager)
        return end_call(ERROR_INVALID_HANDLE), NULL;
    if (!lpServiceName || !*lpServiceName)
        return end_call(ERROR_INVALID_NAME), NULL;
    s = find_service(lpServiceName);
    if (s)
        s->handles++;
    else if (load_driver(lpServiceName) == STATUS_IMAGE_ALREADY_LOADED)
        s = add_service(lpServiceName, lpServiceName, TRUE);
    end_call(s ? ERROR_SUCCESS : ERROR_SERVICE_DOES_NOT_EXIST);
    return (SC_HANDLE)s;
}

SC_HANDLE WINAPI OpenServiceA(SC_HANDLE hSCManager, LPCSTR lpServiceName, DWORD dwDesiredAccess)
{
    WCHAR name[NAME_MAX + 1];
    return OpenServiceW(hSCManager, widen_service(name, lpServiceName), dwDesiredAccess);
}

static void print_missing(const WCHAR *image)
{
    char line[NAME_MAX + 80];
    unsigned n = 0, at = 0;
    const char *const words[] = { "# StartService: ", " is not loaded: DRIVER= loads it\n" };
    for (unsigned i = 0; i < 2; i++) {
        for (at = 0; words[i][at]; at++)
            line[n++] = words[i][at];
        for (at = 0; !i && image[at]; at++)
            line[n++] = image[at] < 0x7f ? (char)image[at] : '?';
    }
    write_console(line, n);
}

/* ERROR_INVALID_HANDLE; ERROR_SERVICE_MARKED_FOR_DELETE; ERROR_SERVICE_ALREADY_RUNNING: DRIVER= has
 * loaded it; ERROR_FILE_NOT_FOUND: it has not, as a line says. */
WINBOOL WINAPI StartServiceW(SC_HANDLE hService, DWORD dwNumServiceArgs, LPCWSTR *lpArgs)
{
    struct service *s = lock_service(hService);
    if (!s)
        return end_call(ERROR_INVALID_HANDLE);
    if (s->deleted)
        return end_call(ERROR_SERVICE_MARKED_FOR_DELETE);
    if (load_driver(s->image) != STATUS_IMAGE_ALREADY_LOADED) {
        print_missing(s->image);
        return end_call(ERROR_FILE_NOT_FOUND);
    }
    s->running = TRUE;
    return end_call(ERROR_SERVICE_ALREADY_RUNNING);
}

WINBOOL WINAPI StartServiceA(SC_HANDLE hService, DWORD dwNumServiceArgs, LPCSTR *lpArgs)
{
    return StartServiceW(hService, dwNumServiceArgs, NULL);
}

static SERVICE_STATUS status_of(const struct service *s)
{
    return (SERVICE_STATUS){ .dwServiceType = SERVICE_KERNEL_DRIVER,
                             .dwCurrentState = s->running ? SERVICE_RUNNING : SERVICE_STOPPED,
                             .dwControlsAccepted = s->running ? SERVICE_ACCEPT_STOP : 0 };
}

/* ERROR_INVALID_HANDLE. */
WINBOOL WINAPI QueryServiceStatus(SC_HANDLE hService, LPSERVICE_STATUS lpServiceStatus)
{
    const struct service *s = lock_service(hService);
    if (s)
        *lpServiceStatus = status_of(s);
    return end_call(s ? ERROR_SUCCESS : ERROR_INVALID_HANDLE);
}

/* ERROR_INVALID_LEVEL; ERROR_INSUFFICIENT_BUFFER; ERROR_INVALID_HANDLE. */
WINBOOL WINAPI QueryServiceStatusEx(SC_HANDLE hService, SC_STATUS_TYPE InfoLevel, LPBYTE lpBuffer,
                                    DWORD cbBufSize, LPDWORD pcbBytesNeeded)
{
    SERVICE_STATUS_PROCESS process = { .dwProcessId = 0 };
    const struct service *s = lock_service(hService);
    if (InfoLevel != SC_STATUS_PROCESS_INFO)
        return end_call(ERROR_INVALID_LEVEL);
    *pcbBytesNeeded = sizeof process;
    if (cbBufSize < sizeof process)
        return end_call(ERROR_INSUFFICIENT_BUFFER);
    if (!s)
        return end_call(ERROR_INVALID_HANDLE);
    const SERVICE_STATUS status = status_of(s);
    __builtin_memcpy(&process, &status, sizeof status); /* it begins so */
    *(SERVICE_STATUS_PROCESS *)lpBuffer = process;
    return end_call(ERROR_SUCCESS);
}

/* ERROR_INVALID_HANDLE; ERROR_INVALID_SERVICE_CONTROL: a driver can be stopped and interrogated;
 * ERROR_SERVICE_NOT_ACTIVE. */
WINBOOL WINAPI ControlService(SC_HANDLE hService, DWORD dwControl, LPSERVICE_STATUS lpServiceStatus)
{
    struct service *s = lock_service(hService);
    if (!s)
        return end_call(ERROR_INVALID_HANDLE);
    if (dwControl != SERVICE_CONTROL_STOP && dwControl != SERVICE_CONTROL_INTERROGATE)
        return end_call(ERROR_INVALID_SERVICE_CONTROL);
    const BOOL was = s->running;
    s->running &= dwControl != SERVICE_CONTROL_STOP;
    *lpServiceStatus = status_of(s);
    return end_call(was ? ERROR_SUCCESS : ERROR_SERVICE_NOT_ACTIVE);
}

/* Gone when its last handle is closed. ERROR_INVALID_HANDLE; ERROR_SERVICE_MARKED_FOR_DELETE. */
WINBOOL WINAPI DeleteService(SC_HANDLE hService)
{
    struct service *s = lock_service(hService);
    if (!s || s->deleted)
        return end_call(s ? ERROR_SERVICE_MARKED_FOR_DELETE : ERROR_INVALID_HANDLE);
    s->deleted = TRUE;
    return end_call(ERROR_SUCCESS);
}

/* ERROR_INVALID_HANDLE. */
WINBOOL WINAPI CloseServiceHandle(SC_HANDLE hSCObject)
{
    struct service *s = lock_service(hSCObject);
    if (s && !--s->handles && s->deleted)
        s->name[0] = 0;
    return end_call(s || hSCObject == (SC_HANDLE)&manager ? ERROR_SUCCESS : ERROR_INVALID_HANDLE);
}
