/* SPDX-License-Identifier: MIT */
/* The kernel's clock, and the choice of its rate among several sources. Written once, by the boot
 * CPU before others start; const afterwards. Sources: Intel SDM vol. 2 "CPUID" leaves 15h and 16h;
 * the leaf 4000_0010h that VMware defined and KVM has. */
#include "hal/machine/clock.h"
#include "hal/machine/apic.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"

#define MHZ 1000000ul
#define BELIEVED_MIN MHZ
#define BELIEVED_MAX (20000 * MHZ)
#define TOLERANCE 100 /* rates agree if they differ by less than 1/TOLERANCE */
#define LEAF_HYPERVISOR 0x40000000u
#define LEAF_TIMING 0x40000010u
#define LAST_RESORT (1000 * MHZ)
#define LAST_RESORT_TIMER (100 * MHZ) /* the bus of most processors, AMD's and Intel's */

enum { SAID_BY_LEAF, SAID_BY_15H, MEASURED, SAID_BY_16H = MEASURED + CLOCK_COUNTERS, READINGS };

uint64_t clock_tsc_hz;
static struct clock_sources known;
static uint64_t begin, begin_ns, ns_per_count; /* fixed point, 32 fraction bits */

/* Read again if the thread moved to another CPU in between. */
static uint64_t tsc_of_all(void)
{
    for (;;) {
        const struct cpu *cpu = cpu_current();
        uint64_t tsc = rdtsc() + cpu->tsc_behind;
        if (cpu == cpu_current())
            return tsc;
    }
}

uint64_t clock_ns(void)
{
    return begin_ns + (uint64_t)((unsigned __int128)(tsc_of_all() - begin) * ns_per_count >> 32);
}

const struct clock_sources *clock_sources(void) { return &known; }

/* --- Choosing. --- */

static bool believable(uint64_t hz) { return hz >= BELIEVED_MIN && hz <= BELIEVED_MAX; }

static bool rates_agree(uint64_t a, uint64_t b)
{
    uint64_t difference = a > b ? a - b : b - a;
    return difference < a / TOLERANCE;
}

static uint64_t all_that_agree(const struct clock_reading *r, unsigned count, uint64_t hz)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < count; i++)
        mask |= (uint64_t)(r[i].hz && rates_agree(hz, r[i].hz)) << i;
    return mask;
}

/* The reading of this kind with which most others agree. */
static const struct clock_reading *most_agreed(const struct clock_reading *r, unsigned count,
                                               bool measured, bool rounded)
{
    const struct clock_reading *best = NULL;
    unsigned most = 0;
    for (unsigned i = 0; i < count; i++) {
        if (r[i].measured != measured || r[i].rounded != rounded || !believable(r[i].hz))
            continue;
        unsigned n = bit_count(all_that_agree(r, count, r[i].hz));
        if (n > most) {
            most = n;
            best = &r[i];
        }
    }
    return best;
}

static const struct clock_reading *reported_exactly(const struct clock_reading *r, unsigned count,
                                                    uint64_t hz)
{
    for (unsigned i = 0; i < count; i++)
        if (!r[i].measured && !r[i].rounded && r[i].hz && rates_agree(hz, r[i].hz))
            return &r[i];
    return NULL;
}

struct clock_choice clock_choose(const struct clock_reading *r, unsigned count)
{
    const struct clock_reading *taken = most_agreed(r, count, true, false);
    const struct clock_reading *reported = taken ? reported_exactly(r, count, taken->hz) : NULL;
    if (reported)
        taken = reported;
    if (!taken)
        taken = most_agreed(r, count, false, false);
    if (!taken)
        taken = most_agreed(r, count, false, true);
    return (struct clock_choice){ taken, taken ? all_that_agree(r, count, taken->hz) : 0 };
}

/* --- What CPUID says. --- */

uint64_t clock_tsc_by_15h(const struct cpuid *leaf)
{
    return leaf->eax && leaf->ebx ? (uint64_t)leaf->ecx * leaf->ebx / leaf->eax : 0;
}

/* --- The line. --- */

static void print_mhz(uint64_t hz) { print("%lu.%03lu MHz", hz / MHZ, hz % MHZ / 1000); }

