/* SPDX-License-Identifier: MIT */
/* See pebs.h. What a CPU writes follows from CPUID, IA32_MISC_ENABLE and PERF_CAPABILITIES, and
 * from registers that keep a value: a hypervisor may report what it does not give. PEBS_ENABLE
 * itself is never tried, for a counter might overflow without a DS area. */
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "pmu/branches.h"
#include "pmu/pebs/pebs.h"

#define MSR_MISC_ENABLE 0x1a0
#define MISC_PEBS_UNAVAILABLE (1u << 12)
#define MSR_PERF_CAPABILITIES 0x345
#define MSR_PEBS_ENABLE 0x3f1
#define MSR_PEBS_DATA_CFG 0x3f2
#define MSR_DS_AREA 0x600
#define ECX_PDCM (1u << 15)
#define EDX_DS (1u << 21)
#define BASELINE (1u << 14) /* every counter and event, and adaptive records */
#define TRAP_LIKE (1u << 6)
#define STATUS_BUFFER PMU_BIT(62)
#define ALL_GROUPS (PEBS_MEMORY | PEBS_GPR | PEBS_XMM | PEBS_LBR)
#define ADAPTIVE 4u /* the first such format */
#define COUNTED 6u  /* the first one with counters */

enum {
    BASIC = 32,
    MEMORY = 32,
    GPR = 144,
    XMM = 256,
    BRANCH = 24,
    COUNTERS = 16,
    GPR_WORDS = GPR / 8
};

static struct pebs_facts facts[PMU_KINDS_MAX];
static uint8_t probed[PMU_KINDS_MAX]; /* atomic: 0 not yet, 1 there are none, 2 there are */

/* --- What there is. --- */

static bool keeps_value(uint32_t msr, uint64_t written)
{
    uint64_t before = 0, value = 0;
    bool kept = !rdmsr_fault(msr, &before) && !wrmsr_fault(msr, written) &&
                !rdmsr_fault(msr, &value) && value == written;
    return kept && !wrmsr_fault(msr, before);
}

/* PERF_CAPABILITIES of a CPU that writes records; 0: it does not. */
static uint64_t find_capabilities(void)
{
    uint64_t misc = 0, capabilities = 0, enable;
    struct cpuid features = cpuid(1, 0);
    if (!(features.edx & EDX_DS) || !(features.ecx & ECX_PDCM) ||
        rdmsr_fault(MSR_MISC_ENABLE, &misc) || misc & MISC_PEBS_UNAVAILABLE ||
        rdmsr_fault(MSR_PERF_CAPABILITIES, &capabilities) || rdmsr_fault(MSR_PEBS_ENABLE, &enable))
        return 0;
    return keeps_value(MSR_DS_AREA, 0x1000) ? capabilities : 0;
}

static bool probe(struct pebs_facts *f)
{
    static const uint16_t sizes[ADAPTIVE] = { 144, 176, 192, 200 };
    uint64_t capabilities = find_capabilities(), counters = pmu_here()->reported;
    unsigned format = capabilities >> 8 & 0xf;
    bool adaptive = format >= ADAPTIVE;
    if (!(capabilities & TRAP_LIKE) || !pmu_here()->msr.global_status || format > 6)
        return false;
    if (adaptive && !(capabilities & BASELINE && keeps_value(MSR_PEBS_DATA_CFG, ALL_GROUPS)))
        return false;
    f->format = (uint8_t)format;
    f->smallest = format < ADAPTIVE ? sizes[format] : BASIC;
    f->groups = adaptive ? ALL_GROUPS : 0;
    if (format >= COUNTED && keeps_value(MSR_PEBS_DATA_CFG, ALL_GROUPS | PEBS_COUNTERS))
        f->groups |= PEBS_COUNTERS;
    f->first_fixed = format > ADAPTIVE ? 32 : 8;
    f->lbr_depth = (uint8_t)pmu_branches_of(pmu_here())->depth;
    f->counters = counters & (!adaptive            ? PMU_FIRST(4)
                              : format == ADAPTIVE ? PMU_FIRST(8) | ~PMU_ANY_GP
                                                   : ~0ul);
    return true;
}

const struct pebs_facts *pebs_facts_of(const struct pmu_kind *kind)
{
    unsigned n = pmu_kind_number(kind);
    return __atomic_load_n(&probed[n], __ATOMIC_ACQUIRE) == 2 ? &facts[n] : NULL;
}

bool pebs_is_here(void) { return pebs_facts() && find_capabilities(); }

const struct pebs_facts *pebs_facts(void)
{
    unsigned kind = pmu_kind_number(pmu_here());
    uint8_t found = __atomic_load_n(&probed[kind], __ATOMIC_ACQUIRE);
    if (!found) { /* two CPUs of a kind find the same */
        struct pebs_facts probed_here = { 0 };
        found = probe(&probed_here) ? 2 : 1;
        facts[kind] = probed_here;
        __atomic_store_n(&probed[kind], found, __ATOMIC_RELEASE);
    }
    return found == 2 ? &facts[kind] : NULL;
}

