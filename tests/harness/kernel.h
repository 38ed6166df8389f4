/* SPDX-License-Identifier: MIT */
/* test.h, and what most tests in ring 0 use of the kernel and of the harness. */
#pragma once
#include "hal/interrupt.h"
#include "hal/machine/apic.h"
#include "hal/machine/clock.h"
#include "hal/machine/smp.h"
#include "hal/measure_traps.h"
#include "hal/owners.h"
#include "hal/pmc.h"
#include "hal/profile_interrupt.h"
#include "hal/source.h"
#include "hal/sources.h"
#include "kernel/base/bits.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/msr.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/counting/switch_counters.h"
#include "kernel/counting/thread_profiling.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "kernel/profiling/counter_config.h"
#include "kernel/profiling/profile.h"
#include "kernel/profiling/profiling_enable.h"
#include "kernel/services/services.h"
#include "kernel/trap.h"
#include "pmu/pmu.h"
#include "tests/harness/test.h"
#include "tests/harness/cost.h"
#include "tests/harness/counter_list.h"
#include "tests/harness/counting.h"
#include "tests/harness/kinds.h"
#include "tests/harness/measured.h"
#include "tests/harness/profile.h"
#include "tests/harness/rules.h"
#include "tests/harness/step.h"
#include "tests/harness/threads.h"
#include "tests/harness/user.h"
#include "tests/harness/vpmu.h"
#include "tests/ring3/ring3.h"

/* For loops that wait without sleeping, by the number of an iteration: PAUSE leaves a virtual
 * machine, so most iterations have none. */
static inline void pause_rarely(uint64_t iteration)
{
    if (iteration % 4096 == 0)
        pause();
}

/* A turn of a loop that hangs: an emulator passes NOPs in no time. */
static inline void pass_nops(void) { asm volatile(".fill 400, 1, 0x90"); }
