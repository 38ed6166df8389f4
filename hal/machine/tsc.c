/* SPDX-License-Identifier: MIT */
/* Compares the TSC of each CPU that starts with the boot CPU's. Between two of its own readings the
 * boot CPU gets one of the other's: that bounds by how much the other may be ahead, and several
 * such bounds are closer together. A TSC outside of them is set: by TSC_ADJUST, which moves it by a
 * difference, else by writing it, which loses the time from RDTSC to WRMSR: that is measured and
 * added. What a hypervisor that ignores writes leaves is taken off times (clock_ns). Boot,
 * interrupts off on the CPU that starts. Sources: SDM volume 3, "Time-stamp counter"; the idea of
 * comparing at each start is Linux's. */
#include "hal/machine/tsc.h"
#include "hal/machine/clock.h"
#include "kernel/base/cpu.h"
#include "kernel/base/msr.h"
#include "kernel/base/assert.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"

#define TRIES 16
#define ANSWER_PAUSES 400000000u
#define HAS_TSC_ADJUST (1u << 1) /* CPUID 7 EBX */

enum { READ = 1, MOVE, LEAVE };
static uint32_t asked;  /* atomic: what the other CPU has yet to do; 0: it has done it */
static uint64_t answer; /* its TSC; how far it has to move */

static unsigned disagreed, unset;
static uint64_t most; /* the largest disagreement */

static bool has_tsc_adjust(void) { return cpuid_leaf(7).ebx & HAS_TSC_ADJUST; }

/* An MSR that faults leaves the TSC as it is. */
static void move_tsc(uint64_t by)
{
    uint64_t adjust = 0;
    if (has_tsc_adjust() && !rdmsr_fault(MSR_TSC_ADJUST, &adjust))
        wrmsr_fault(MSR_TSC_ADJUST, adjust + by);
    else
        wrmsr_fault(MSR_TSC, rdtsc() + by);
}

void tsc_answer(void)
{
    for (uint32_t what = 0; what != LEAVE;) {
        while (!(what = __atomic_load_n(&asked, __ATOMIC_ACQUIRE)))
            pause();
        lfence();
        if (what == READ)
            answer = rdtsc();
        else if (what == MOVE)
            move_tsc(answer);
        __atomic_store_n(&asked, 0, __ATOMIC_RELEASE);
    }
}

static void ask_other(uint32_t what)
{
    unsigned pauses = 0;
    __atomic_store_n(&asked, what, __ATOMIC_RELEASE);
    while (__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) {
        if (pauses++ == ANSWER_PAUSES)
            panic("the CPU that starts does not report its TSC");
        pause();
    }
    lfence();
}

/* How far the other TSC is ahead; 0: it may be equal. */
static int64_t ahead(void)
{
    int64_t least = INT64_MIN, greatest = INT64_MAX;
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t before = rdtsc();
        ask_other(READ);
        int64_t low = (int64_t)(answer - rdtsc()), high = (int64_t)(answer - before);
        least = low > least ? low : least;
        greatest = high < greatest ? high : greatest;
    }
    return least <= 0 && greatest >= 0 ? 0 : least + (greatest - least) / 2;
}

static void move_other(int64_t by)
{
    answer = (uint64_t)by;
    ask_other(MOVE);
}

void tsc_compare(struct cpu *cpu)
{
    int64_t found = ahead(), left = found;
    if (found) {
        uint64_t size = (uint64_t)(found < 0 ? -found : found);
        disagreed++;
        most = size > most ? size : most;
        move_other(-found);
        left = ahead();
        if (left && !has_tsc_adjust()) {
            move_other(-2 * left); /* the write loses as much time again */
            left = ahead();
        }
    }
    unset += left != 0;
    cpu->tsc_behind = (uint64_t)-left;
    ask_other(LEAVE);
}

void tsc_report(void)
{
    if (!disagreed)
        return;
    print("# clock: the TSCs of %u CPUs disagreed with CPU 0's, by up to %lu: ", disagreed, most);
    if (unset)
        print("%u cannot be set: the kernel's clock takes it off, RDTSC does not\n", unset);
    else
        print("they were set\n");
}