static uint32_t branches_in(const struct pebs_facts *f, uint64_t data_cfg)
{
    uint32_t wanted = (uint32_t)(data_cfg >> 24 & 0xff) + 1;
    return !(data_cfg & PEBS_LBR) ? 0 : wanted < f->lbr_depth ? wanted : f->lbr_depth;
}

uint32_t pebs_record_size(uint64_t data_cfg)
{
    const struct pebs_facts *f = pebs_facts();
    data_cfg &= f->groups | ~UINT64_C(0xffffff);
    return f->smallest + (data_cfg & PEBS_MEMORY ? MEMORY : 0) + (data_cfg & PEBS_GPR ? GPR : 0) +
           (data_cfg & PEBS_XMM ? XMM : 0) + branches_in(f, data_cfg) * BRANCH +
           (data_cfg & PEBS_COUNTERS ? COUNTERS + 8 * bit_count(data_cfg >> 32) : 0);
}

/* --- Records. --- */

/* Flags, address, registers: before format 4 in the order of their names. */
static void read_registers(const uint64_t *word, bool adaptive, struct pebs_record *r)
{
    static const uint8_t by_name[16] = { 0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15 };
    r->flags = word[0];
    r->next = word[1];
    for (unsigned i = 0; i < 16; i++)
        r->gpr[adaptive ? i : by_name[i]] = word[2 + i];
}

/* A record ends before a field that its format does not have. */
static bool read_plain(const struct pebs_facts *f, const uint64_t *word, struct pebs_record *r)
{
    read_registers(word, false, r);
    r->size = f->smallest;
    r->groups = PEBS_GPR | (f->format >= 1 ? PEBS_MEMORY : 0);
    r->address = f->format >= 2 ? word[22] : 0;
    r->tsc = f->format >= 3 ? word[24] : 0;
    if (f->format >= 1) {
        r->applicable = word[18];
        r->data_address = word[19];
        r->data_source = word[20];
        r->latency = word[21];
    }
    return true;
}

static bool read_adaptive(const uint64_t *word, struct pebs_record *r)
{
    const struct pebs_facts *f = pebs_facts();
    r->groups = (uint32_t)word[0] & f->groups;
    r->size = (uint32_t)(word[0] >> 48);
    r->lbr_count = branches_in(f, word[0]);
    r->address = word[1];
    r->applicable = word[2];
    r->tsc = word[3];
    const uint64_t *end = word + r->size / 8;
    word += BASIC / 8;
    if (r->groups & PEBS_MEMORY) {
        r->data_address = word[0];
        r->data_source = word[1];
        r->latency = word[2];
        word += MEMORY / 8;
    }
    if (r->groups & PEBS_GPR) {
        read_registers(word, true, r);
        word += GPR_WORDS;
    }
    r->xmm = r->groups & PEBS_XMM ? word : NULL;
    word += r->xmm ? XMM / 8 : 0;
    r->lbr = r->lbr_count ? word : NULL;
    word += r->lbr_count * BRANCH / 8;
    if (r->groups & PEBS_COUNTERS) {
        r->counters = word[0];
        r->value = word + COUNTERS / 8;
        word = r->value + bit_count(r->counters);
    }
    return word == end;
}

bool pebs_read(const void *record, struct pebs_record *r)
{
    const struct pebs_facts *f = pebs_facts();
    memset(r, 0, sizeof *r);
    return f && (f->groups ? read_adaptive(record, r) : read_plain(f, record, r));
}

/* --- The area. --- */

bool pebs_attach(struct ds_area *area, void *buffer, uint32_t bytes, uint32_t record_size,
                 uint32_t threshold_records)
{
    memset(area, 0, sizeof *area);
    area->base = area->index = (uint64_t)buffer;
    area->max = area->base + bytes / record_size * record_size;
    area->threshold = area->base + threshold_records * record_size;
    return !wrmsr_fault(MSR_DS_AREA, (uint64_t)area);
}

void pebs_set_reload(struct ds_area *area, unsigned ctr, uint64_t value)
{
    unsigned field = ctr < PMU_FIXED ? ctr : pebs_facts()->first_fixed + ctr - PMU_FIXED;
    area->reset[field] = value;
}

bool pebs_enable(uint64_t counters, uint64_t data_cfg)
{
    if (counters && pebs_facts()->groups && wrmsr_fault(MSR_PEBS_DATA_CFG, data_cfg))
        return false;
    return !wrmsr_fault(MSR_PEBS_ENABLE, counters);
}

void pebs_forget(uint64_t counters)
{
    uint64_t enabled = 0;
    if (!rdmsr_fault(MSR_PEBS_ENABLE, &enabled) && enabled & counters)
        wrmsr_fault(MSR_PEBS_ENABLE, enabled & ~counters);
}

void pebs_detach(void)
{
    pebs_enable(0, 0);
    wrmsr_fault(MSR_DS_AREA, 0);
}

bool pebs_take_full(void)
{
    const struct pmu_msrs *msr = &pmu_here()->msr;
    bool full = rdmsr(msr->global_status) & STATUS_BUFFER;
    if (full)
        wrmsr(msr->global_clear, STATUS_BUFFER);
    return full;
}
