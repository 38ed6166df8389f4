/* SPDX-License-Identifier: MIT */
#pragma once

/* Ends the run: the host gets `code` (exit.h); without a host, a key resets the machine. */
__attribute__((noreturn)) void machine_exit(unsigned code);
