/* SPDX-License-Identifier: MIT */
/* Routines of drivers that each NMI calls. A slot is written under nmi_lock and read without it;
 * the removal of a routine waits until no processor runs one. Source: the Windows driver
 * documentation of KeRegisterNmiCallback. */
#include "kernel/base/irql.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/lock.h"
#include "kernel/base/print.h"
#include "kernel/base/refuse.h"
#include "kernel/base/x86.h"
#include "kernel/driver/driver.h"

#define NMI_CALLBACKS 8u

typedef BOOLEAN(NTAPI *nmi_routine)(PVOID, BOOLEAN);

static struct slot {
    nmi_routine routine; /* atomic; NULL: free */
    PVOID context;
} slots[NMI_CALLBACKS];
static uint32_t running; /* atomic */
static struct lock nmi_lock = LOCK("NMI callbacks", DISPATCH_LEVEL);

/* In the NMI handler: any moment, no lock; no routine may block. NT: the kernel's own NMIs come
 * here too, and no routine is told that they are handled. */
static bool call_nmi_callbacks(void)
{
    bool handled = false;
    uint8_t fpu[512] __attribute__((aligned(16)));
    const uint64_t irql = read_cr8();
    write_cr8(HIGH_LEVEL);
    fxsave(fpu);
    __atomic_fetch_add(&running, 1, __ATOMIC_ACQ_REL);
    for (unsigned i = 0; i < NMI_CALLBACKS; i++) {
        nmi_routine routine = __atomic_load_n(&slots[i].routine, __ATOMIC_ACQUIRE);
        if (routine)
            handled |= routine(slots[i].context, handled) != 0;
    }
    __atomic_fetch_sub(&running, 1, __ATOMIC_ACQ_REL);
    fxrstor(fpu);
    write_cr8(irql);
    return handled;
}

/* A handle; NULL: there are too many. */
PVOID KeRegisterNmiCallback(nmi_routine CallbackRoutine, PVOID Context)
{
    unsigned i = claim_fails() ? NMI_CALLBACKS : 0;
    KIRQL irql = lock_acquire(&nmi_lock);
    while (i < NMI_CALLBACKS && slots[i].routine)
        i++;
    if (i < NMI_CALLBACKS) {
        slots[i].context = Context;
        __atomic_store_n(&slots[i].routine, CallbackRoutine, __ATOMIC_RELEASE);
        __atomic_store_n(&trap_nmi_callbacks, call_nmi_callbacks, __ATOMIC_RELEASE);
    }
    lock_release(&nmi_lock, irql);
    return i < NMI_CALLBACKS ? &slots[i] : NULL;
}

/* STATUS_INVALID_HANDLE. */
NTSTATUS KeDeregisterNmiCallback(PVOID Handle)
{
    NTSTATUS status = STATUS_INVALID_HANDLE;
    KIRQL irql = lock_acquire(&nmi_lock);
    for (unsigned i = 0; i < NMI_CALLBACKS; i++)
        if (Handle == &slots[i] && slots[i].routine) {
            /* Seen by other processors before `running` is read: an NMI there that is not counted
             * yet finds no routine. */
            __atomic_store_n(&slots[i].routine, NULL, __ATOMIC_SEQ_CST);
            status = STATUS_SUCCESS;
        }
    lock_release(&nmi_lock, irql);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
        pause();
    return status;
}

void nmi_left(struct driver *driver)
{
    unsigned count = 0;
    for (unsigned i = 0; i < NMI_CALLBACKS; i++)
        if (slots[i].routine && driver_at((uint64_t)slots[i].routine) == driver)
            count++;
    if (count)
        driver_left(driver, "%u NMI callback%s", count, count > 1 ? "s" : "");
}
