/* SPDX-License-Identifier: MIT */
/* A multiboot 1 image of somebody else's, loaded to be the virtual PMU's guest instead of the kernel. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct boot_info;

struct payload {
    uint32_t entry; /* physical; 32-bit protected mode, paging off, EAX and EBX as multiboot 1 says */
    uint32_t info;  /* physical address of its multiboot information */
};

/* Loads the first module. False, with one line that says why: no module, no multiboot header, segments that
 * overlap our image, the module itself or what is no memory. */
bool payload_load(const struct boot_info *boot, struct payload *payload);
