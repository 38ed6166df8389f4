/* SPDX-License-Identifier: MIT */
/* For ring-3 programs: types and constants of nt.h, and the existing functions of ntdll and
 * kernel32. NT: services have their Zw names only, because the Nt names are the kernel's own in the
 * same image. */
#pragma once
#ifdef __cplusplus
#define _Static_assert static_assert
extern "C" {
#define WCHAR nt_wchar /* in C++ L"text" has its own type, also of 16 bits */
#endif
#include "kernel/nt/nt_context.h"
#include "kernel/nt/nt_dispatcher.h"
#include "kernel/nt/nt_trace.h"
#ifdef __cplusplus
#undef WCHAR
typedef wchar_t WCHAR;
#endif

#define WINAPI
#define APIENTRY
#define NTAPI
#define CALLBACK
#define CONST const
#define __stdcall
#define __cdecl
#define __forceinline inline __attribute__((always_inline))
#define __int64 long long
#define TEXT(text) text /* TCHAR is char */
#define _T(text) text
#define MAX_PATH 260
#define ZeroMemory(address, size) __builtin_memset(address, 0, size)
#define UNREFERENCED_PARAMETER(name) (void)(name)
#define ARRAYSIZE(array) (sizeof(array) / sizeof(array)[0])

#define ERROR_SUCCESS 0
#define ERROR_INVALID_FUNCTION 1
#define ERROR_ACCESS_DENIED 5
#define ERROR_INVALID_HANDLE 6
#define ERROR_NOT_ENOUGH_MEMORY 8
#define ERROR_BAD_LENGTH 24
#define ERROR_GEN_FAILURE 31
#define ERROR_NOT_SUPPORTED 50
#define ERROR_INVALID_PARAMETER 87
#define ERROR_INSUFFICIENT_BUFFER 122
#define ERROR_BUSY 170
#define ERROR_NOT_OWNER 288
#define ERROR_TOO_MANY_POSTS 298
#define ERROR_ALREADY_EXISTS 183
#define ERROR_MORE_DATA 234
#define ERROR_MOD_NOT_FOUND 126
#define ERROR_PROC_NOT_FOUND 127
#define ERROR_MR_MID_NOT_FOUND 317
#define ERROR_NOACCESS 998
#define ERROR_PRIVILEGE_NOT_HELD 1314
#define ERROR_NO_SYSTEM_RESOURCES 1450
#define ERROR_INVALID_USER_BUFFER 1784
#define ERROR_WMI_INSTANCE_NOT_FOUND 4201
#define ERROR_WMI_ALREADY_ENABLED 4206
#define ERROR_WMI_ALREADY_DISABLED 4212
#define INFINITE 0xffffffff
#define WAIT_OBJECT_0 0
#define WAIT_ABANDONED_0 0x80
#define WAIT_TIMEOUT 258
#define WAIT_FAILED 0xffffffff
#define INVALID_HANDLE_VALUE ((HANDLE)(LONGLONG)-1)
#define STD_OUTPUT_HANDLE ((DWORD)-11)

typedef int INT;
typedef unsigned int UINT;
typedef short SHORT;
typedef float FLOAT;
typedef unsigned char *PBYTE, *LPBYTE;
typedef void *LPVOID, *LPSECURITY_ATTRIBUTES;
typedef const void *LPCVOID, *PCVOID;
typedef char TCHAR, *PSTR, *LPSTR, *LPTSTR, *PCHAR;
typedef const char *LPCSTR, *LPCTSTR;
typedef int64_t INT64, LONG64, INT_PTR, LONG_PTR, SSIZE_T;
typedef uint64_t UINT64, UINT_PTR, DWORD_PTR, *PDWORD_PTR, *PDWORD64;
typedef int32_t INT32, LONG32;
typedef uint32_t UINT32, DWORD32, ULONG32, *PDWORD, *LPDWORD, *PUINT;
typedef int32_t *PBOOL, *LPBOOL;
typedef uint16_t *PWORD;
typedef HANDLE HMODULE, HINSTANCE;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef INT_PTR (*FARPROC)(); /* any arguments */
#pragma GCC diagnostic pop

typedef DWORD (*LPTHREAD_START_ROUTINE)(PVOID);

/* ntdll */
NTSTATUS ZwClose(HANDLE Handle);
NTSTATUS ZwTerminateThread(HANDLE ThreadHandle, NTSTATUS ExitStatus);
NTSTATUS ZwTerminateProcess(HANDLE ProcessHandle, NTSTATUS ExitStatus);
NTSTATUS ZwDelayExecution(BOOLEAN Alertable, PLARGE_INTEGER DelayInterval);
NTSTATUS ZwWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSTATUS ZwYieldExecution(void);
NTSTATUS ZwWaitForMultipleObjects(ULONG Count, const HANDLE Handles[], WAIT_TYPE WaitType,
                                  BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSTATUS ZwSignalAndWaitForSingleObject(HANDLE SignalHandle, HANDLE WaitHandle, BOOLEAN Alertable,
                                        PLARGE_INTEGER Timeout);
NTSTATUS ZwCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                       POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType,
                       BOOLEAN InitialState);
NTSTATUS ZwSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS ZwResetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS ZwPulseEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS ZwClearEvent(HANDLE EventHandle);
NTSTATUS ZwQueryEvent(HANDLE EventHandle, EVENT_INFORMATION_CLASS EventInformationClass,
                      PVOID EventInformation, ULONG EventInformationLength, PULONG ReturnLength);
NTSTATUS ZwCreateSemaphore(PHANDLE SemaphoreHandle, ACCESS_MASK DesiredAccess,
                           POBJECT_ATTRIBUTES ObjectAttributes, LONG InitialCount,
                           LONG MaximumCount);
NTSTATUS ZwReleaseSemaphore(HANDLE SemaphoreHandle, LONG ReleaseCount, PLONG PreviousCount);
NTSTATUS ZwQuerySemaphore(HANDLE SemaphoreHandle,
                          SEMAPHORE_INFORMATION_CLASS SemaphoreInformationClass,
                          PVOID SemaphoreInformation, ULONG SemaphoreInformationLength,
                          PULONG ReturnLength);
NTSTATUS ZwCreateMutant(PHANDLE MutantHandle, ACCESS_MASK DesiredAccess,
                        POBJECT_ATTRIBUTES ObjectAttributes, BOOLEAN InitialOwner);
NTSTATUS ZwReleaseMutant(HANDLE MutantHandle, PLONG PreviousCount);
NTSTATUS ZwQueryMutant(HANDLE MutantHandle, MUTANT_INFORMATION_CLASS MutantInformationClass,
                       PVOID MutantInformation, ULONG MutantInformationLength, PULONG ReturnLength);
NTSTATUS ZwCreateThreadEx(PHANDLE ThreadHandle, ACCESS_MASK DesiredAccess, PVOID ObjectAttributes,
                          HANDLE ProcessHandle, PVOID StartRoutine, PVOID Argument,
                          ULONG CreateFlags, SIZE_T ZeroBits, SIZE_T StackSize,
                          SIZE_T MaximumStackSize, PVOID AttributeList);
NTSTATUS ZwResumeThread(HANDLE ThreadHandle, PULONG PreviousSuspendCount);
NTSTATUS ZwSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                PVOID ThreadInformation, ULONG ThreadInformationLength);
NTSTATUS ZwQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                  PVOID ThreadInformation, ULONG ThreadInformationLength,
                                  PULONG ReturnLength);
