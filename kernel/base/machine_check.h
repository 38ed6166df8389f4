/* SPDX-License-Identifier: MIT */
/* What the processor says of a machine check (exception 18). */
#pragma once
#include <stdbool.h>

/* In the handler: reads the banks, and makes the next machine check an exception again, not a
 * shutdown. False: this CPU has noted one before. Does not return if another CPU has. */
bool machine_check_note(void);
/* Prints what was noted; nothing if there was none. For panic. */
void machine_check_print(void);
