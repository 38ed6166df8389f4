/* SPDX-License-Identifier: MIT */
/* The Win32 functions, thin over ntdll. Those of thread profiling return a Win32 code and set no
 * last error. */
#include "windows.h"

static DWORD last_error; /* NT: one for the process, not for each thread */

struct error_row {
    NTSTATUS status;
    ULONG error;
};

static const struct error_row errors[] = {
    { STATUS_SUCCESS, ERROR_SUCCESS },
    { STATUS_TIMEOUT, WAIT_TIMEOUT },
    { STATUS_DATATYPE_MISALIGNMENT, ERROR_NOACCESS },
    { STATUS_BUFFER_OVERFLOW, ERROR_MORE_DATA },
    { STATUS_DEVICE_BUSY, ERROR_BUSY },
    { STATUS_UNSUCCESSFUL, ERROR_GEN_FAILURE },
    { STATUS_NOT_IMPLEMENTED, ERROR_INVALID_FUNCTION },
    { STATUS_INVALID_INFO_CLASS, ERROR_INVALID_PARAMETER },
    { STATUS_INFO_LENGTH_MISMATCH, ERROR_BAD_LENGTH },
    { STATUS_ACCESS_VIOLATION, ERROR_NOACCESS },
    { STATUS_INVALID_HANDLE, ERROR_INVALID_HANDLE },
    { STATUS_INVALID_PARAMETER, ERROR_INVALID_PARAMETER },
    { STATUS_NO_MEMORY, ERROR_NOT_ENOUGH_MEMORY },
    { STATUS_ACCESS_DENIED, ERROR_ACCESS_DENIED },
    { STATUS_BUFFER_TOO_SMALL, ERROR_INSUFFICIENT_BUFFER },
    { STATUS_OBJECT_TYPE_MISMATCH, ERROR_INVALID_HANDLE },
    { STATUS_INVALID_PARAMETER_MIX, ERROR_INVALID_PARAMETER },
    { STATUS_MUTANT_NOT_OWNED, ERROR_NOT_OWNER },
    { STATUS_SEMAPHORE_LIMIT_EXCEEDED, ERROR_TOO_MANY_POSTS },
    { STATUS_OBJECT_NAME_COLLISION, ERROR_ALREADY_EXISTS },
    { STATUS_PRIVILEGE_NOT_HELD, ERROR_PRIVILEGE_NOT_HELD },
    { STATUS_INSUFFICIENT_RESOURCES, ERROR_NO_SYSTEM_RESOURCES },
    { STATUS_NOT_SUPPORTED, ERROR_NOT_SUPPORTED },
    { STATUS_INVALID_PARAMETER_1, ERROR_INVALID_PARAMETER },
    { STATUS_INVALID_PARAMETER_2, ERROR_INVALID_PARAMETER },
    { STATUS_INVALID_PARAMETER_3, ERROR_INVALID_PARAMETER },
    { STATUS_INVALID_PARAMETER_7, ERROR_INVALID_PARAMETER },
    { STATUS_DEVICE_CONFIGURATION_ERROR, ERROR_INVALID_PARAMETER },
    { STATUS_INVALID_BUFFER_SIZE, ERROR_INVALID_USER_BUFFER },
    { STATUS_WMI_INSTANCE_NOT_FOUND, ERROR_WMI_INSTANCE_NOT_FOUND },
    { STATUS_WMI_ALREADY_DISABLED, ERROR_WMI_ALREADY_DISABLED },
    { STATUS_WMI_ALREADY_ENABLED, ERROR_WMI_ALREADY_ENABLED },
};

/* ERROR_MR_MID_NOT_FOUND: not in the table, as in Windows. */
ULONG RtlNtStatusToDosError(NTSTATUS Status)
{
    for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].status == Status)
            return errors[i].error;
    return ERROR_MR_MID_NOT_FOUND;
}

DWORD EnableThreadProfiling(HANDLE ThreadHandle, DWORD Flags, DWORD64 HardwareCounters,
                            HANDLE *PerformanceDataHandle)
{
    return RtlNtStatusToDosError(
        RtlEnableThreadProfiling(ThreadHandle, Flags, HardwareCounters, PerformanceDataHandle));
}

DWORD DisableThreadProfiling(HANDLE PerformanceDataHandle)
{
    return RtlNtStatusToDosError(RtlDisableThreadProfiling(PerformanceDataHandle));
}

DWORD QueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled)
{
    return RtlNtStatusToDosError(RtlQueryThreadProfiling(ThreadHandle, Enabled));
}

DWORD ReadThreadProfilingData(HANDLE PerformanceDataHandle, DWORD Flags,
                              PPERFORMANCE_DATA PerformanceData)
{
    return RtlNtStatusToDosError(
        RtlReadThreadProfilingData(PerformanceDataHandle, Flags, PerformanceData));
}