NTSTATUS ZwAllocateVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, ULONG_PTR ZeroBits,
                                 PSIZE_T RegionSize, ULONG AllocationType, ULONG Protect);
NTSTATUS ZwFreeVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                             ULONG FreeType);
NTSTATUS ZwProtectVirtualMemory(HANDLE ProcessHandle, PVOID *BaseAddress, PSIZE_T RegionSize,
                                ULONG NewProtect, PULONG OldProtect);
NTSTATUS ZwDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle,
                           HANDLE TargetProcessHandle, PHANDLE TargetHandle,
                           ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options);
ULONG ZwGetCurrentProcessorNumber(void);
NTSTATUS ZwQueryPerformanceCounter(PLARGE_INTEGER PerformanceCounter,
                                   PLARGE_INTEGER PerformanceFrequency);
/* Ours: RtlReadThreadProfilingData in the kernel, for the calling thread; needs no RDPMC. */
NTSTATUS ZwReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                   PPERFORMANCE_DATA PerformanceData);
NTSTATUS write_console(const char *text, ULONG length);
NTSTATUS no_such_service(void);

NTSTATUS ZwCreateProfile(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                         SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                         KPROFILE_SOURCE ProfileSource, KAFFINITY Affinity);
NTSTATUS ZwCreateProfileEx(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                           SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                           KPROFILE_SOURCE ProfileSource, USHORT GroupCount,
                           PGROUP_AFFINITY GroupAffinity);
