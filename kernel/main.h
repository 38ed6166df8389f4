/* SPDX-License-Identifier: MIT */
#pragma once

/* The kernel, on the boot CPU, interrupts off; then the first thread, which is another room's. */
__attribute__((noreturn)) void kernel_main(void (*first_thread)(void *));
