/* SPDX-License-Identifier: MIT */
/* How costs are measured and printed. */
#include "tests/harness/cost.h"
#include "tests/harness/kernel.h"

static uint32_t instructions_index, cycles_index;
static bool has_cycles;
static HANDLE cycles_owner;

/* Every CPU. */
static void start_cycles(void *argument)
{
    unsigned ctr = *(unsigned *)argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_program(ctr, pmu_select(pmu_here(), PMU_CYCLES, PMU_USER | PMU_KERNEL), 0);
    pmu_start(PMU_BIT(ctr));
    irql_lower(old);
}

void cost_begin(unsigned ctr)
{
    uint64_t free = hal_counters_available(SMP_ALL) & common_counters_for(SMP_ALL, PMU_CYCLES);
    instructions_index = pmu_rdpmc_index(ctr);
    has_cycles = (free & (free - 1)) != 0; /* one stays free, to be allocated */
    if (!has_cycles)
        return;
    unsigned last = 63 - (unsigned)__builtin_clzll(free); /* a fixed one, if there are */
    cycles_index = pmu_rdpmc_index(last);
    has_cycles = CHECK_OK(take_one(BY_NULL, last, &cycles_owner));
    if (has_cycles)
        smp_call(SMP_ALL, start_cycles, &last);
}

uint64_t cost_cycles(void) { return has_cycles ? 1ul << 32 | cycles_index : 0; }

void cost_end(void)
{
    if (has_cycles)
        CHECK_OK(HalFreeHardwareCounters(cycles_owner));
    has_cycles = false;
}

struct figures {
    uint64_t instructions, cycles;
    struct vpmu_accesses accesses;
};

static struct figures measure_call(void (*function)(void *), void *argument)
{
    void (*volatile call)(void *) = function;
    struct vpmu_accesses before = vpmu_accesses();
    uint64_t cycles = has_cycles ? rdpmc_exact(cycles_index) : 0;
    uint64_t start = rdpmc_exact(instructions_index);
    call(argument);
    uint64_t end = rdpmc_exact(instructions_index);
    cycles = has_cycles ? rdpmc_exact(cycles_index) - cycles : 0;
    return (struct figures){ end - start, cycles, vpmu_accesses_since(before) };
}

static void nothing_at_all(void *unused) { (void)unused; }

static uint64_t lesser(bool first, uint64_t a, uint64_t b) { return first || b < a ? b : a; }

void cost_run(struct cost *cost, void (*operation)(void *), void (*nothing)(void *), void *argument)
{
    struct figures without = measure_call(nothing ? nothing : nothing_at_all, argument);
    struct figures with = measure_call(operation, argument);
    bool first = cost->runs == 0;
    if (cost->runs == COST_RUNS)
        return;
    cost->instructions[cost->runs] = with.instructions;
    cost->cycles[cost->runs++] = with.cycles;
    cost->nothing = lesser(first, cost->nothing, without.instructions);
    cost->nothing_cycles = lesser(first, cost->nothing_cycles, without.cycles);
    struct vpmu_accesses *a = &cost->accesses;
    a->rdpmc = (uint32_t)lesser(first, a->rdpmc, with.accesses.rdpmc - without.accesses.rdpmc);
    a->rdmsr = (uint32_t)lesser(first, a->rdmsr, with.accesses.rdmsr - without.accesses.rdmsr);
    a->wrmsr = (uint32_t)lesser(first, a->wrmsr, with.accesses.wrmsr - without.accesses.wrmsr);
}

void cost_sort(int64_t *values, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        for (unsigned at = i; at && values[at - 1] > values[at]; at--) {
            int64_t value = values[at];
            values[at] = values[at - 1];
            values[at - 1] = value;
        }
}

uint64_t cost_least(const struct cost *cost)
{
    uint64_t found = cost->instructions[0];
    for (unsigned i = 1; i < cost->runs; i++)
        found = lesser(false, found, cost->instructions[i]);
    return found - cost->nothing;
}

static void describe_cost(char *line, size_t size, uint64_t instructions,
                          const struct vpmu_accesses *a)
{
    size_t n = print_to(line, size, "%lu instructions", instructions);
    if (vpmu_present())
        print_to(line + n, size - n, ", %u RDPMC, %u RDMSR, %u WRMSR", a->rdpmc, a->rdmsr,
                 a->wrmsr);
}

void cost_print(const struct cost *cost, bool always, const char *format, ...)
{
    char name[80], line[100];
    int64_t cycles[COST_RUNS];
    va_list args;
    if (!cost->runs || !(always || boot_flag("verbose")))
        return;
    va_start(args, format);
    print_to_va(name, sizeof name, format, args);
    va_end(args);
    describe_cost(line, sizeof line, cost_least(cost), &cost->accesses);
    for (unsigned i = 0; i < cost->runs; i++) {
        int64_t more = (int64_t)(cost->cycles[i] - cost->nothing_cycles);
        cycles[i] = more > 0 ? more : 0;
    }
    cost_sort(cycles, cost->runs);
    if (has_cycles && boot_flag("verbose"))
        test_note("cost: %s: %s; cycles %ld, %ld, %ld", name, line, cycles[0],
                  cycles[cost->runs / 2], cycles[cost->runs - 1]);
    else
        test_note("cost: %s: %s", name, line);
}

void cost_tell(uint64_t instructions, struct vpmu_accesses accesses, const char *format, ...)
{
    char name[80], line[100];
    va_list args;
    va_start(args, format);
    print_to_va(name, sizeof name, format, args);
    va_end(args);
    describe_cost(line, sizeof line, instructions, &accesses);
    test_note("cost: %s: %s", name, line);
}