NTSTATUS ZwStartProfile(HANDLE ProfileHandle);
NTSTATUS ZwStopProfile(HANDLE ProfileHandle);
NTSTATUS ZwQueryIntervalProfile(KPROFILE_SOURCE ProfileSource, PULONG Interval);
NTSTATUS ZwSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source);
NTSTATUS ZwTraceControl(ULONG FunctionCode, PVOID InBuffer, ULONG InBufferLen, PVOID OutBuffer,
                        ULONG OutBufferLen,
                        PULONG ReturnLength); /* codes and structures: kernel/nt/nt_trace.h */
NTSTATUS ZwSetSystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                ULONG SystemInformationLength);
NTSTATUS ZwQuerySystemInformation(ULONG SystemInformationClass, PVOID SystemInformation,
                                  ULONG SystemInformationLength, PULONG ReturnLength);
NTSTATUS RtlAdjustPrivilege(ULONG Privilege, BOOLEAN Enable, BOOLEAN CurrentThread,
                            PBOOLEAN Enabled);
NTSTATUS RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                  PVOID *PerformanceDataHandle);
NTSTATUS RtlDisableThreadProfiling(PVOID PerformanceDataHandle);
NTSTATUS RtlQueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled);
NTSTATUS RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                    PPERFORMANCE_DATA PerformanceData);
ULONG RtlNtStatusToDosError(NTSTATUS Status);

/* kernel32 */
DWORD EnableThreadProfiling(HANDLE ThreadHandle, DWORD Flags, DWORD64 HardwareCounters,
                            HANDLE *PerformanceDataHandle);
DWORD DisableThreadProfiling(HANDLE PerformanceDataHandle);
DWORD QueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled);
DWORD ReadThreadProfilingData(HANDLE PerformanceDataHandle, DWORD Flags,
                              PPERFORMANCE_DATA PerformanceData);
HANDLE CreateThread(PVOID ThreadAttributes, SIZE_T StackSize, LPTHREAD_START_ROUTINE StartAddress,
                    PVOID Parameter, DWORD CreationFlags, DWORD *ThreadId);
DWORD WaitForSingleObject(HANDLE Handle, DWORD Milliseconds);
BOOL CloseHandle(HANDLE Object);
void Sleep(DWORD Milliseconds);
HANDLE GetCurrentThread(void);
DWORD GetCurrentThreadId(void);
KAFFINITY SetThreadAffinityMask(HANDLE hThread, KAFFINITY dwThreadAffinityMask);
DWORD GetCurrentProcessorNumber(void);
BOOL GetExitCodeThread(HANDLE Thread, DWORD *ExitCode);
DWORD GetLastError(void);
void SetLastError(DWORD Error);
DWORD WaitForMultipleObjects(DWORD Count, const HANDLE *Handles, BOOL WaitForAll,
                             DWORD Milliseconds);
HANDLE GetCurrentProcess(void);
DWORD GetCurrentProcessId(void);
BOOL SwitchToThread(void);
__attribute__((noreturn)) void ExitThread(DWORD ExitCode);
__attribute__((noreturn)) void ExitProcess(UINT ExitCode);
BOOL QueryPerformanceCounter(LARGE_INTEGER *PerformanceCount);
BOOL QueryPerformanceFrequency(LARGE_INTEGER *Frequency);
DWORD GetTickCount(void);
ULONGLONG GetTickCount64(void);
LPVOID VirtualAlloc(LPVOID Address, SIZE_T Size, DWORD AllocationType, DWORD Protect);
BOOL VirtualFree(LPVOID Address, SIZE_T Size, DWORD FreeType);

typedef struct _SYSTEM_INFO {
    WORD wProcessorArchitecture, wReserved;
    DWORD dwPageSize;
    LPVOID lpMinimumApplicationAddress, lpMaximumApplicationAddress;
    DWORD_PTR dwActiveProcessorMask;
    DWORD dwNumberOfProcessors, dwProcessorType, dwAllocationGranularity;
    WORD wProcessorLevel, wProcessorRevision;
} SYSTEM_INFO, *LPSYSTEM_INFO;
ABI_SIZE(SYSTEM_INFO, 48);
#define PROCESSOR_ARCHITECTURE_AMD64 9
/* Architecture, page size, granularity (NT: 4 KB, not 64) and processors; all else is 0. */
void GetSystemInfo(LPSYSTEM_INFO SystemInfo);

/* Events, semaphores, mutexes. NT: names must be NULL. */
HANDLE CreateEventA(LPSECURITY_ATTRIBUTES EventAttributes, BOOL ManualReset, BOOL InitialState,
                    LPCSTR Name);
BOOL SetEvent(HANDLE Event);
BOOL ResetEvent(HANDLE Event);
BOOL PulseEvent(HANDLE Event);
HANDLE CreateSemaphoreA(LPSECURITY_ATTRIBUTES SemaphoreAttributes, LONG InitialCount,
                        LONG MaximumCount, LPCSTR Name);
