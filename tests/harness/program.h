/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs the image's program in a process of its own and says how it ended; the machine's exit code.
 */
unsigned program_run(void);
