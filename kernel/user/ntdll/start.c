/* SPDX-License-Identifier: MIT */
/* Begin and end of threads. The kernel starts every thread here. */
#include "ntdll.h"

bool shutting_down;
static LONG running;

static const struct start_information *information(void)
{
    return (const void *)((const uint8_t *)teb()->peb + START_AT);
}

static NTSTATUS load_program(void)
{
    const struct start_information *info = information();
    struct module *program, *ntdll;
    NTSTATUS status = module_add(teb()->peb->image_base, info->image_size, info->name, &program);
    if (NT_SUCCESS(status))
        status = module_add((uint8_t *)info->ntdll_base, info->ntdll_size, "ntdll.dll", &ntdll);
    if (NT_SUCCESS(status))
        status = module_resolve(ntdll);
    if (NT_SUCCESS(status))
        status = module_resolve(program);
    return NT_SUCCESS(status) ? initialize_modules() : status;
}

static NTSTATUS begin_process(void)
{
    heap_begin();
    RtlInitializeCriticalSection(&loader_lock);
    RtlEnterCriticalSection(&loader_lock);
    teb()->peb->ldr = &loader;
    NTSTATUS status = tls_begin_thread();
    if (NT_SUCCESS(status))
        status = parameters_begin(information()->name, information()->line);
    if (NT_SUCCESS(status))
        status = load_program();
    loader.initialized = TRUE;
    RtlLeaveCriticalSection(&loader_lock);
    return status;
}

static NTSTATUS begin_thread(void)
{
    RtlEnterCriticalSection(&loader_lock);
    NTSTATUS status = tls_begin_thread();
    if (NT_SUCCESS(status))
        call_modules(DLL_THREAD_ATTACH);
    RtlLeaveCriticalSection(&loader_lock);
    return status;
}

VOID NTAPI RtlExitUserProcess(NTSTATUS ExitStatus)
{
    fls_end_thread();
    RtlEnterCriticalSection(&loader_lock);
    NtTerminateProcess(NULL, ExitStatus); /* the other threads */
    shutting_down = true;
    call_modules(DLL_PROCESS_DETACH);
    NtTerminateProcess(CURRENT_PROCESS, ExitStatus);
    __builtin_unreachable();
}

VOID NTAPI RtlExitUserThread(NTSTATUS ExitStatus)
{
    if (InterlockedDecrement(&running) == 0)
        RtlExitUserProcess(ExitStatus);
    fls_end_thread();
    RtlEnterCriticalSection(&loader_lock);
    call_modules(DLL_THREAD_DETACH);
    tls_end_thread();
    RtlLeaveCriticalSection(&loader_lock);
    if (teb()->wait_event)
        NtClose(teb()->wait_event);
    NtTerminateThread(NULL, ExitStatus);
    __builtin_unreachable();
}

/* A thread's first routine. Others than the process's first wait until that has begun to load. */
VOID NTAPI LdrInitializeThunk(PTHREAD_START_ROUTINE start, PVOID argument);
VOID NTAPI LdrInitializeThunk(PTHREAD_START_ROUTINE start, PVOID argument)
{
    bool first = InterlockedIncrement(&running) == 1;
    while (!first && !*(void *volatile *)&teb()->peb->ldr)
        NtYieldExecution();
    NTSTATUS status = first ? begin_process() : begin_thread();
    if (!NT_SUCCESS(status))
        NtTerminateProcess(CURRENT_PROCESS, status);
    RtlUserThreadStart(start, argument);
}

VOID NTAPI RtlUserThreadStart(PTHREAD_START_ROUTINE start, PVOID argument)
{
    RtlExitUserThread((NTSTATUS)start(argument));
}