/* Appends the names of the readings in `which` and their rates, each after `before`. */
static void print_names(const struct clock_reading *r, uint64_t which, const char *before,
                        bool rates)
{
    for_each_bit(i, which) {
        print("%s%s", before, r[i].source);
        before = ", ";
        if (rates) {
            print(" ");
            print_mhz(r[i].hz);
        }
    }
}

static void print_choice(const char *what, const struct clock_reading *r, unsigned count,
                         const struct clock_choice *choice)
{
    uint64_t taken = 1ul << (choice->taken - r), disagree = 0, silent = 0;
    for (unsigned i = 0; i < count; i++) {
        disagree |= (uint64_t)(r[i].hz && !(choice->agree >> i & 1)) << i;
        silent |= (uint64_t)(!r[i].hz && r[i].measured) << i;
    }
    print("%s ", what);
    print_mhz(choice->taken->hz);
    print(" by %s", choice->taken->source);
    print_names(r, choice->agree & ~taken, ", as by ", false);
    print_names(r, disagree, "; not as by ", true);
    print_names(r, silent, "; no answer: ", false);
}

/* --- Finding the rates. --- */

static uint64_t find_tsc(const struct clock_sources *sources, const struct cpuid *timing,
                         const struct cpuid *leaf_15h)
{
    struct clock_counter counters[CLOCK_COUNTERS];
    struct clock_reading r[READINGS] = {
        [SAID_BY_LEAF] = { "CPUID 4000_0010h", (uint64_t)timing->eax * 1000, false, false },
        [SAID_BY_15H] = { "CPUID 15h", clock_tsc_by_15h(leaf_15h), false, false },
        [SAID_BY_16H] = { "CPUID 16h", (cpuid_leaf(0x16).eax & 0xffff) * MHZ, false, true },
    };
    clock_counters(sources, counters);
    for (unsigned i = 0; i < CLOCK_COUNTERS; i++)
        r[MEASURED + i] = (struct clock_reading){ counters[i].name, clock_measure_tsc(&counters[i]),
                                                  true, false };
    struct clock_choice choice = clock_choose(r, READINGS);
    if (!choice.taken) {
        print("# clock: nothing here reports the TSC's rate: 1000 MHz is a guess, and so is every "
              "time below; ");
        return LAST_RESORT;
    }
    print("# clock: ");
    print_choice("TSC", r, READINGS, &choice);
    if (!choice.taken->measured && bit_count(choice.agree) == 1)
        print(" (nothing confirms it)");
    print("; ");
    return choice.taken->hz;
}

/* The TSC measures the timer's rate. The rate that CPUID reports is taken if it agrees, or if the
 * timer stands still. */
static uint64_t find_timer(const struct cpuid *timing, const struct cpuid *leaf_15h)
{
    const struct clock_reading r[] = {
        { "CPUID 4000_0010h", (uint64_t)timing->ebx * 1000, false, false },
        { "CPUID 15h", leaf_15h->eax && leaf_15h->ebx ? leaf_15h->ecx : 0, false, false },
        { "the TSC", clock_measure_timer(clock_tsc_hz), true, false },
    };
    struct clock_choice choice = clock_choose(r, ARRAY_SIZE(r));
    if (!choice.taken || !r[2].hz) {
        print("the APIC timer stands still: its rate is a guess\n");
        return choice.taken              ? choice.taken->hz
               : cpu_features.hypervisor ? LAST_RESORT
                                         : LAST_RESORT_TIMER;
    }
    print_choice("APIC timer", r, ARRAY_SIZE(r), &choice);
    print("\n");
    return choice.taken->hz;
}

void clock_init(const struct clock_sources *sources, uint64_t starts_ns)
{
    known = *sources;
    begin_ns = starts_ns;
    uint32_t last = cpu_features.hypervisor ? cpuid(LEAF_HYPERVISOR, 0).eax : 0;
    bool has_timing = last >= LEAF_TIMING && last <= LEAF_HYPERVISOR + 0xffff;
    const struct cpuid timing = has_timing ? cpuid(LEAF_TIMING, 0) : (struct cpuid){ 0 },
                       leaf_15h = cpuid_leaf(0x15);
    clock_tsc_hz = find_tsc(sources, &timing, &leaf_15h);
    apic_timer_hz = find_timer(&timing, &leaf_15h);
    ns_per_count = (1000 * MHZ << 32) / clock_tsc_hz;
    begin = rdtsc();
}