BOOL ReleaseSemaphore(HANDLE Semaphore, LONG ReleaseCount, PLONG PreviousCount);
HANDLE CreateMutexA(LPSECURITY_ATTRIBUTES MutexAttributes, BOOL InitialOwner, LPCSTR Name);
BOOL ReleaseMutex(HANDLE Mutex);
DWORD SignalObjectAndWait(HANDLE ObjectToSignal, HANDLE ObjectToWaitOn, DWORD Milliseconds,
                          BOOL Alertable);
#define CreateEvent CreateEventA
#define CreateSemaphore CreateSemaphoreA
#define CreateMutex CreateMutexA

/* exception.c */
#define EXCEPTION_CONTINUE_EXECUTION (-1)
#define EXCEPTION_CONTINUE_SEARCH 0
typedef LONG (*PVECTORED_EXCEPTION_HANDLER)(PEXCEPTION_POINTERS ExceptionInfo);
/* NT: at most eight; those with First are called after the others. */
PVOID AddVectoredExceptionHandler(ULONG First, PVECTORED_EXCEPTION_HANDLER Handler);
ULONG RemoveVectoredExceptionHandler(PVOID Handle);
NTSTATUS ZwRaiseException(PEXCEPTION_RECORD ExceptionRecord, PCONTEXT ContextRecord,
                          BOOLEAN FirstChance);
NTSTATUS ZwContinue(PCONTEXT ContextRecord, BOOLEAN TestAlert);

/* synch.c */
typedef struct _RTL_CRITICAL_SECTION {
    PVOID DebugInfo;
    LONG LockCount, RecursionCount;
    HANDLE OwningThread, LockSemaphore;
    ULONG_PTR SpinCount;
} CRITICAL_SECTION, *PCRITICAL_SECTION, *LPCRITICAL_SECTION;
ABI_SIZE(CRITICAL_SECTION, 40);
void InitializeCriticalSection(LPCRITICAL_SECTION CriticalSection);
void DeleteCriticalSection(LPCRITICAL_SECTION CriticalSection);
void EnterCriticalSection(LPCRITICAL_SECTION CriticalSection);
BOOL TryEnterCriticalSection(LPCRITICAL_SECTION CriticalSection);
void LeaveCriticalSection(LPCRITICAL_SECTION CriticalSection);

/* Full barriers. Increment and Decrement return the new value, the others the old one. */
#define INTERLOCKED(suffix, type)                                                                  \
    static inline type InterlockedIncrement##suffix(type volatile *Addend)                         \
    {                                                                                              \
        return __atomic_add_fetch(Addend, 1, __ATOMIC_SEQ_CST);                                    \
    }                                                                                              \
    static inline type InterlockedDecrement##suffix(type volatile *Addend)                         \
    {                                                                                              \
        return __atomic_sub_fetch(Addend, 1, __ATOMIC_SEQ_CST);                                    \
    }                                                                                              \
    static inline type InterlockedExchangeAdd##suffix(type volatile *Addend, type Value)           \
    {                                                                                              \
        return __atomic_fetch_add(Addend, Value, __ATOMIC_SEQ_CST);                                \
    }                                                                                              \
    static inline type InterlockedExchange##suffix(type volatile *Target, type Value)              \
    {                                                                                              \
        return __atomic_exchange_n(Target, Value, __ATOMIC_SEQ_CST);                               \
    }                                                                                              \
    static inline type InterlockedCompareExchange##suffix(type volatile *Destination,              \
                                                          type Exchange, type Comparand)           \
    {                                                                                              \
        __atomic_compare_exchange_n(Destination, &Comparand, Exchange, 0, __ATOMIC_SEQ_CST,        \
                                    __ATOMIC_SEQ_CST);                                             \
        return Comparand;                                                                          \
    }
INTERLOCKED(, LONG)
INTERLOCKED(64, LONG64)

/* library.c: ntoskrnl.exe, hal.dll, ntdll.dll, kernel32.dll, kernelbase.dll, advapi32.dll and
 * sechost.dll. The extension may be left out. */
HMODULE LoadLibraryA(LPCSTR LibFileName);
HMODULE GetModuleHandleA(LPCSTR ModuleName);
FARPROC GetProcAddress(HMODULE Module, LPCSTR ProcName);
BOOL FreeLibrary(HMODULE LibModule);
#define LoadLibrary LoadLibraryA
#define GetModuleHandle GetModuleHandleA

#ifdef __cplusplus
}
#undef _Static_assert
#endif
