/* SPDX-License-Identifier: MIT */
/* Time: the rates of the TSC and of the APIC timer, and the kernel's one clock, which is the
 * TSC. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The clocks that the firmware's tables report; a field that is 0: there is none. */
struct clock_sources {
    uint64_t hpet;     /* physical address of its registers, mapped in the direct map */
    uint16_t pm_timer; /* I/O port of the ACPI power management timer */
    bool pm_timer_32;  /* that timer has 32 bits, not 24 */
};

/* Boot CPU, APIC on, interrupts off, exception handlers in place: determines both rates. Prints in
 * one line which source was taken and which sources disagreed or did not answer. The clock starts
 * at starts_ns here. */
void clock_init(const struct clock_sources *sources, uint64_t starts_ns);
/* The argument of clock_init, for tests. */
const struct clock_sources *clock_sources(void);
/* Nanoseconds since clock_init, and starts_ns. Any CPU, any IRQL. */
uint64_t clock_ns(void);
/* Counts per second; never 0 once clock_init has returned. */
extern uint64_t clock_tsc_hz;

/* --- The parts of clock_init, separate, so that tests can supply readings. --- */

/* The TSC's rate by one source. */
struct clock_reading {
    const char *source; /* its name */
    uint64_t hz;        /* 0: it does not answer */
    bool measured;      /* by a counter of known rate; else CPUID reports it */
    bool rounded;       /* reported, but rounded: taken only if nothing else is known */
};

struct clock_choice {
    const struct clock_reading *taken; /* NULL: no reading is plausible */
    uint64_t agree;                    /* bit n: readings[n] is within 1 % of what was taken */
};

/* Chooses a reading: the measured one with which most others agree, the first of equals. A rate
 * that is reported exactly and agrees with it is preferred, because it has no error of
 * measurement. Where nothing could be measured, a reported rate is taken, exact before rounded.
 * Rates outside 1 MHz to 20 GHz are never taken. */
struct clock_choice clock_choose(const struct clock_reading *readings, unsigned count);
/* The TSC's rate by CPUID leaf 15h; 0 if the leaf does not give it. */
struct cpuid;
uint64_t clock_tsc_by_15h(const struct cpuid *leaf);

/* --- clock_sources.c --- */

/* A counter of known rate that runs without the CPU. */
struct clock_counter {
    const char *name;
    uint64_t hz;   /* 0: it is not there */
    uint64_t mask; /* of the bits that count */
    uint64_t (*read)(void);
};
enum { CLOCK_HPET, CLOCK_PM_TIMER, CLOCK_PIT, CLOCK_COUNTERS };

/* Starts the counters that do not run yet; fills all CLOCK_COUNTERS entries. */
void clock_counters(const struct clock_sources *sources,
                    struct clock_counter counters[CLOCK_COUNTERS]);
/* The TSC's rate by that counter, in counts per second; 0 if the counter stands still. Takes 8 ms
 * if it counts, a third of a millisecond if not. Interrupts off. */
uint64_t clock_measure_tsc(const struct clock_counter *counter);
/* The rate of the APIC timer, which must be counting down, by a TSC of this rate; 0: it stands
 * still. */
uint64_t clock_measure_timer(uint64_t tsc_hz);
/* Seconds of the real-time clock's minute; constant where there is none. What its register of
 * seconds means. */
unsigned clock_wall_second(void);
unsigned clock_rtc_seconds(unsigned value, bool binary);
