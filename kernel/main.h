/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>

struct boot_info;

/* What reaches the host through isa-debug-exit. */
enum { EXIT_PASS = 0x10, EXIT_FAIL = 0x11, EXIT_NOTHING = 0x12, EXIT_PANIC = 0x13 };

/* The kernel, on the boot CPU, interrupts off. */
__attribute__((noreturn)) void kernel_main(const struct boot_info *info);
/* What each CPU does once it has its block and can take exceptions: APIC, system calls, PMU. */
void kernel_init_cpu(void);
/* Supplied by tests/: the first thread. */
void init_thread(void *unused);
/* Ends the machine: `code` reaches the host through isa-debug-exit; Bochs just ends; others wait for a key. */
__attribute__((noreturn)) void machine_exit(unsigned code);
/* reboot.c: waits for a key, then resets the machine. */
void reboot_on_key(void);
/* Whether the command line says "safe": one CPU, and nothing of ours causes an NMI. */
bool kernel_safe(void);
/* The command line and memory map of this boot. */
extern const struct boot_info *kernel_boot_info;
