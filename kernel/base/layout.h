/* SPDX-License-Identifier: MIT */
/* Numbers that C and nasm share. The Makefile turns the #define lines into layout.inc;
 * C proves the offsets where the structures are. */
#pragma once

#define PAGE_SIZE 4096
#define KERNEL_VMA 0xffffffff80000000
#define DIRECT_MAP 0xffff800000000000
#define USER_END 0x00007fffffff0000
#define MAX_CPUS 256
/* The Makefile sets KASAN_ON to 0 or 1; with 1, frames have red zones. */
#define KERNEL_STACK_SIZE (16384 << KASAN_ON)

/* Segment selectors. SYSRET wants user SS, then user CS. */
#define SEL_KERNEL_CS 0x08
#define SEL_KERNEL_SS 0x10
/* as in Windows */
#define SEL_USER_SS 0x2b
#define SEL_USER_CS 0x33
#define SEL_TSS 0x40

/* trap_frame.vector: of a system call; once ring 3's registers were replaced. */
#define TRAP_SYSCALL 0x100
#define TRAP_RESTORE 0x101

/* struct cpu */
#define CPU_SELF 0
#define CPU_KERNEL_RSP 8
#define CPU_USER_RSP 16
#define CPU_THREAD 32
#define CPU_GDT 184

/* struct thread */
#define THREAD_RSP 40
#define THREAD_PROFILING 88
#define THREAD_CPU 96

/* struct exported of drivers' imports, and their thunks. */
#define EXPORTED_ADDRESS 8
#define EXPORTED_ARGUMENTS 17
#define EXPORTS_MAX 256
#define EXPORT_THUNK_SIZE 16

/* In the page where another CPU starts: physical, the page tables; virtual, its stack's top; pages
 * for its virtual PMU. */
#define AP_TABLES 0xfe8
#define AP_STACK 0xff0
#define AP_PAGES 0xff8
