/* SPDX-License-Identifier: MIT */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct trap_frame;

/* Sets how an NMI stops the other CPUs, and what ends the machine (at first exit_to_host). */
void panic_init(void (*stop_others)(void), void (*end)(unsigned exit_code));
/* Prints registers and a backtrace, stops the other CPUs, ends the machine with EXIT_PANIC. */
__attribute__((noreturn)) void panic_trap(const struct trap_frame *frame, uint64_t fault_address);
/* As panic, but the run fails by it, with EXIT_FAIL: an error of a driver, not of the kernel. */
__attribute__((noreturn, format(printf, 1, 2))) void panic_fail(const char *format, ...);
/* From NMI: does not return once some CPU panicked. */
void panic_stop_if_dying(void);
/* The function of ours at or before an address, "?" if there is none, and how far it is. */
const char *symbol_of(uint64_t address, uint32_t *offset);
