/* SPDX-License-Identifier: MIT */
/* A guest that is not this kernel, loaded for the virtual PMU: a multiboot 1 image, or a Linux
 * kernel (bzImage). */
#pragma once
#include <stdbool.h>
#include "pmu/virt/virt.h"

struct boot_info;

/* Loads the first module; the others are the guest's own modules, or Linux' initrd. Moves us out of
 * its way first. False, with one line that says why: no module, no image of these kinds, segments
 * that overlap us, a module or what is no memory. */
bool payload_load(struct boot_info *boot, struct virt_payload *payload);

/* payload_linux.c: the same for Linux. Whether the first module is one. */
bool linux_is(const struct boot_info *boot);
bool linux_load(const struct boot_info *boot, struct virt_payload *payload);
