/* SPDX-License-Identifier: MIT */
/* Which kinds of CPUs this machine has, and properties of sets of CPUs. No lock: CPUs start one
 * after the other, and each gets its kind here before its PMU is used.
 *
 * Sources: Intel SDM vol. 2 "CPUID", leaves 0Ah and 1Ah; AMD APM vol. 3 "CPUID". */
#include "kernel/base/bits.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/branches.h"
#include "pmu/selftest.h"

static bool (*const probes[])(struct pmu_kind *) = { intel_probe, amd_probe };
static struct pmu_kind kinds[PMU_KINDS_MAX];
static struct pmu_branches branches[PMU_KINDS_MAX];
static struct pmu_cpu states[MAX_CPUS]; /* each its CPU's own */
const struct pmu_kind *const pmu_kinds = kinds;
unsigned pmu_kind_count;

/* --- Detection. --- */

static void detect_kind(struct pmu_kind *kind)
{
    memset(kind, 0, sizeof *kind);
    pmu_set_signature(kind, cpuid(1, 0).eax);
    for (unsigned i = 0; i < ARRAY_SIZE(probes) && !kind->driver; i++)
        probes[i](kind);
}

static uint64_t find_left_running(const struct pmu_kind *kind)
{
    uint64_t found = 0;
    for_each_bit(ctr, kind->reported) {
        uint64_t value = 0;
        if (rdmsr_fault(pmu_select_msr(kind, ctr), &value))
            continue;
        if (ctr < PMU_FIXED ? value & PMU_ENABLE : value >> 4 * (ctr - PMU_FIXED) & 3)
            found |= PMU_BIT(ctr);
    }
    return found;
}

/* What else may interrupt or slow this CPU: precise records and the processor trace, as bits of the
 * global status that are theirs. From now on they are off. */
static uint64_t stop_recording(void)
{
    static const struct {
        uint32_t msr;
        unsigned bit;
    } places[] = { { 0x3f1, 62 },
                   { 0x600, 62 },
                   { 0x570, 55 } }; /* PEBS_ENABLE, DS_AREA, RTIT_CTL */
    uint64_t value = 0, found = 0;
    for_each_in(at, places)
        if (!rdmsr_fault(at->msr, &value) && value && !wrmsr_fault(at->msr, 0))
            found |= PMU_BIT(at->bit);
    return found;
}

struct pmu_kind *pmu_place_kind(struct pmu_kind *list, unsigned *count, const struct pmu_kind *mine,
                                const struct pmu_access *access)
{
    struct pmu_kind *kind = list, *last = list + PMU_KINDS_MAX - 1;
    for (; kind < list + *count; kind++)
        if (memcmp(kind, mine, offsetof(struct pmu_kind, counters)) == 0 &&
            pmu_answers(kind, access, kind->counters))
            return kind;
    if (kind >= last) {
        *count = PMU_KINDS_MAX;
        *last = (struct pmu_kind){ .verdict = PMU_TOO_MANY_KINDS };
        return last;
    }
    struct pmu_finding found = pmu_diagnose(mine, access);
    ++*count;
    *kind = *mine;
    kind->counters = kind->reported & ~found.bad;
    kind->exact = found.exact;
    kind->offset = found.offset;
    kind->late = found.late;
    kind->verdict = found.verdict;
    return kind;
}

static void set_kind(struct pmu_cpu *cpu, const struct pmu_kind *kind)
{
    cpu->kind = kind;
    cpu->global_control = kind->msr.global_control;
    cpu->global_status = kind->msr.global_status;
    cpu->global_clear = kind->msr.global_clear;
    cpu->plain_control = cpu->lent ? 0 : cpu->global_control;
    cpu->counters = kind->counters;
    cpu->clears = kind->clears;
    cpu->takes = kind->counters | (kind->clears & PMU_BIT(PMU_BUFFER));
    for (unsigned bank = 0; bank < ARRAY_SIZE(cpu->banks); bank++) {
        unsigned first = bank * PMU_FIXED;
        uint32_t stride = bank ? kind->msr.fixed_stride : kind->msr.stride;
        cpu->banks[bank] = (struct pmu_bank){ .mask = pmu_mask(kind, first),
                                              .rdpmc = pmu_rdpmc_index(first) - first,
                                              .write = pmu_write_msr(kind, first) - first * stride,
                                              .stride = stride };
    }
}

