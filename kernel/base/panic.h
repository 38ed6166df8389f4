/* SPDX-License-Identifier: MIT */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct trap_frame;

/* How the other CPUs are stopped (by an NMI), and how the machine ends. Until then: not at all. */
void panic_init(void (*stop_others)(void), void (*end)(unsigned exit_code));
/* Prints registers and a backtrace, stops the other CPUs, ends the machine with EXIT_PANIC. */
__attribute__((noreturn)) void panic_trap(const struct trap_frame *frame, uint64_t fault_address);
/* For what runs in ring 0 and is not the kernel's; NULL until there is such. Whose an address is,
 * or nothing; and a look at an exception before it is a panic. */
extern void (*panic_owner)(uint64_t address, char *text, size_t room);
extern void (*panic_first)(const struct trap_frame *frame, uint64_t fault_address);
/* From NMI: does not return once some CPU panicked. */
void panic_stop_if_dying(void);
