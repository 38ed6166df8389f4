/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

struct trap_frame;

/* Prints registers and a backtrace, stops the other CPUs, ends the machine with EXIT_PANIC. */
__attribute__((noreturn)) void panic_trap(const struct trap_frame *frame, uint64_t fault_address);
/* From NMI: does not return once some CPU panicked. */
void panic_stop_if_dying(void);
