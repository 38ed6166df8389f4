/* SPDX-License-Identifier: MIT */
/* The virtual PMU, as boot/ sees it: hardware that is switched on before the kernel starts. */
#pragma once
#include <stdint.h>

/* Puts a virtual PMU of the model named ("intel-v2", "amd-v2,step", ...) below this CPU, which carries on as
 * its guest when this returns. Without SVM, or for an unknown model, prints one line and returns as it came. */
void virt_boot(const char *model);
/* Starts a guest of another kind, a multiboot 1 image already loaded: entry and information are physical addresses.
 * Returns only after one line that says why not. */
void virt_boot_payload(const char *model, uint32_t entry, uint32_t info);
/* The same for another CPU, from its trampoline; nothing if there is no virtual PMU. */
void virt_ap(void);
