/* SPDX-License-Identifier: MIT */
/* test.h, and what most tests in ring 0 use of the kernel. */
#pragma once
#include "hal/sources.h"
#include "hal/interrupt.h"
#include "hal/owners.h"
#include "hal/machine/clock.h"
#include "hal/machine/smp.h"
#include "hal/measure_traps.h"
#include "hal/pmc.h"
#include "hal/profile_interrupt.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "pmu/pmu.h"
#include "tests/harness/test.h"

/* For loops that wait without sleeping, by the number of an iteration: PAUSE leaves a virtual
 * machine, so most iterations have none. */
static inline void pause_rarely(uint64_t iteration)
{
    if (iteration % 4096 == 0)
        pause();
}

/* A turn of a loop that hangs: an emulator passes NOPs in no time. */
static inline void pass_nops(void) { asm volatile(".fill 400, 1, 0x90"); }