static BOOL succeeded(NTSTATUS status)
{
    if (!NT_SUCCESS(status))
        last_error = RtlNtStatusToDosError(status);
    return NT_SUCCESS(status);
}

DWORD GetLastError(void) { return last_error; }
void SetLastError(DWORD Error) { last_error = Error; }

HANDLE CreateThread(PVOID ThreadAttributes, SIZE_T StackSize, LPTHREAD_START_ROUTINE StartAddress,
                    PVOID Parameter, DWORD CreationFlags, DWORD *ThreadId)
{
    HANDLE thread;
    THREAD_BASIC_INFORMATION info;
    if (!succeeded(ZwCreateThreadEx(&thread, THREAD_ALL_ACCESS, ThreadAttributes,
                                    NtCurrentProcess(), (PVOID)StartAddress, Parameter,
                                    CreationFlags, 0, StackSize, 0, NULL)))
        return NULL;
    if (ThreadId && NT_SUCCESS(ZwQueryInformationThread(thread, ThreadBasicInformation, &info,
                                                        sizeof info, NULL)))
        *ThreadId = (DWORD)(uint64_t)info.ClientId.UniqueThread;
    return thread;
}

/* NULL: INFINITE. */
static PLARGE_INTEGER interval(DWORD milliseconds, LARGE_INTEGER *value)
{
    value->QuadPart = -10000ll * milliseconds;
    return milliseconds == INFINITE ? NULL : value;
}

static DWORD waited(NTSTATUS status) { return succeeded(status) ? (DWORD)status : WAIT_FAILED; }

DWORD WaitForSingleObject(HANDLE Handle, DWORD Milliseconds)
{
    LARGE_INTEGER timeout;
    return waited(ZwWaitForSingleObject(Handle, FALSE, interval(Milliseconds, &timeout)));
}

DWORD WaitForMultipleObjects(DWORD Count, const HANDLE *Handles, BOOL WaitForAll,
                             DWORD Milliseconds)
{
    LARGE_INTEGER timeout;
    return waited(ZwWaitForMultipleObjects(Count, Handles, WaitForAll ? WaitAll : WaitAny, FALSE,
                                           interval(Milliseconds, &timeout)));
}

DWORD SignalObjectAndWait(HANDLE ObjectToSignal, HANDLE ObjectToWaitOn, DWORD Milliseconds,
                          BOOL Alertable)
{
    LARGE_INTEGER timeout;
    return waited(ZwSignalAndWaitForSingleObject(ObjectToSignal, ObjectToWaitOn, Alertable != FALSE,
                                                 interval(Milliseconds, &timeout)));
}

/* Attributes with some name, or NULL if there is none: names are not supported. */
static POBJECT_ATTRIBUTES named(LPCSTR name, OBJECT_ATTRIBUTES *attributes)
{
    static UNICODE_STRING any;
    *attributes = (OBJECT_ATTRIBUTES){ .Length = sizeof *attributes, .ObjectName = &any };
    return name ? attributes : NULL;
}

static HANDLE made(NTSTATUS status, HANDLE handle) { return succeeded(status) ? handle : NULL; }

HANDLE CreateEventA(LPSECURITY_ATTRIBUTES EventAttributes, BOOL ManualReset, BOOL InitialState,
                    LPCSTR Name)
{
    OBJECT_ATTRIBUTES attributes;
    HANDLE handle = NULL;
    (void)EventAttributes;
    NTSTATUS status = ZwCreateEvent(&handle, EVENT_ALL_ACCESS, named(Name, &attributes),
                                    ManualReset ? NotificationEvent : SynchronizationEvent,
                                    InitialState != FALSE);
    return made(status, handle);
}

HANDLE CreateSemaphoreA(LPSECURITY_ATTRIBUTES SemaphoreAttributes, LONG InitialCount,
                        LONG MaximumCount, LPCSTR Name)
{
    OBJECT_ATTRIBUTES attributes;
    HANDLE handle = NULL;
    (void)SemaphoreAttributes;
    NTSTATUS status = ZwCreateSemaphore(&handle, SEMAPHORE_ALL_ACCESS, named(Name, &attributes),
                                        InitialCount, MaximumCount);
    return made(status, handle);
}

HANDLE CreateMutexA(LPSECURITY_ATTRIBUTES MutexAttributes, BOOL InitialOwner, LPCSTR Name)
{
    OBJECT_ATTRIBUTES attributes;
    HANDLE handle = NULL;
    (void)MutexAttributes;
    NTSTATUS status =
        ZwCreateMutant(&handle, MUTANT_ALL_ACCESS, named(Name, &attributes), InitialOwner != FALSE);
    return made(status, handle);
}