void pmu_init_cpu(void)
{
    static struct pmu_kind mine; /* of the CPU that starts */
    struct pmu_cpu *cpu = &states[cpu_number()];
    cpu_current()->pmu = cpu;
    detect_kind(&mine);
    set_kind(cpu, &mine);
    uint64_t left_running = find_left_running(&mine) | stop_recording();
    bool list_left_on = pmu_branches_left_on();
    pmu_reset();
    unsigned known = pmu_kind_count;
    struct pmu_kind *kind = pmu_place_kind(kinds, &pmu_kind_count, &mine, &pmu_hardware);
    kind->left_running |= left_running;
    set_kind(cpu, kind);
    pmu_reset();
    if (pmu_kind_count > known && kind->counters)
        pmu_measure(kind);
    pmu_reset();
    struct pmu_branches *list = &branches[pmu_kind_number(kind)];
    list_left_on |= list->left_on;
    pmu_branches_probe(list);
    list->left_on = list_left_on;
}

struct pmu_measured *pmu_unmeasured(void)
{
    struct pmu_measured *measured = &kinds[pmu_kind_number(pmu_here())].measured;
    return measured->done ? NULL : measured;
}

const struct pmu_branches *pmu_branches_of(const struct pmu_kind *kind)
{
    return &branches[pmu_kind_number(kind)];
}

/* --- Several CPUs. --- */

uint32_t pmu_kinds_of(struct cpu_set among)
{
    uint32_t found = 0;
    struct cpu_set running = cpu_set_and(among, cpu_all());
    for_each_cpu(cpu, &running)
        found |= 1u << pmu_kind_number(pmu_of(cpu));
    return found;
}

#define FOR_EACH_KIND(kind, among)                                                                 \
    for (const struct pmu_kind *kind = kinds; kind < kinds + pmu_kind_count; kind++)               \
        if (pmu_kinds_of(among) >> pmu_kind_number(kind) & 1)

static uint64_t all_if_any(struct cpu_set among) { return pmu_kinds_of(among) ? ~0ul : 0; }

uint64_t pmu_common_counters(struct cpu_set among)
{
    uint64_t common = all_if_any(among);
    FOR_EACH_KIND(kind, among)
        common &= kind->counters;
    return common;
}

uint64_t pmu_some_counters(struct cpu_set among)
{
    uint64_t some = 0;
    FOR_EACH_KIND(kind, among)
        some |= kind->counters;
    return some;
}

uint64_t pmu_common_mask(struct cpu_set among, unsigned ctr)
{
    uint64_t common = all_if_any(among);
    FOR_EACH_KIND(kind, among)
        common &= pmu_mask(kind, ctr);
    return common;
}

/* --- Printing. --- */

static bool is_of(unsigned cpu, const struct pmu_kind *kind)
{
    return cpu < cpu_count && pmu_of(cpu) == kind;
}

/* "0,2,4-7" */
static void print_cpus(const struct pmu_kind *kind)
{
    const char *separator = "";
    for (unsigned first = 0, last; first < cpu_count; first = last + 1) {
        last = first;
        if (!is_of(first, kind))
            continue;
        while (is_of(last + 1, kind))
            last++;
        print(last > first ? "%s%u-%u" : "%s%u", separator, first, last);
        separator = ",";
    }
}

/* Whether two of the CPUs are threads of one core. */
static bool has_threads(const struct pmu_kind *kind)
{
    unsigned thread_bits = cpuid(0xb, 0).eax & 0x1f;
    for (unsigned a = 0; a < cpu_count; a++)
        for (unsigned b = 0; is_of(a, kind) && b < a; b++)
            if (cpus[a]->apic_id >> thread_bits == cpus[b]->apic_id >> thread_bits)
                return true;
    return false;
}

