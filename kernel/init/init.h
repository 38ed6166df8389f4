/* SPDX-License-Identifier: MIT */
/* The first thread. */
#pragma once
#include <stdbool.h>

/* What tests/ may supply; without it the image is the kernel alone. True: the command line asked
 * for something of theirs, which has run; *code is the machine's exit code. PASSIVE_LEVEL. */
bool init_tests(unsigned *code) __attribute__((weak));
