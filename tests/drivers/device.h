/* SPDX-License-Identifier: MIT */
/* What device.c, a program, and device_driver.c say to each other. */
#pragma once

#define CODE(n, method, access) ((0x8000u << 16) | ((access) << 14) | ((n) << 2) | (method))
#define BUFFERED 0
#define IN_DIRECT 1
#define OUT_DIRECT 2
#define NEITHER 3

/* clang-format off */
enum {
    ECHO = CODE(0x801, BUFFERED, 0),         /* the input backwards */
    SUM = CODE(0x802, IN_DIRECT, 0),         /* bytes of input and MDL, as Information */
    FILL = CODE(0x803, OUT_DIRECT, 0),       /* the input's first byte added to each of the MDL's */
    REFUSED = CODE(0x804, NEITHER, 0),
    END_WITH = CODE(0x805, BUFFERED, 0),     /* struct end */
    PEND = CODE(0x806, BUFFERED, 0),         /* until FINISH */
    FINISH = CODE(0x808, BUFFERED, 0),       /* completes what is pending */
    LATER = CODE(0x809, BUFFERED, 0),        /* pending, completed by a timer's DPC */
    REPORT = CODE(0x80a, BUFFERED, 0),       /* struct report */
    WANTS_READ = CODE(0x80b, BUFFERED, 1),
    WANTS_WRITE = CODE(0x80c, BUFFERED, 2),
    PENDS = CODE(0x80d, BUFFERED, 0),        /* how many are pending */
    SERVES = CODE(0x80f, BUFFERED, 0),       /* makes and closes an event of its own in the caller's thread */
    VIEW = CODE(0x810, BUFFERED, 0),         /* struct view: maps a number of the driver's, or unmaps */
};
/* clang-format on */

struct view {
    unsigned long long base, size, at; /* of the view, in the program; where the number is in it */
    unsigned long number, unmap;
    long status;
};

struct end {
    long status;
    unsigned long information;
};

struct report {
    unsigned long opened, cleaned, closed, processes, threads;
};
