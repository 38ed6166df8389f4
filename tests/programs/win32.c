/* SPDX-License-Identifier: MIT */
/* Functions of kernel32 that the other programs call by another form, or not at all: objects by
 * their Ex forms, consoles, versions, memory of a process by its handle, modules, messages. */
#define _WIN32_WINNT 0x0a00
#include <windows.h>
#include <evntrace.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"

/* What objects do tests/kernel/dispatcher.c proves; here is what kernel32 makes of flags, and of
 * names: nothing. */
static void objects(void)
{
    LONG before;
    HANDLE event = CreateEventExW(NULL, L"a name", CREATE_EVENT_MANUAL_RESET, EVENT_ALL_ACCESS);
    SetLastError(ERROR_ALREADY_EXISTS);
    HANDLE other = CreateEventA(NULL, FALSE, TRUE, "a name");
    IS(event && other && GetLastError() == ERROR_SUCCESS, 1);
    IS(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
    IS(WaitForSingleObject(other, 0), 0);
    IS(SetEvent(event) && ResetEvent(event), 1);
    IS(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
    IS(CloseHandle(event) && CloseHandle(other), 1);
    HANDLE mutex = CreateMutexExW(NULL, NULL, CREATE_MUTEX_INITIAL_OWNER, MUTEX_ALL_ACCESS);
    IS(ReleaseMutex(mutex), 1);
    FAILS(ReleaseMutex(mutex), 0, ERROR_NOT_OWNER);
    CloseHandle(mutex);
    mutex = CreateMutexA(NULL, TRUE, "a name");
    IS(ReleaseMutex(mutex) && CloseHandle(mutex), 1);
    CloseHandle(CreateMutexW(NULL, FALSE, L"a name"));
    HANDLE semaphore = CreateSemaphoreA(NULL, 1, 2, "a name");
    IS(WaitForSingleObject(semaphore, 0), 0);
    CloseHandle(semaphore);
    semaphore = CreateSemaphoreExW(NULL, 0, 9, NULL, 0, SEMAPHORE_ALL_ACCESS);
    IS(ReleaseSemaphore(semaphore, 2, &before) && before == 0, 1);
    FAILS(CreateSemaphoreW(NULL, 3, 2, NULL), NULL, ERROR_INVALID_PARAMETER);
    CloseHandle(semaphore);
}

static void console(void)
{
    HANDLE output = GetStdHandle(STD_OUTPUT_HANDLE);
    CPINFO info;
    DWORD mode;
    LARGE_INTEGER zero = { .QuadPart = 0 };
    IS(GetConsoleMode(output, &mode) && SetConsoleMode(output, mode), 1);
    IS(GetConsoleCP() == CP_UTF8 && GetConsoleOutputCP() == CP_UTF8 && GetOEMCP() == CP_UTF8, 1);
    IS(SetConsoleCP(CP_UTF8) && SetConsoleOutputCP(CP_UTF8), 1);
    IS(SetConsoleCP(1252) || SetConsoleOutputCP(1252), 0);
    IS(GetCPInfo(CP_UTF8, &info) && info.MaxCharSize == 4 && info.DefaultChar[0] == '?', 1);
    FAILS(GetCPInfo(932, &info), 0, ERROR_INVALID_PARAMETER);
    IS(IsDBCSLeadByteEx(CP_UTF8, 0x81), 0);
    IS(SetStdHandle(STD_ERROR_HANDLE, GetStdHandle(STD_ERROR_HANDLE)), 1);
    FAILS(SetFilePointerEx(output, zero, NULL, FILE_BEGIN), 0, ERROR_INVALID_FUNCTION);
    FAILS(GetFileAttributesExW(L"x", GetFileExInfoStandard, &info), 0, ERROR_FILE_NOT_FOUND);
    IS(FlushFileBuffers(output) && AreFileApisANSI(), 1);
    OutputDebugStringA("debug, ");
    OutputDebugStringW(L"as sixteen bits, and more of it than sixty-four characters, which go as "
                       L"two parts\n");
}

/* 10.0.19045 is what runs here. build 0: not asked. */
static BOOL is_version(DWORD major, DWORD minor, DWORD build, BYTE condition, BYTE of_minor)
{
    OSVERSIONINFOEXW info = { .dwMajorVersion = major,
                              .dwMinorVersion = minor,
                              .dwBuildNumber = build,
                              .dwPlatformId = VER_PLATFORM_WIN32_NT };
    DWORD fields =
        VER_MAJORVERSION | VER_MINORVERSION | VER_PLATFORMID | (build ? VER_BUILDNUMBER : 0);
    ULONGLONG conditions = VerSetConditionMask(0, VER_MAJORVERSION, condition);
    conditions = VerSetConditionMask(conditions, VER_MINORVERSION, of_minor);
    conditions = VerSetConditionMask(conditions, VER_PLATFORMID, VER_EQUAL);
    return VerifyVersionInfoW(&info, fields,
                              VerSetConditionMask(conditions, VER_BUILDNUMBER, condition));
}

static void versions(void)
{
    static const struct {
        WORD major, minor, build;
        BYTE condition, of_minor;
        BOOL holds;
    } asked[] = {
        { 6, 3, 0, VER_GREATER_EQUAL, VER_GREATER_EQUAL, TRUE }, /* IsWindowsVersionOrGreater */
        { 10, 0, 0, VER_GREATER_EQUAL, VER_GREATER_EQUAL, TRUE },
        { 10, 1, 0, VER_GREATER_EQUAL, VER_GREATER_EQUAL, FALSE },
        { 10, 0, 19046, VER_GREATER_EQUAL, VER_GREATER_EQUAL, FALSE },
        { 10, 0, 0, VER_GREATER, VER_GREATER, FALSE },
        { 6, 3, 0, VER_GREATER, VER_GREATER, TRUE },
        { 6, 3, 0, VER_LESS, VER_LESS, FALSE },
        { 11, 0, 0, VER_LESS, VER_LESS, TRUE },
        { 10, 0, 0, VER_LESS_EQUAL, VER_LESS_EQUAL, TRUE },
        { 6, 3, 0, VER_LESS_EQUAL, VER_LESS_EQUAL, FALSE },
        { 10, 0, 19045, VER_EQUAL, VER_EQUAL, TRUE },
        { 10, 0, 19044, VER_EQUAL, VER_EQUAL, FALSE },
        { 10, 1, 0, VER_EQUAL, VER_LESS, TRUE }, /* the first that differs decides */
        { 11, 0, 0, VER_EQUAL, VER_GREATER_EQUAL, FALSE },
        { 10, 0, 0, 0, 0, FALSE }, /* no condition */
    };
    OSVERSIONINFOEXW info = { .wProductType = VER_NT_SERVER };
    char name[MAX_COMPUTERNAME_LENGTH + 1];
    DWORD room = sizeof name, small = 1;
    for (unsigned i = 0; i < ARRAYSIZE(asked); i++) {
        SetLastError(0);
        IS(is_version(asked[i].major, asked[i].minor, asked[i].build, asked[i].condition,
                      asked[i].of_minor),
           asked[i].holds);
        IS(GetLastError(), asked[i].holds ? 0 : ERROR_OLD_WIN_VERSION);
    }
    FAILS(VerifyVersionInfoW(&info, VER_PRODUCT_TYPE, 1), 0, ERROR_BAD_ARGUMENTS);
    FAILS(VerifyVersionInfoW(&info, 0, 1), 0, ERROR_BAD_ARGUMENTS);
    IS(GetComputerNameA(name, &room) && room == 5 && !strcmp(name, "NTPMU"), 1);
    FAILS(GetComputerNameA(name, &small), 0, ERROR_BUFFER_OVERFLOW);
    IS(small, 6);
}

static void system_facts(void)
{
    OSVERSIONINFOEXW wide = { .dwOSVersionInfoSize = sizeof(OSVERSIONINFOW), .wProductType = 7 };
    OSVERSIONINFOA narrow = { .dwOSVersionInfoSize = sizeof narrow };
    MEMORYSTATUSEX room = { .dwLength = sizeof room };
    SYSTEM_INFO info;
    STARTUPINFOA start;
    STARTUPINFOW wide_start;
    SYSTEMTIME time;
    DWORD step, adjustment;
    BOOL off;
    memset(wide.szCSDVersion, 0xff, sizeof wide.szCSDVersion);
    IS(GetVersionExW((OSVERSIONINFOW *)&wide), 1);
    IS(wide.dwMajorVersion == 10 && !wide.dwMinorVersion && wide.dwBuildNumber == 19045, 1);
    IS(wide.dwPlatformId == VER_PLATFORM_WIN32_NT && !wide.szCSDVersion[127], 1);
    IS(wide.wProductType, 7); /* not of the short form */
    IS(GetVersionExA(&narrow) && narrow.dwBuildNumber == 19045, 1);
    IS(GetVersion(), 10 | 19045 << 16);
    IS(GlobalMemoryStatusEx(&room) && room.ullAvailPhys < room.ullTotalPhys, 1);
    GetNativeSystemInfo(&info);
    IS(info.wProcessorArchitecture, PROCESSOR_ARCHITECTURE_AMD64);
    IS(info.dwProcessorType, PROCESSOR_AMD_X8664);
    IS(info.dwPageSize == 4096 && info.dwAllocationGranularity == 65536, 1);
    memset(&start, 0xff, sizeof start);
    memset(&wide_start, 0xff, sizeof wide_start);
    GetStartupInfoA(&start);
    GetStartupInfoW(&wide_start);
    IS(start.cb == sizeof start && !start.lpTitle && !start.dwFlags, 1);
    IS(wide_start.cb == sizeof wide_start && !wide_start.lpTitle && !wide_start.dwFlags, 1);
    IS(GetSystemTimeAdjustment(&adjustment, &step, &off), 1);
    IS(adjustment == 10000 && step == 10000 && off, 1);
    GetSystemTime(&time);
    FAILS(SetSystemTime(&time), 0, ERROR_PRIVILEGE_NOT_HELD);
    IS(GetPriorityClass(GetCurrentProcess()), NORMAL_PRIORITY_CLASS);
    IS(SetPriorityClass(GetCurrentProcess(), NORMAL_PRIORITY_CLASS), 1);
    FAILS(SetPriorityClass(GetCurrentProcess(), HIGH_PRIORITY_CLASS), 0, ERROR_NOT_SUPPORTED);
    IS(SetErrorMode(SEM_NOGPFAULTERRORBOX), 0);
    IS(SetErrorMode(0), SEM_NOGPFAULTERRORBOX);
    IS(IsDebuggerPresent(), 0);
    IS(strstr(GetCommandLineA(), "\"a b\" c") && wcsstr(GetCommandLineW(), L"\"a b\" c"), 1);
}

static void memory(void)
{
    HANDLE self = GetCurrentProcess();
    MEMORY_BASIC_INFORMATION region;
    DWORD old;
    char *p = VirtualAllocEx(self, NULL, 2 * 4096, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    IS(VirtualQueryEx(self, p, &region, sizeof region), sizeof region);
    IS(region.RegionSize == 2 * 4096 && region.Protect == PAGE_READWRITE, 1);
    IS(VirtualLock(p, 4096) && VirtualUnlock(p, 4096), 1);
    memset(p, 'x', 2 * 4096);
    IS(VirtualProtectEx(self, p + 4096, 4096, PAGE_NOACCESS, &old) && old == PAGE_READWRITE, 1);
    IS(IsBadStringPtrA(p, 4096), 0); /* it ends before that page */
    IS(IsBadStringPtrA(p, 4097), 1);
    IS(IsBadStringPtrW((WCHAR *)(p + 4095), 1), 1); /* half of a character */
    IS(FlushInstructionCache(self, p, 4096), 1);
    IS((uintptr_t)VirtualAlloc(p, 4096, MEM_RESET, PAGE_READWRITE), (uintptr_t)p);
    IS(VirtualFreeEx(self, p, 0, MEM_RELEASE), 1);
    char *zeros = GlobalAlloc(GPTR, 100);
    IS(zeros && !zeros[0] && !zeros[99], 1);
    IS((uintptr_t)GlobalFree(zeros), 0);
    char *strings = GetEnvironmentStringsA(), *at = strings, *found = NULL;
    IS(SetEnvironmentVariableW(L"Win32", L"\u00e9"), 1);
    FreeEnvironmentStringsA(strings);
    for (at = strings = GetEnvironmentStringsA(); *at; at += strlen(at) + 1)
        found = strncmp(at, "Win32=", 6) ? found : at;
    IS(found && !strcmp(found, "Win32=\xc3\xa9"), 1);
    IS(FreeEnvironmentStringsA(strings), 1);
}

static void modules(void)
{
    HMODULE own = GetModuleHandleW(NULL), found = NULL;
    HMODULE ntdll = LoadLibraryW(L"ntdll"), again = LoadLibraryExW(L"NTDLL.dll", NULL, 0);
    IS(ntdll && ntdll == again && ntdll == GetModuleHandleW(L"ntdll.dll"), 1);
    IS(LoadLibraryExA("ntdll.dll", NULL, 0) == ntdll && FreeLibrary(ntdll), 1);
    FAILS(LoadLibraryW(L"no.dll"), NULL, ERROR_MOD_NOT_FOUND);
    FAILS(GetModuleHandleW(L"no.dll"), NULL, ERROR_MOD_NOT_FOUND);
    IS(GetModuleHandleExW(0, NULL, &found) && found == own, 1);
    IS(GetModuleHandleExW(0, L"kernel32.dll", &found) && found == GetModuleHandleA("kernel32"), 1);
    IS(GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (LPCWSTR)modules, &found), 1);
    IS((uintptr_t)found, (uintptr_t)own);
    FAILS(GetModuleHandleExW(0, L"no.dll", &found), 0, ERROR_MOD_NOT_FOUND);
    IS(found == NULL, 1);
    IS(DisableThreadLibraryCalls(ntdll), 1);
    FAILS(DisableThreadLibraryCalls((HMODULE)1), 0, ERROR_MOD_NOT_FOUND);
}

static void files(void)
{
    char narrow[MAX_PATH], byte = 0;
    WCHAR wide[MAX_PATH];
    DWORD n = GetModuleFileNameA(NULL, narrow, MAX_PATH), done = 7;
    IS(n && n == GetModuleFileNameW(NULL, wide, MAX_PATH) && n == strlen(narrow), 1);
    IS(strcmp(narrow + strlen(narrow) - 9, "win32.exe"), 0);
    FAILS(WriteFile(NULL, &byte, 1, &done, NULL), FALSE, ERROR_INVALID_HANDLE);
    IS(done, 0);
}

/* The console's handle is written by the service too: in parts, and what is refused has a line. */
static void native_write(void)
{
    NTSTATUS(NTAPI * write)
    (HANDLE, HANDLE, PVOID, PVOID, void *, PVOID, ULONG, PVOID, PVOID) =
        (void *)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "NtWriteFile");
    HANDLE console = GetStdHandle(STD_OUTPUT_HANDLE), event = CreateEventW(NULL, TRUE, FALSE, NULL);
    struct {
        ULONG_PTR status, information;
    } block = { 1, 1 };
    static char text[300];
    memset(text, 'w', sizeof text - 1);
    text[sizeof text - 1] = '\n';
    IS(write(console, event, NULL, NULL, &block, text, sizeof text, NULL, NULL), 0);
    IS(block.status, 0);
    IS(block.information, sizeof text);
    IS(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
    IS((DWORD)write(console, NULL, NULL, NULL, &block, (PVOID)8, 1, NULL, NULL),
       STATUS_ACCESS_VIOLATION);
    IS((DWORD)write(console, NULL, NULL, NULL, (PVOID)8, text, 1, NULL, NULL),
       STATUS_ACCESS_VIOLATION);
    IS((DWORD)write(console, (HANDLE)2, NULL, NULL, &block, text, 1, NULL, NULL),
       STATUS_INVALID_HANDLE);
    IS((DWORD)write(console, NULL, text, NULL, &block, text, 1, NULL, NULL), 0xc00000bb);
    CloseHandle(event);
}

static void messages(void)
{
    WCHAR text[40], *own;
    char *narrow;
    const DWORD system = FORMAT_MESSAGE_FROM_SYSTEM;
    IS(FormatMessageW(system | FORMAT_MESSAGE_ALLOCATE_BUFFER, NULL, ERROR_ACCESS_DENIED, 0,
                      (LPWSTR)&own, 0, NULL),
       wcslen(L"Access is denied.\r\n"));
    IS(wcscmp(own, L"Access is denied.\r\n"), 0);
    LocalFree(own);
    IS(FormatMessageA(system | FORMAT_MESSAGE_ALLOCATE_BUFFER, NULL, ERROR_ACCESS_DENIED, 0,
                      (LPSTR)&narrow, 0, NULL),
       19);
    LocalFree(narrow);
    IS(FormatMessageW(system, NULL, ERROR_ACCESS_DENIED, 0, text, 20, NULL), 19);
    FAILS(FormatMessageW(system, NULL, ERROR_ACCESS_DENIED, 0, text, 19, NULL), 0,
          ERROR_INSUFFICIENT_BUFFER);
    FAILS(FormatMessageW(system, NULL, 0x12345678, 0, text, 40, NULL), 0, ERROR_MR_MID_NOT_FOUND);
    FAILS(FormatMessageW(FORMAT_MESSAGE_FROM_STRING, L"own", 0, 0, text, 40, NULL), 0,
          ERROR_NOT_SUPPORTED);
}

static LONG word;

static LONG WINAPI pass_breakpoint(EXCEPTION_POINTERS *at)
{
    const EXCEPTION_RECORD *r = at->ExceptionRecord;
    if (r->ExceptionCode == 0xe0000002 && r->NumberParameters == 2) {
        word = (LONG)(r->ExceptionInformation[1] * 10 + r->ExceptionInformation[0]);
        return EXCEPTION_CONTINUE_EXECUTION;
    }
    if (r->ExceptionCode != EXCEPTION_BREAKPOINT)
        return EXCEPTION_CONTINUE_SEARCH;
    word =
        r->NumberParameters == 1 && (ULONG64)r->ExceptionAddress == at->ContextRecord->Rip ? 2 : 3;
    at->ContextRecord->Rip++;
    return EXCEPTION_CONTINUE_EXECUTION;
}

static void exceptions(void)
{
    ULONG guarantee = 0x5000;
    DWORD slot = FlsAlloc(NULL);
    IS(FlsSetValue(slot, &word) && FlsGetValue(slot) == &word && FlsFree(slot), 1);
    IS(SetThreadStackGuarantee(&guarantee) && !guarantee, 1);
    PVOID handler = AddVectoredExceptionHandler(1, pass_breakpoint);
    DebugBreak();
    IS(word, 2);
    RaiseException(0xe0000002, 0, 2, (const ULONG_PTR[]){ 5, 6 });
    IS(word, 65);
    IS(RemoveVectoredExceptionHandler(handler), 1);
    IS(UnhandledExceptionFilter(NULL), EXCEPTION_CONTINUE_SEARCH);
    PVOID base, header = RtlPcToFileHeader((PVOID)exceptions, &base);
    IS(header == base && base == GetModuleHandleW(NULL), 1);
}

/* Of ntdll by address: kernel32 passes neither on. */
static void native(void)
{
    HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
    NTSTATUS(NTAPI * system_time)
    (LARGE_INTEGER *) = (void *)GetProcAddress(ntdll, "NtQuerySystemTime");
    BOOLEAN(NTAPI * to_seconds)
    (LARGE_INTEGER *, ULONG *) = (void *)GetProcAddress(ntdll, "RtlTimeToSecondsSince1970");
    ULARGE_INTEGER after;
    LARGE_INTEGER time, first = { .QuadPart = 116444736000000000 };
    FILETIME file_time;
    ULONG seconds = 99;
    IS(system_time(&time), 0);
    GetSystemTimePreciseAsFileTime(&file_time);
    after.LowPart = file_time.dwLowDateTime, after.HighPart = file_time.dwHighDateTime;
    IS((ULONGLONG)time.QuadPart <= after.QuadPart, 1);
    IS(to_seconds(&first, &seconds) && seconds == 0, 1);
    first.QuadPart--;
    IS(to_seconds(&first, &seconds), 0);
}

BOOLEAN WINAPI SystemFunction036(PVOID, ULONG); /* RtlGenRandom */

static void advapi32(void)
{
    struct {
        EVENT_TRACE_PROPERTIES properties;
        char names[80];
    } session = { .properties = { .Wnode = { .BufferSize = sizeof session, .ClientContext = 1 },
                                  .LogFileMode =
                                      EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE,
                                  .LoggerNameOffset = sizeof(EVENT_TRACE_PROPERTIES) } };
    EVENT_TRACE_PROPERTIES *p = &session.properties;
    TRACEHANDLE trace = 0;
    char too_long[65] = { 0 };
    ULONG64 random[4] = { 0 };
    TOKEN_ELEVATION elevated = { 0 };
    DWORD size = 0;
    HANDLE token;
    IS(OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token), 1);
    FAILS(GetTokenInformation(token, TokenElevation, &elevated, 3, &size), 0, ERROR_BAD_LENGTH);
    IS(size, sizeof elevated);
    IS(GetTokenInformation(token, TokenElevation, &elevated, sizeof elevated, &size), 1);
    IS(elevated.TokenIsElevated, 1);
    FAILS(GetTokenInformation(token, TokenUser, &elevated, 4, &size), 0, ERROR_INVALID_PARAMETER);
    CloseHandle(token);
    memset(too_long, 'x', sizeof too_long - 1);
    IS(ControlTraceA(0, too_long, p, EVENT_TRACE_CONTROL_QUERY), ERROR_INVALID_PARAMETER);
    IS((uintptr_t)CreateServiceW(NULL, L"x", NULL, 0, SERVICE_KERNEL_DRIVER, 0, 0, L"x.sys", NULL,
                                 NULL, NULL, NULL, NULL),
       0);
    IS(GetLastError(), ERROR_INVALID_HANDLE);
    IS(QueryTraceA(0, "no session", p), ERROR_WMI_INSTANCE_NOT_FOUND);
    IS(UpdateTraceA(0, "no session", p), ERROR_WMI_INSTANCE_NOT_FOUND);
    IS(FlushTraceA(0, "no session", p), ERROR_WMI_INSTANCE_NOT_FOUND);
    IS(StartTraceW(&trace, L"wide", p) | QueryTraceW(trace, NULL, p) | FlushTraceW(0, L"wide", p) |
           UpdateTraceW(trace, NULL, p) | StopTraceW(trace, NULL, p),
       ERROR_SUCCESS);
    IS(StopTraceA(0, "wide", p), ERROR_WMI_INSTANCE_NOT_FOUND);
    IS(GetProcAddress(LoadLibraryA("sechost"), "ProcessTrace") != NULL, 1);
    BOOL(WINAPI * prng)
    (PBYTE, SIZE_T) = (void *)GetProcAddress(LoadLibraryW(L"bcryptprimitives.dll"), "ProcessPrng");
    IS(prng((PBYTE)random, 31), 1);
    IS(random[0] && random[1] && random[0] != random[1] && !(random[3] >> 56), 1);
    memset(random, 0, sizeof random);
    IS(SystemFunction036(random, 31), 1);
    IS(random[0] && random[1] && random[0] != random[1] && !(random[3] >> 56), 1);
}

int main(int argc, char **argv)
{
    IS(argc == 3 && !strcmp(argv[1], "a b"), 1);
    objects();
    console();
    system_facts();
    versions();
    memory();
    modules();
    files();
    native_write();
    messages();
    exceptions();
    native();
    advapi32();
    const int wrong = check_result();
    fflush(stdout);
    TerminateProcess(GetCurrentProcess(), wrong ? 1 : 42);
    return 0;
}
