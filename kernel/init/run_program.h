/* SPDX-License-Identifier: MIT */
#pragma once

/* Loads the drivers that the loader brought, runs the program among the modules in a process of its
 * own, and says how it ended; the machine's exit code. PASSIVE_LEVEL. */
unsigned run_program_and_drivers(void);
