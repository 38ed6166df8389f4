/* SPDX-License-Identifier: MIT */
#pragma once

/* Ends the machine: the host gets `code` (exit.h); where there is none, a key resets the machine.
 */
__attribute__((noreturn)) void machine_exit(unsigned code);
