/* SPDX-License-Identifier: MIT */
/* The end of a machine that a host watches. */
#pragma once

/* What reaches the host through QEMU's isa-debug-exit. */
enum {
    EXIT_PASS = 0x10,
    EXIT_FAIL = 0x11,
    EXIT_NOTHING = 0x12,
    EXIT_PANIC = 0x13,
    EXIT_DIED = 0x7f, /* the virtual PMU cannot go on */
};

/* Tells the host, if there is one: QEMU ends with the code, Bochs without one. Returns on any other
 * machine. */
void exit_to_host(unsigned code);
