/* SPDX-License-Identifier: MIT */
/* See pebs_list.h. */
#include "tests/harness/pebs_list.h"

#define VECTOR_DB 1
#define TF 0x100u
#define UNCOUNTED 4u /* steps after the last that is counted: WRMSR, PUSHFQ, AND, POPFQ */
#define IGNORED_FLAGS (TF | 1u << 16) /* RF too: whether it is in a record, no manual says */

struct pebs_place pebs_place;
struct pmu_gate pebs_list_gate;
uint32_t pebs_lvt = VECTOR_PMI;
static struct pebs_step steps[PEBS_STEPS_MAX];
static unsigned step_count;

void pebs_prepare(uint64_t data_cfg, unsigned capacity, unsigned threshold)
{
    struct pebs_place *p = &pebs_place;
    p->data_cfg = data_cfg;
    p->size = pebs_record_size(data_cfg);
    p->capacity = capacity;
    memset(p->buffer, PEBS_GUARD, sizeof p->buffer);
    CHECK(capacity * p->size <= PEBS_BYTES);
    CHECK(pebs_attach(&p->area, p->buffer, capacity * p->size, p->size, threshold));
}

void pebs_arm(unsigned ctr, uint64_t events, uint64_t period)
{
    uint64_t mask = pmu_mask(pmu_here(), ctr),
             select = lab_select(ctr, PMU_KERNEL) | (pebs_facts()->groups ? PMU_ADAPTIVE : 0);
    pebs_set_reload(&pebs_place.area, ctr, -period & mask);
    pmu_program(ctr, select, -events & mask);
}

/* The XMM registers are somebody else's. All addresses and values are the same each time. */
static void run_program(uint64_t counters, uint64_t flags)
{
    static struct pebs_run run;
    uint8_t saved[512] __attribute__((aligned(16)));
    run = (struct pebs_run){ pmu_here()->msr.global_control, counters, 0, pebs_program, flags };
    fxsave(saved);
    pebs_run(&run);
    fxrstor(saved);
}

unsigned pebs_steps(uint64_t counters)
{
    memset(steps, 0, sizeof steps);
    pebs_cursor = steps;
    lab_catch();
    lab_set_gate(VECTOR_DB, pebs_on_step);
    run_program(counters, TF);
    lab_release();
    step_count = (unsigned)(pebs_cursor - steps) - UNCOUNTED;
    return step_count;
}

void pebs_run_gated(uint64_t control, void (*on_pmi)(void))
{
    lab_catch();
    lab_caught.action = on_pmi;
    apic_write_pmi_lvt(pebs_lvt);
    if (pebs_list_gate.on)
        wrmsr(pebs_list_gate.msr, pebs_list_gate.on);
    run_program(control, 0);
    if (pebs_list_gate.on)
        wrmsr(pebs_list_gate.msr, pebs_list_gate.off);
    if (on_pmi)
        lab_wait_quietly();
    lab_release();
}

void pebs_record(uint64_t counters, void (*on_pmi)(void))
{
    CHECK(pebs_enable(counters, pebs_place.data_cfg));
    pebs_run_gated(counters, on_pmi);
    pebs_enable(0, 0);
}

unsigned pebs_count(void)
{
    const struct ds_area *a = &pebs_place.area;
    return (unsigned)(a->index - a->base) / pebs_place.size;
}

bool pebs_get(unsigned n, struct pebs_record *r)
{
    return CHECK(pebs_read(pebs_place.buffer + n * pebs_place.size, r));
}

void pebs_check_guard(void)
{
    const uint8_t *at = pebs_place.buffer + pebs_count() * pebs_place.size;
    while (at < pebs_place.buffer + PEBS_BYTES && *at == PEBS_GUARD)
        at++;
    if (!CHECK(at == pebs_place.buffer + PEBS_BYTES))
        test_note("byte %lu behind %u records of %u bytes is written", at - pebs_place.buffer,
                  pebs_count(), pebs_place.size);
}

unsigned pebs_expected(uint64_t events)
{
    return (unsigned)(events + 2 - lab_before()); /* step 0 is the WRMSR, which may not count */
}

static uint64_t instruction_of(unsigned step)
{
    return step ? steps[step - 1].rip : pebs_rows[0].at;
}

static const struct pebs_row *row_at(uint64_t address)
{
    const struct pebs_row *row = pebs_rows;
    while (row->at && row->at != address)
        row++;
    return row;
}

const char *pebs_name(unsigned step)
{
    const struct pebs_row *row = row_at(instruction_of(step));
    return row->at ? row->text : "what follows the program";
}

bool pebs_branch(unsigned step, uint64_t *from, uint64_t *to)
{
    *from = instruction_of(step);
    *to = steps[step].rip;
    const struct pebs_row *row = row_at(*from);
    return row->at && row[1].at != *to;
}

unsigned pebs_step_of(uint64_t address)
{
    unsigned step = 0;
    while (step < step_count && instruction_of(step) != address)
        step++;
    return step < step_count ? step : PEBS_STEPS_MAX;
}

/* False after a line that names the first field that differs. */
static bool check_field(unsigned step, const char *field, uint64_t found, uint64_t wanted)
{
    if (CHECK_EQ(found, wanted))
        return true;
    test_note("the record of '%s' differs in: %s", pebs_name(step), field);
    return false;
}

static bool check_words(unsigned step, const char *field, const uint64_t *found,
                        const uint64_t *wanted, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!check_field(step, field, found[i], wanted[i])) {
            test_note("  word %u of it", i);
            return false;
        }
    return true;
}

static bool check_registers(unsigned step, const struct pebs_record *r)
{
    const struct pebs_step *s = &steps[step];
    return check_field(step, "flags", r->flags & ~(uint64_t)IGNORED_FLAGS,
                       s->flags & ~(uint64_t)IGNORED_FLAGS) &&
           check_field(step, "next instruction", r->next, s->rip) &&
           check_words(step, "registers by number", r->gpr, s->gpr, 16);
}

unsigned pebs_check(const struct pebs_record *r)
{
    unsigned step = pebs_step_of(r->address);
    if (!CHECK(step < PEBS_STEPS_MAX)) {
        test_note("a record is of %lx, which is no instruction of the program: a host's, or of "
                  "another processor's",
                  r->address);
        return step;
    }
    uint64_t data = row_at(r->address)->data;
    bool same = check_field(step, "size", r->size, pebs_place.size) &&
                (!(r->groups & PEBS_GPR) || check_registers(step, r));
    if (same && r->xmm)
        same = check_words(step, "XMM registers", r->xmm, steps[step].xmm, 32);
    if (same && data && r->groups & PEBS_MEMORY)
        check_field(step, "data address", r->data_address, data);
    return step;
}
