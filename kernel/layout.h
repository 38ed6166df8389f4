/* SPDX-License-Identifier: MIT */
/* Numbers that C and nasm share. The Makefile turns the #define lines into layout.inc;
 * C proves the offsets where the structures are. */
#pragma once

#define PAGE_SIZE 4096
#define KERNEL_VMA 0xffffffff80000000
#define DIRECT_MAP 0xffff800000000000
#define USER_END 0x00007fffffff0000
#define MAX_CPUS 64
#define KERNEL_STACK_SIZE 16384

/* Segment selectors. SYSRET wants user SS and CS behind each other. */
#define SEL_KERNEL_CS 0x08
#define SEL_KERNEL_SS 0x10
#define SEL_USER_SS 0x23
#define SEL_USER_CS 0x2b
#define SEL_TSS 0x30

/* struct cpu */
#define CPU_SELF 0
#define CPU_KERNEL_RSP 8
#define CPU_USER_RSP 16
#define CPU_THREAD 24

/* struct thread */
#define THREAD_RSP 24
#define THREAD_PROFILING 72

/* The page that an application processor starts in, and its parameters. */
#define AP_PAGE 0x8000
#define AP_STACK 0x8ff8

/* Service numbers. */
#define SYS_CLOSE 0
#define SYS_TERMINATE_THREAD 1
#define SYS_TERMINATE_PROCESS 2
#define SYS_DELAY_EXECUTION 3
#define SYS_WAIT_FOR_SINGLE_OBJECT 4
#define SYS_YIELD_EXECUTION 5
#define SYS_CREATE_THREAD_EX 6
#define SYS_SET_INFORMATION_THREAD 7
#define SYS_QUERY_INFORMATION_THREAD 8
#define SYS_ALLOCATE_VIRTUAL_MEMORY 9
#define SYS_FREE_VIRTUAL_MEMORY 10
#define SYS_PROTECT_VIRTUAL_MEMORY 11
#define SYS_DUPLICATE_OBJECT 12
#define SYS_GET_CURRENT_PROCESSOR_NUMBER 13
#define SYS_QUERY_PERFORMANCE_COUNTER 14
#define SYS_WRITE 15
#define SYS_CREATE_PROFILE 16
#define SYS_CREATE_PROFILE_EX 17
#define SYS_START_PROFILE 18
#define SYS_STOP_PROFILE 19
#define SYS_QUERY_INTERVAL_PROFILE 20
#define SYS_SET_INTERVAL_PROFILE 21
#define SYS_ADJUST_PRIVILEGE 22
#define SYS_READ_THREAD_PROFILING_DATA 23
#define SYS_SET_COUNTER_CONFIGURATION 24
#define SYS_QUERY_COUNTER_CONFIGURATION 25
#define SYS_TRACE_CONTROL 26
#define SYS_SET_SYSTEM_INFORMATION 27
#define SYS_QUERY_SYSTEM_INFORMATION 28
#define SYS_COUNT 29
