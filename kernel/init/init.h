/* SPDX-License-Identifier: MIT */
/* The first thread. */
#pragma once
#include <stdbool.h>

/* For kernel_main. PASSIVE_LEVEL. */
void init_thread(void *unused);
/* What tests/ may supply; without it the image is the kernel alone. True: the command line asked
 * for something of theirs, which has run; *code is the machine's exit code. PASSIVE_LEVEL. */
bool init_tests(unsigned *code) __attribute__((weak));
