/* SPDX-License-Identifier: MIT */
/* Measuring snippets: a trial of each half, then rounds of runs, as many events at a time as there
 * are counters. */
#include "tests/cost/bench.h"
#include "hal/machine/identity.h"
#include "kernel/base/exit.h"
#include "kernel/image/image.h"
#include "tests/harness/kernel.h"

#define OUR_PMU "our virtual PMU"
#define TRIAL_MS 100u /* and a microsecond for each copy */

static int64_t samples[PMU_FIXED + PMU_FIXED_MAX][BENCH_RUNS_MAX];

static const char *exception_name(uint64_t vector)
{
    static const char *const exceptions[] = { "#DE", "#DB", "NMI", "#BP", "#OF", "#BR", "#UD",
                                              "#NM", "#DF", "9",   "#TS", "#NP", "#SS", "#GP",
                                              "#PF", "15",  "#MF", "#AC", "#MC", "#XM" };
    return vector < ARRAY_SIZE(exceptions) ? exceptions[vector] : "exception";
}

static void tell_end(const struct bench *b, unsigned half, const struct bench_end *end)
{
    char place[80];
    bench_place(b, half, end->rip - (end->vector == 3), place,
                sizeof place); /* INT3 is a trap of one byte */
    if (end->vector == BENCH_HANG)
        print("# not measured: it does not end, time was over at %s\n", place);
    else if (end->vector == 3 && end->rip == BENCH_CODE + b->h.half[half].stop)
        print("# not measured: it leaves RSP 0x%lx, outside of its stack\n", end->rsp);
    else if (end->vector == 14)
        print("# not measured: vector 14 (#PF), error code 0x%lx, address 0x%lx, at %s\n",
              end->error, end->address, place);
    else
        print("# not measured: vector %lu (%s), error code 0x%lx, at %s\n", end->vector,
              exception_name(end->vector), end->error, place);
}

static uint64_t copies(const struct bench *b)
{
    return (uint64_t)b->h.half[0].copies * (b->h.iterations ? b->h.iterations : 1);
}

static bool try_out(const struct bench *b)
{
    struct bench_end end;
    uint64_t limit = clock_tsc_hz / 1000 * TRIAL_MS + clock_tsc_hz / 1000000 * copies(b);
    for (unsigned half = 0; half < 2; half++)
        if (!bench_execute(b, half, 0, true, limit, &end)) {
            tell_end(b, half, &end);
            return false;
        }
    return true;
}

/* One run of a half; what each counter shows. */
static bool count_half(const struct bench *b, unsigned half, const struct bench_event *events,
                       const unsigned *counters, unsigned n, uint64_t *values)
{
    struct bench_end end;
    uint64_t all = 0;
    for (unsigned i = 0; i < n; i++) {
        pmu_program(counters[i], events[i].select, 0);
        all |= PMU_BIT(counters[i]);
    }
    bool fine = bench_execute(b, half, all, false, 0, &end);
    if (!fine) {
        tell_end(b, half, &end);
        pmu_reset();
    }
    for (unsigned i = 0; i < n; i++)
        values[i] = pmu_read(counters[i]);
    return fine;
}

/* All runs of some events; the differences of the halves go to samples. */
static bool round_of(const struct bench *b, const struct bench_event *events,
                     const unsigned *counters, unsigned n)
{
    uint64_t halves[2][PMU_FIXED + PMU_FIXED_MAX];
    for (unsigned run = 0; run < b->h.warmup + b->h.runs; run++) {
        for (unsigned half = 0; half < 2; half++)
            if (!count_half(b, half, events, counters, n, halves[half]))
                return false;
        for (unsigned i = 0; run >= b->h.warmup && i < n; i++) {
            unsigned unused = 64 - bit_count(pmu_mask(pmu_here(), counters[i]));
            samples[i][run - b->h.warmup] =
                (int64_t)((halves[1][i] - halves[0][i]) << unused) >> unused;
        }
    }
    return true;
}

