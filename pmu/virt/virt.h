/* SPDX-License-Identifier: MIT */
/* The virtual PMU, as boot/ sees it: hardware that is switched on before the kernel starts. */
#pragma once

/* Puts a virtual PMU of the model named ("intel-v2", "amd-v2,step", ...) below this CPU, which carries on as
 * its guest when this returns. Without SVM, or for an unknown model, prints one line and returns as it came. */
void virt_boot(const char *model);
/* The same for another CPU, from its trampoline; nothing if there is no virtual PMU. */
void virt_ap(void);