BOOL SetEvent(HANDLE Event) { return succeeded(ZwSetEvent(Event, NULL)); }
BOOL ResetEvent(HANDLE Event) { return succeeded(ZwResetEvent(Event, NULL)); }
BOOL PulseEvent(HANDLE Event) { return succeeded(ZwPulseEvent(Event, NULL)); }
BOOL ReleaseMutex(HANDLE Mutex) { return succeeded(ZwReleaseMutant(Mutex, NULL)); }

BOOL ReleaseSemaphore(HANDLE Semaphore, LONG ReleaseCount, PLONG PreviousCount)
{
    return succeeded(ZwReleaseSemaphore(Semaphore, ReleaseCount, PreviousCount));
}

void Sleep(DWORD Milliseconds)
{
    LARGE_INTEGER delay = { .QuadPart =
                                Milliseconds == INFINITE ? INT64_MIN : -10000ll * Milliseconds };
    ZwDelayExecution(FALSE, &delay);
}

BOOL CloseHandle(HANDLE Object) { return succeeded(ZwClose(Object)); }
HANDLE GetCurrentThread(void) { return NtCurrentThread(); }
HANDLE GetCurrentProcess(void) { return NtCurrentProcess(); }
DWORD GetCurrentProcessId(void) { return 4; } /* NT: there is one program */
BOOL SwitchToThread(void) { return ZwYieldExecution() != STATUS_NO_YIELD_PERFORMED; }

void ExitThread(DWORD ExitCode)
{
    ZwTerminateThread(NULL, (NTSTATUS)ExitCode);
    __builtin_unreachable();
}

BOOL QueryPerformanceCounter(LARGE_INTEGER *PerformanceCount)
{
    return succeeded(ZwQueryPerformanceCounter(PerformanceCount, NULL));
}

BOOL QueryPerformanceFrequency(LARGE_INTEGER *Frequency)
{
    LARGE_INTEGER now;
    return succeeded(ZwQueryPerformanceCounter(&now, Frequency));
}

ULONGLONG GetTickCount64(void)
{
    LARGE_INTEGER now, frequency;
    ZwQueryPerformanceCounter(&now, &frequency);
    return (ULONGLONG)(now.QuadPart / (frequency.QuadPart / 1000));
}

DWORD GetTickCount(void) { return (DWORD)GetTickCount64(); }

LPVOID VirtualAlloc(LPVOID Address, SIZE_T Size, DWORD AllocationType, DWORD Protect)
{
    return succeeded(ZwAllocateVirtualMemory(NtCurrentProcess(), &Address, 0, &Size, AllocationType,
                                             Protect))
               ? Address
               : NULL;
}

BOOL VirtualFree(LPVOID Address, SIZE_T Size, DWORD FreeType)
{
    return succeeded(ZwFreeVirtualMemory(NtCurrentProcess(), &Address, &Size, FreeType));
}
DWORD GetCurrentProcessorNumber(void) { return ZwGetCurrentProcessorNumber(); }

static BOOL query(HANDLE thread, THREAD_BASIC_INFORMATION *info)
{
    return succeeded(
        ZwQueryInformationThread(thread, ThreadBasicInformation, info, sizeof *info, NULL));
}

DWORD GetCurrentThreadId(void)
{
    THREAD_BASIC_INFORMATION info = { 0 };
    query(NtCurrentThread(), &info);
    return (DWORD)(uint64_t)info.ClientId.UniqueThread;
}

KAFFINITY SetThreadAffinityMask(HANDLE hThread, KAFFINITY dwThreadAffinityMask)
{
    THREAD_BASIC_INFORMATION info;
    if (!query(hThread, &info) ||
        !succeeded(ZwSetInformationThread(hThread, ThreadAffinityMask, &dwThreadAffinityMask,
                                          sizeof dwThreadAffinityMask)))
        return 0;
    return info.AffinityMask;
}

void GetSystemInfo(LPSYSTEM_INFO SystemInfo)
{
    /* Of the primary group, to which it keeps the thread; the kernel keeps what bits are real. */
    KAFFINITY own = SetThreadAffinityMask(NtCurrentThread(), ~UINT64_C(0));
    THREAD_BASIC_INFORMATION info = { 0 };
    query(NtCurrentThread(), &info);
    SetThreadAffinityMask(NtCurrentThread(), own);
    *SystemInfo = (SYSTEM_INFO){ .wProcessorArchitecture = PROCESSOR_ARCHITECTURE_AMD64,
                                 .dwPageSize = 4096,
                                 .dwAllocationGranularity = 4096,
                                 .dwActiveProcessorMask = info.AffinityMask };
    for (KAFFINITY left = info.AffinityMask; left; left &= left - 1)
        SystemInfo->dwNumberOfProcessors++;
}

BOOL GetExitCodeThread(HANDLE Thread, DWORD *ExitCode)
{
    THREAD_BASIC_INFORMATION info;
    if (!query(Thread, &info))
        return FALSE;
    *ExitCode = (DWORD)info.ExitStatus;
    return TRUE;
}
