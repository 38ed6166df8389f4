/* SPDX-License-Identifier: MIT */
/* The virtual PMU's interface to boot/: it is switched on before the kernel starts, as if it
 * were hardware. */
#pragma once
#include <stdint.h>

/* Starts a virtual PMU of this model; when it returns this CPU is its guest. Quirks may follow
 * the name: "intel-v2", "amd-v2,step,irq3=1". Without SVM, or for an unknown word, it prints one
 * line and changes nothing. */
void virt_boot(const char *model);
/* Starts a guest of another kind, a multiboot 1 image already loaded: entry and information are
 * physical addresses. Returns only if that fails, after one line with the reason. */
void virt_boot_payload(const char *model, uint32_t entry, uint32_t info);
/* The same for another CPU, from its trampoline; nothing if there is no virtual PMU. */
void virt_ap(void);
