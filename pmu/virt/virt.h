/* SPDX-License-Identifier: MIT */
/* The virtual PMU's interface to boot/: it is switched on before the kernel starts, as if it
 * were hardware. */
#pragma once
#include <stdint.h>

/* Starts a virtual PMU of this model; when it returns this CPU is its guest. Quirks may follow
 * the name: "intel-v2", "amd-v2,step,irq3=1". Without SVM, or for an unknown word, it prints one
 * line and changes nothing. */
void virt_boot(const char *model);
/* Pages that each other CPU needs for its virtual PMU; the second: 0 where there is none. */
unsigned virt_cpu_pages(void);
unsigned virt_ap_pages(void);
/* virt_boot on another CPU, from its trampoline, with these pages; nothing if there is no virtual
 * PMU. */
void virt_ap(void *pages);
