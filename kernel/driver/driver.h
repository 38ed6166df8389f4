/* SPDX-License-Identifier: MIT */
/* Windows kernel drivers: PE32+ images of subsystem native, in ring 0. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/driver/nt_driver.h"
#include "kernel/image/image.h"

struct object;

#define DRIVERS_MAX 9 /* one is handlers.sys */

struct driver {
    const char *name; /* of its image */
    struct pe pe;
    uint8_t *pages; /* in the direct map */
    uint64_t base;  /* where it runs; 0: the slot is free */
    DRIVER_OBJECT object;
    DRIVER_EXTENSION extension;
    WCHAR path[80], object_name[80]; /* what RegistryPath and DriverName point to */
    UNICODE_STRING registry;
    unsigned left; /* things that it had not freed when it was stopped */
};

/* Whether an image is meant as a driver: its name ends with .sys. */
bool driver_is(const struct image *image);
/* Loads one: lays it out, relocates it, binds its imports, protects its sections. NULL, or what is
 * wrong with it. Prints a line for each import that is missing; only its use is a bug check.
 * PASSIVE_LEVEL, as the two below. */
const char *driver_load(const struct image *image, struct driver **driver);
/* Calls DriverEntry in a system thread; what it returned. */
NTSTATUS driver_start(struct driver *driver);
/* Calls DriverUnload in a system thread if `started`, names on one line each what the driver leaves
 * behind, and unloads it. False: it left something, and stays in memory. */
bool driver_stop(struct driver *driver, bool started);

/* A free slot of the table; NULL: all are taken. driver_take_slot gives the driver the range of
 * addresses of its slot. */
struct driver *driver_free_slot(void);
void driver_take_slot(struct driver *driver);
/* The driver whose image contains the address; NULL: none. Any IRQL. */
struct driver *driver_at(uint64_t address);
/* The driver whose slot contains the address, in its image or after it; NULL: none. Any IRQL. */
struct driver *driver_at_slot(uint64_t address);
/* The address that the driver's n-th import is bound to if it is missing. */
uint64_t driver_missing_address(const struct driver *driver, unsigned n);
/* The name of the missing import that the use of this address means; NULL: it means none. */
const char *driver_missing_import(uint64_t address, const char **library);
/* "name.sys+0x123", or nothing. Any IRQL. */
void driver_place(uint64_t address, char *text, size_t capacity);

/* Where the driver called the exported routine that runs here; 0: no driver called one.
 * Each export's thunk stores its return address in the thread, and restores what an outer call left
 * there. So it holds over a switch to another thread, over the drivers that a routine calls, and
 * over DPCs and handlers of interrupts, which borrow the interrupted thread. Any IRQL. */
uint64_t driver_caller(void);

/* ke.c */
KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock);
VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);
VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql);
VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock);

/* call.c. Around each call of a driver's routine: saves and restores the SSE registers, which may
 * belong to the interrupted code, and checks that the routine returns at the same IRQL (bug check
 * C8h). */
struct driver_call {
    uint8_t fpu[512] __attribute__((aligned(16)));
    KIRQL irql;
    uint64_t routine;
};
void driver_enter(struct driver_call *call, const void *routine);
void driver_leave(struct driver_call *call);

struct trap_frame;
/* exceptions.c. From here on `driver`, which is handlers.sys, finds the handlers of drivers'
 * exceptions, and drivers import its exports. */
void exceptions_go_to(struct driver *driver);
/* An export of handlers.sys; NULL: there is none of that name. */
void *exceptions_export(const char *name);
/* If a driver caused the exception: continues in that driver's handler, or ends with a bug check.
 * Otherwise it returns. */
void exception_trap(const struct trap_frame *frame, uint64_t address);
/* Bug check 7Fh if a driver has used more than the thread's stack, at `place` or, if that is the
 * kernel's, where the stack says. */
void exception_stack_check(uint64_t rsp, uint64_t place);
/* In each tick: a driver that stays at DISPATCH_LEVEL or above is a bug check. */
void exception_tick(const struct trap_frame *frame, uint64_t irql);
/* Atomic: somebody asks why the machine hangs. */
extern bool driver_hangs;

/* Prints "# NAME left ...", and counts it. */
__attribute__((format(printf, 2, 3))) void driver_left(struct driver *driver, const char *format,
                                                       ...);
/* Each calls driver_left for what the driver has not freed of its own kind. */
void pool_left(struct driver *driver);
void counters_left(struct driver *driver);
void threads_left(struct driver *driver);
void timers_left(struct driver *driver);
void routines_left(struct driver *driver);
void nmi_left(struct driver *driver);
