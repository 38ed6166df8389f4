/* SPDX-License-Identifier: MIT */
#pragma once

/* The kernel, on the boot CPU, interrupts off. */
__attribute__((noreturn)) void kernel_main(void);
/* What each CPU does once it has its block and can take exceptions: APIC, system calls, PMU. */
void kernel_init_cpu(void);
/* Supplied by tests/: the first thread. */
void init_thread(void *unused);
