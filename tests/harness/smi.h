/* SPDX-License-Identifier: MIT */
/* System management interrupts while a test runs: firmware's code that no one else sees, whose
 * instructions some processors count. */
#pragma once

/* Before the first test, on the runner's thread: whether there is a count of them that moves. */
void smi_init(void);
/* Before each test. */
void smi_begin(void);
/* After a failed test: prints how many came on which CPU since smi_begin; nothing if none. */
void smi_tell(void);
