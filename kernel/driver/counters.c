/* SPDX-License-Identifier: MIT */
/* The HAL routines for drivers: which driver owns which counters, and their handlers. A handler
 * follows the drivers' calling convention and may use SSE registers, which belong to the
 * interrupted code. */
#include "hal/sources.h"
#include "hal/interrupt.h"
#include "hal/owners.h"
#include "hal/pmc.h"
#include "hal/profile_interrupt.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"

typedef VOID(NTAPI *overflow_handler)(ULONGLONG OverflowBits, HANDLE OwningHandle);
typedef VOID(NTAPI *buffer_handler)(PVOID EventBuffer, ULONGLONG EntrySize,
                                    ULONGLONG NumberOfEntries, HANDLE OwningHandle);
typedef VOID(NTAPI *pmi_handler)(PVOID TrapFrame);

#define LIST_LIMIT 4096u

struct handlers {
    overflow_handler overflow;
    buffer_handler buffer; /* not NULL: the set has an event buffer */
};

/* What drivers have, by the slot of its owner (hal_owner_slot). Read at PROFILE_LEVEL. */
static struct set {
    HANDLE handle; /* atomic; NULL: no driver's */
    uint64_t where;
    struct handlers handlers;
} sets[HAL_OWNERS_MAX];

/* NULL: the driver does not have its handle yet, and has programmed nothing. */
static const struct handlers *handlers_of(HANDLE handle)
{
    const struct set *s = &sets[hal_owner_slot(handle)];
    return __atomic_load_n(&s->handle, __ATOMIC_ACQUIRE) == handle ? &s->handlers : NULL;
}

/* At PROFILE_LEVEL, as the next one. */
static VOID call_overflow_handler(ULONGLONG bits, HANDLE handle)
{
    const struct handlers *theirs = handlers_of(handle);
    struct driver_call call;
    if (!theirs)
        return;
    driver_enter(&call, theirs->overflow);
    theirs->overflow(bits, handle);
    driver_leave(&call);
}

static VOID call_buffer_handler(PVOID buffer, ULONGLONG size, ULONGLONG count, HANDLE handle)
{
    const struct handlers *theirs = handlers_of(handle);
    struct driver_call call;
    if (!theirs)
        return;
    driver_enter(&call, theirs->buffer);
    theirs->buffer(buffer, size, count, handle);
    driver_leave(&call);
}

static void remember_set(HANDLE handle, struct handlers handlers, uint64_t where)
{
    struct set *s = &sets[hal_owner_slot(handle)];
    s->where = where;
    s->handlers = handlers;
    __atomic_store_n(&s->handle, handle, __ATOMIC_RELEASE);
}

/* Unless the next owner has the slot already. */
static void forget_set(HANDLE handle)
{
    __atomic_compare_exchange_n(&sets[hal_owner_slot(handle)].handle, &handle, NULL, false,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* In a copy of the list: our handlers in place of the driver's. Of each kind there is at most one:
 * two are refused. */
static struct handlers replace_handlers(PPHYSICAL_COUNTER_RESOURCE_LIST list)
{
    struct handlers theirs = { NULL, NULL };
    for (ULONG i = 0; i < list->Count; i++) {
        PPHYSICAL_COUNTER_RESOURCE_DESCRIPTOR d = &list->Descriptors[i];
        PPHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION buffer = &d->u.EventBufferConfiguration;
        if (d->Type == ResourceTypeOverflow && d->u.OverflowHandler) {
            theirs.overflow = (overflow_handler)(void (*)(void))d->u.OverflowHandler;
            d->u.OverflowHandler = call_overflow_handler;
        } else if (d->Type == ResourceTypeEventBuffer && buffer->OverflowHandler) {
            theirs.buffer = (buffer_handler)(void (*)(void))buffer->OverflowHandler;
            buffer->OverflowHandler = call_buffer_handler;
        }
    }
    return theirs;
}

NTSTATUS driver_HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinty, ULONG GroupCount,
                                            PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                            PHANDLE CounterSetHandle)
{
    PPHYSICAL_COUNTER_RESOURCE_LIST list = NULL;
    struct handlers handlers = { NULL, NULL };
    if (ResourceList && ResourceList->Count <= LIST_LIMIT) {
        size_t size = offsetof(PHYSICAL_COUNTER_RESOURCE_LIST, Descriptors) +
                      ResourceList->Count * sizeof ResourceList->Descriptors[0];
        list = pool_allocate(size);
        if (!list) {
            if (CounterSetHandle)
                *CounterSetHandle = NULL;
            return STATUS_INSUFFICIENT_RESOURCES;
        }
        memcpy(list, ResourceList, size);
        handlers = replace_handlers(list);
    }
    NTSTATUS status = HalAllocateHardwareCounters(GroupAffinty, GroupCount,
                                                  list ? list : ResourceList, CounterSetHandle);
    if (NT_SUCCESS(status)) {
        remember_set(*CounterSetHandle, handlers, driver_caller());
        hal_counters_lend(*CounterSetHandle);
    }
    if (list)
        pool_free(list);
    return status;
}

NTSTATUS driver_HalFreeHardwareCounters(HANDLE CounterSetHandle)
{
    NTSTATUS status = HalFreeHardwareCounters(CounterSetHandle); /* calls the buffer's handler */
    if (NT_SUCCESS(status))
        forget_set(CounterSetHandle);
    return status;
}

/* The frame is what the driver's handler of the interrupt got, or one with rip where that has it:
 * NT: ours, no KTRAP_FRAME. Windows' HAL calls it at PROFILE_LEVEL; here at any IRQL. */
VOID driver_KeProfileInterruptWithSource(PKTRAP_FRAME TrapFrame, KPROFILE_SOURCE Source)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    KeProfileInterruptWithSource(TrapFrame, Source);
    irql_lower(old);
}

