/* SPDX-License-Identifier: MIT */
/* A guest that is not this kernel, loaded for the virtual PMU: a multiboot 1 image, or a Linux
 * kernel (bzImage). */
#pragma once
#include <stdbool.h>
#include "pmu/virt/guests/virt_payload.h"

struct boot_info;

/* Moves us out of the guest's way, then loads the first module; the others are the guest's own
 * modules, or Linux' initrd. False, after a line that says why: no module, no image of these kinds,
 * segments that overlap us or a module, or are not in memory. */
bool payload_load(struct boot_info *boot, struct virt_payload *payload);

/* payload_linux.c: whether the first module is a Linux kernel; the same as above for it. */
bool linux_is(const struct boot_info *boot);
bool linux_load(const struct boot_info *boot, struct virt_payload *payload);