static void describe_kind(const struct pmu_kind *kind)
{
    print("%s version %u, %u counters of %u bits", kind->driver, kind->version, kind->gp_reported,
          kind->gp_width);
    if (kind->reported >> PMU_FIXED)
        print(", %u fixed of %u", bit_count(kind->reported >> PMU_FIXED), kind->fixed_width);
    print("%s%s", kind->msr.global_control ? ", global control" : "",
          kind->gp_write_width < kind->gp_width ? ", 32-bit writes" : "");
    if (pmu_branches_of(kind)->depth)
        print(", %u branch records", pmu_branches_of(kind)->depth);
    if (pmu_branches_of(kind)->left_on)
        print(", firmware had left a list of branches on");
    if (kind->left_running & PMU_BIT(62))
        print(", firmware had left precise records on");
    if (kind->left_running & ~PMU_BIT(62))
        print(", firmware had left %lx enabled", kind->left_running);
    if (kind->known)
        print("; %s", kind->table->name);
    else
        print("; model unknown (family %x, model %x): %s events", kind->family, kind->model,
              kind->table->name);
}

/* Errata BJ122, BV98 and HSD29 of Sandy Bridge to Haswell. Source: Linux, PMU_FL_EXCL_CNTRS. */
static bool threads_collide(const struct pmu_kind *kind)
{
    static const uint8_t models[] = { 0x2a, 0x2d, 0x3a, 0x3c, 0x3e, 0x3f, 0x45, 0x46 };
    if (!kind->driver || *kind->driver != 'i' || kind->family != 6)
        return false;
    for_each_in(model, models)
        if (kind->model == *model)
            return has_threads(kind);
    return false;
}

/* Errata 990, 1291 and 1292; an EPYC 7352 was seen to count instructions sixteenfold at times. */
static bool may_overcount(const struct pmu_kind *kind)
{
    bool amd = kind->driver && *kind->driver == 'a';
    return amd && (kind->family == 0x17 || kind->family == 0x18 ||
                   (kind->family == 0x19 && kind->model < 0x10));
}

void pmu_report_errata(const struct pmu_kind *kind)
{
    if (may_overcount(kind))
        print("# pmu: retired instructions and branches may overcount at times (errata 990, 1291, "
              "1292)\n");
    if (threads_collide(kind))
        print("# pmu: events D0h to D3h, loads and stores among them, disturb the counter of the "
              "same number of the core's other thread (BJ122, BV98, HSD29): count them on one "
              "thread of a core\n");
}

static void report_kind(const struct pmu_kind *kind)
{
    uint64_t bad = kind->reported & ~kind->counters;
    if (kind->verdict == PMU_OK) {
        describe_kind(kind);
        print(": %s", pmu_verdict_text(PMU_OK));
        if (kind->exact && !kind->offset)
            print(", instructions exactly");
        else if (kind->exact)
            print(", every count of instructions %d too %s",
                  kind->offset < 0 ? -kind->offset : kind->offset,
                  kind->offset < 0 ? "low" : "high");
        print("\n");
        return;
    }
    print("%s", pmu_verdict_text(kind->verdict));
    if (kind->verdict == PMU_OVERFLOW_LATE)
        print(": after %u reads of it", kind->late);
    if (bad && kind->counters)
        print("; left out: counters %lx of %lx", bad, kind->reported);
    if (kind->driver) {
        print(" (");
        describe_kind(kind);
        print(")");
    }
    print("\n");
}

void pmu_report(void)
{
    for (const struct pmu_kind *kind = kinds; kind < kinds + pmu_kind_count; kind++) {
        print("# pmu: ");
        if (pmu_kind_count > 1) {
            print("CPUs ");
            print_cpus(kind);
            print(": ");
        }
        report_kind(kind);
        pmu_report_errata(kind);
        pmu_report_measured(kind);
    }
}

void pmu_complain(const struct pmu_kind *pmu, enum pmu_verdict verdict, uint64_t counters)
{
    struct pmu_kind *kind = &kinds[pmu_kind_number(pmu)];
    if (kind->verdict == PMU_OK)
        kind->verdict = verdict;
    print("# pmu: %s (counters %lx of %lx)\n", pmu_verdict_text(verdict), counters, kind->reported);
}