/* Of one copy, rounded to three digits after the point. */
static void print_cell(int64_t value, uint64_t divisor)
{
    char text[32];
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value, rest = size % divisor;
    uint64_t whole = size / divisor, thousandths = (rest * 1000 + divisor / 2) / divisor;
    whole += thousandths / 1000;
    thousandths %= 1000;
    print_to(text, sizeof text, "%s%lu.%03lu", value < 0 && (whole || thousandths) ? "-" : "",
             whole, thousandths);
    print(" %12s", text);
}

static void print_event(const struct bench *b, const struct bench_event *event, unsigned ctr,
                        int64_t *values)
{
    unsigned n = b->h.runs;
    uint64_t parts = copies(b) * b->h.parts;
    cost_sort(values, n);
    print("%-32s", event->name);
    print_cell(values[0], parts);
    print_cell(values[n / 2], parts);
    print_cell(values[n - 1], parts);
    print_cell(values[n - 1] - values[0], parts);
    print("  %s %u\n", ctr < PMU_FIXED ? "counter" : "fixed", ctr % PMU_FIXED);
}

static void print_head(const struct bench *b)
{
    const struct bench_header *h = &b->h;
    print("# ring %u, %s%u copies and %u", h->ring, h->ring ? "" : "interrupts off, ",
          h->half[0].copies, h->half[1].copies);
    if (h->iterations)
        print(" in a loop of %u iterations", h->iterations);
    print("; %u runs after %u; figures are of one %s\n", h->runs, h->warmup,
          h->parts > 1 ? "instruction" : "copy");
    print("%-32s %12s %12s %12s %12s\n", "event", "min", "median", "max", "spread");
}

/* This CPU's PMU is ours. */
static bool measure_events(const struct bench *b, const struct bench_event *events,
                           unsigned count_of_all)
{
    unsigned counters[BENCH_EVENTS_MAX], n;
    bool fine = true;
    print_head(b);
    for (unsigned at = 0; fine && at < count_of_all; at += n) {
        n = bench_assign(events + at, count_of_all - at, counters);
        cli();
        fine = round_of(b, events + at, counters, n);
        sti();
        for (unsigned i = 0; fine && i < n; i++)
            print_event(b, &events[at + i], counters[i], samples[i]);
    }
    pmu_reset();
    return fine;
}

static bool measure_module(struct bench *b)
{
    static struct bench_event events[BENCH_EVENTS_MAX];
    char text[160];
    unsigned n;
    const char *wrong =
        bench_read_events(b, b->h.ring ? PMU_USER : PMU_KERNEL, events, &n, text, sizeof text);
    if (wrong)
        print("# not measured: %s\n", wrong);
    return !wrong && try_out(b) && measure_events(b, events, n);
}

static bool run_module(const struct image *image)
{
    static struct bench b;
    const char *wrong = bench_is(image) ? bench_open(&b, image) : "is no snippet";
    if (wrong) {
        print("# %s %s\n", image->name, wrong);
        return false;
    }
    print("# snippet: %s\n", b.title);
    bool fine = measure_module(&b);
    bench_close(&b);
    return fine;
}

static void tell_model(void)
{
    char name[sizeof OUR_PMU];
    hypervisor_name(name, sizeof name);
    if (strcmp(name, OUR_PMU) == 0)
        print("# virtual PMU: instructions and branches are exact; cycles, caches and "
              "mispredictions are a model\n");
}

unsigned bench_run(void)
{
    struct image *image;
    unsigned all = 0, failed = 0;
    HANDLE handle;
    test_run_on(0);
    if (!pmu_here()->counters) {
        print("# NONE no PMU, nothing can be measured: %s\n", verdict_of_kinds());
        return EXIT_NOTHING;
    }
    if (!NT_SUCCESS(HalAllocateHardwareCounters(NULL, 0, NULL, &handle))) {
        print("# FAIL somebody else has the counters\n");
        return EXIT_FAIL;
    }
    tell_model();
    for (; (image = image_module(all)); all++)
        failed += !run_module(image);
    HalFreeHardwareCounters(handle);
    if (failed)
        print("# FAIL %u of %u snippets could not be measured\n", failed, all);
    else
        print("# PASS %u snippet%s measured\n", all, all > 1 ? "s" : "");
    return failed ? EXIT_FAIL : EXIT_PASS;
}
