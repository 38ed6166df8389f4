/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

/* A guest of another kind, already loaded; all addresses are physical. */
struct virt_payload {
    uint64_t entry, info; /* info: what the loader says */
    uint64_t tables, gdt; /* of a Linux kernel, which starts in long mode; 0: a multiboot 1 image */
    uint16_t gdt_limit;
    uint64_t end; /* of its memory: there we are */
    /* The machine's CPUs; a page below 1 MB, or 0, in which the others begin, and which is as
     * before when the guest starts; for each of them cpu_size bytes, virt_cpu_pages(). */
    const uint32_t *apic_ids;
    unsigned cpu_count;
    uint32_t start_page, cpu_size;
    void *cpu_pages;
};
/* Starts it. Returns only if that fails, after one line with the reason. */
void virt_boot_payload(const char *model, const struct virt_payload *payload);
