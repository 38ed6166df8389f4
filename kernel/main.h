/* SPDX-License-Identifier: MIT */
#pragma once

/* The kernel, on the boot CPU, interrupts off. */
__attribute__((noreturn)) void kernel_main(void);
/* Supplied by tests/: the first thread. */
void init_thread(void *unused);
