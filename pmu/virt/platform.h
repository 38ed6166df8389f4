/* SPDX-License-Identifier: MIT */
/* The board's timers. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

struct platform {
    bool pit_armed; /* channel 2 was written since its output was read as high */
    unsigned pit_windows;
};

void platform_find_pm_timer(void); /* of a foreign guest; before platform_io_map */
/* The map of intercepted ports: its physical address; 0: none. */
uint64_t platform_io_map(void);
bool platform_io(struct vcpu *v);   /* false: the guest must do it, in a step */
void platform_spin(uint64_t clock); /* lets so much time pass */
