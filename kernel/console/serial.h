/* SPDX-License-Identifier: MIT */
/* Serial ports, 115200 8N1, output only, polled with a bound. Nothing blocks without a UART. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COM1 0x3f8
#define COM2 0x2f8

struct serial {
    uint16_t port;
    bool present;
    unsigned fifo;  /* bytes that fit at once */
    unsigned space; /* of these, free for sure */
};

/* False: no UART answers there. */
bool serial_open(struct serial *serial, uint16_t port);
/* False: the UART stopped taking bytes, and takes none from now on. One caller at a time. */
bool serial_write(struct serial *serial, const void *bytes, size_t count);

/* The console: the UART there, or COM1: false. Never blocks where there is none. */
bool serial_init(uint16_t port);
/* Whether a byte came; it is dropped. */
bool serial_received(void);