/* --- HalDispatchTable. --- */

static pmi_handler interrupt_handler;

static VOID call_interrupt_handler(PKTRAP_FRAME frame)
{
    struct driver_call call;
    driver_enter(&call, interrupt_handler);
    interrupt_handler(frame);
    driver_leave(&call);
}

static NTAPI NTSTATUS query_system_information(HAL_QUERY_INFORMATION_CLASS class, ULONG size,
                                               PVOID buffer, PULONG returned)
{
    return HalQuerySystemInformation(class, size, buffer, returned);
}

/* STATUS_DEVICE_BUSY: another driver has set a handler for the interrupt. */
static NTSTATUS set_handler(ULONG size, const PVOID *buffer)
{
    PMIHANDLER ours = call_interrupt_handler;
    if (size >= sizeof ours && *buffer && !hal_pmi_has_driver())
        interrupt_handler = (pmi_handler)*buffer;
    return HalSetSystemInformation(HalProfileSourceInterruptHandler, size,
                                   size >= sizeof ours && *buffer ? &ours : (PVOID)buffer);
}

static NTAPI NTSTATUS set_system_information(HAL_SET_INFORMATION_CLASS class, ULONG size,
                                             PVOID buffer)
{
    return class == HalProfileSourceInterruptHandler ? set_handler(size, buffer)
                                                     : HalSetSystemInformation(class, size, buffer);
}

/* Version 4: members up to HalMirrorVerify; those that do nothing here are NULL. */
HAL_DISPATCH HalDispatchTable = { .Version = 4,
                                  .HalQuerySystemInformation = (PVOID)query_system_information,
                                  .HalSetSystemInformation = (PVOID)set_system_information };

/* --- HalPrivateDispatchTable: counter sets. --- */

static NTAPI NTSTATUS allocate_counter_set(ULONG processor, KPROFILE_SOURCE *sources, ULONG count,
                                           PMC_HANDLE *handle)
{
    NTSTATUS status = HalAllocatePmcCounterSet(processor, sources, count, handle);
    if (NT_SUCCESS(status))
        remember_set((*handle)->owner, (struct handlers){ NULL, NULL },
                     (uint64_t)__builtin_return_address(0));
    return status;
}

static NTAPI VOID collect_counters(PMC_HANDLE set, ULONG64 *values)
{
    HalCollectPmcCounters(set, values);
}

static NTAPI VOID free_counter_set(PMC_HANDLE set)
{
    forget_set(set->owner);
    HalFreePmcCounterSet(set);
}

HAL_PRIVATE_DISPATCH HalPrivateDispatchTable = { .Version = 17,
                                                 .HalAllocatePmcCounterSet =
                                                     (PVOID)allocate_counter_set,
                                                 .HalCollectPmcCounters = (PVOID)collect_counters,
                                                 .HalFreePmcCounterSet = (PVOID)free_counter_set };

void counters_left(struct driver *driver)
{
    for (unsigned i = 0; i < HAL_OWNERS_MAX; i++) {
        char place[96];
        if (!sets[i].handle || driver_at(sets[i].where) != driver)
            continue;
        driver_place(sets[i].where, place, sizeof place);
        bool buffer = sets[i].handlers.buffer != NULL;
        driver_left(driver, "hardware counters%s, allocated at %s",
                    buffer ? " with an event buffer" : "", place);
        HANDLE handle = sets[i].handle;
        if (buffer) { /* which the processors would go on writing; its handler is unloaded */
            forget_set(handle);
            HalFreeHardwareCounters(handle);
        }
    }
    if (hal_pmi_has_driver() && driver_at((uint64_t)interrupt_handler) == driver)
        driver_left(driver, "its handler of the counters' interrupt");
}
