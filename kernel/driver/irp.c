/* SPDX-License-Identifier: MIT */
/* What a driver that makes requests (IRPs) or stands above another one calls first: refused, by
 * name. NT: drivers of counters answer requests of programs, and make none. */
#include "kernel/base/print.h"
#include "kernel/driver/driver.h"

static PVOID refuse_call(const char *routine)
{
    char place[96];
    driver_place(driver_caller(), place, sizeof place);
    print("# %s calls %s, which is not supported\n", place, routine);
    return NULL;
}

NTSTATUS IofCallDriver(void) { return refuse_call("IoCallDriver"), STATUS_NOT_SUPPORTED; }

NTSTATUS IoGetDeviceObjectPointer(void)
{
    return refuse_call("IoGetDeviceObjectPointer"), STATUS_NOT_SUPPORTED;
}

/* As without memory. */
PVOID IoAllocateIrp(void) { return refuse_call("IoAllocateIrp"); }
PVOID IoBuildDeviceIoControlRequest(void) { return refuse_call("IoBuildDeviceIoControlRequest"); }
PVOID IoBuildSynchronousFsdRequest(void) { return refuse_call("IoBuildSynchronousFsdRequest"); }
/* As if the device below were gone. */
PVOID IoAttachDeviceToDeviceStack(void) { return refuse_call("IoAttachDeviceToDeviceStack"); }
