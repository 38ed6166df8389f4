; SPDX-License-Identifier: MIT
; The ring-3 side of the services, under their Zw names (Nt names are the kernel's own), and where threads begin.
%include "layout.inc"

%macro service 2
global %1
%1:
    mov eax, %2
    mov r10, rcx                        ; SYSCALL takes RCX
    syscall
    ret
%endmacro

section .text
service ZwClose, SYS_CLOSE
service ZwTerminateThread, SYS_TERMINATE_THREAD
service ZwTerminateProcess, SYS_TERMINATE_PROCESS
service ZwDelayExecution, SYS_DELAY_EXECUTION
service ZwWaitForSingleObject, SYS_WAIT_FOR_SINGLE_OBJECT
service ZwYieldExecution, SYS_YIELD_EXECUTION
service ZwCreateThreadEx, SYS_CREATE_THREAD_EX
service ZwSetInformationThread, SYS_SET_INFORMATION_THREAD
service ZwQueryInformationThread, SYS_QUERY_INFORMATION_THREAD
service ZwAllocateVirtualMemory, SYS_ALLOCATE_VIRTUAL_MEMORY
service ZwFreeVirtualMemory, SYS_FREE_VIRTUAL_MEMORY
service ZwProtectVirtualMemory, SYS_PROTECT_VIRTUAL_MEMORY
service ZwDuplicateObject, SYS_DUPLICATE_OBJECT
service ZwGetCurrentProcessorNumber, SYS_GET_CURRENT_PROCESSOR_NUMBER
service ZwQueryPerformanceCounter, SYS_QUERY_PERFORMANCE_COUNTER
service ZwReadThreadProfilingData, SYS_READ_THREAD_PROFILING_DATA
service KeSetHardwareCounterConfiguration, SYS_SET_COUNTER_CONFIGURATION
service KeQueryHardwareCounterConfiguration, SYS_QUERY_COUNTER_CONFIGURATION
service write_console, SYS_WRITE
service ZwCreateProfile, SYS_CREATE_PROFILE
service ZwCreateProfileEx, SYS_CREATE_PROFILE_EX
service ZwStartProfile, SYS_START_PROFILE
service ZwStopProfile, SYS_STOP_PROFILE
service ZwQueryIntervalProfile, SYS_QUERY_INTERVAL_PROFILE
service ZwSetIntervalProfile, SYS_SET_INTERVAL_PROFILE
service RtlAdjustPrivilege, SYS_ADJUST_PRIVILEGE
service ZwTraceControl, SYS_TRACE_CONTROL
service ZwSetSystemInformation, SYS_SET_SYSTEM_INFORMATION
service ZwQuerySystemInformation, SYS_QUERY_SYSTEM_INFORMATION
service no_such_service, SYS_COUNT

; A thread's first instruction: RDI start routine, RSI its argument. What the routine returns is the exit status.
global user_thread_start
user_thread_start:
    mov rax, rdi
    mov rdi, rsi
    xor ebp, ebp
    and rsp, -16
    call rax
    mov esi, eax
.end:
    xor edi, edi                        ; this thread
    call ZwTerminateThread
    ud2

; The same for a process's first thread, whose routine returns nothing.
global user_process_start
user_process_start:
    mov rax, rdi
    mov rdi, rsi
    xor ebp, ebp
    and rsp, -16
    call rax
    xor esi, esi
    jmp user_thread_start.end
