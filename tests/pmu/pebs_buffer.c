/* SPDX-License-Identifier: MIT */
/* Conformance: when a processor writes records (PEBS), and where: threshold and end of the buffer,
 * counters that are off, rings, several counters, several processors; an interrupt at each
 * instruction; bad input; and its registers. */
#include "kernel/mm/phys.h"
#include "tests/harness/lbr_list.h"
#include "tests/harness/pebs_list.h"

#define MANY PEBS_STEPS_MAX
#define SO_MANY 300u /* with those of a handler whose accesses are checked (KASAN) */
#define CTR0 PMU_BIT(0)
#define CTR1 PMU_BIT(1)
#define PEBS_ENABLE 0x3f1u
#define PEBS_DATA_CFG 0x3f2u
#define CPUS_MOST 8u
#define EACH 5u /* with interrupts: instructions for a record */
#define INTERRUPTED (CTR0 | PMU_BIT(2) | PMU_BIT(3))
#define LAST_WINDOW 255u
#define EDGE (VM_WINDOW + 512 * PAGE_SIZE) /* its end; nothing is behind it */
#define LEFT 408u                          /* there, for records: two of format 3, and a word */
#define NOWHERE (KERNEL_VMA - 0x10000000)

static unsigned on_pmi_count;
static void note_count(void) { on_pmi_count = on_pmi_count ? on_pmi_count : pebs_count(); }

static uint64_t status(void) { return lab_rdmsr(pmu_here()->msr.global_status) & ~PMU_BIT(63); }

/* Counter 0 makes a record after so many instructions each, of a PMI's handler too; how many. */
static unsigned collect(unsigned capacity, unsigned threshold, unsigned period,
                        void (*on_pmi)(void))
{
    pebs_prepare(pebs_facts()->groups & PEBS_GPR, capacity, threshold);
    pebs_arm(0, 2, period);
    on_pmi_count = 0;
    pebs_record(CTR0, on_pmi);
    pebs_check_guard();
    return pebs_count();
}

static unsigned fill(unsigned capacity, unsigned threshold)
{
    return collect(capacity, threshold, 1, note_count);
}

/* The n-th record made the PMI, which came before the next instruction where none comes late. */
static void check_interrupt(unsigned n)
{
    struct pebs_record r;
    struct lab_range pmis = lab_pmis(1);
    if (!CHECK(lab_caught.pmis) || !pebs_get(n - 1, &r)) {
        test_note("a buffer that is full to its threshold says nothing");
        return;
    }
    CHECK_BECAUSE(lab_caught.pmis, pmis.low, pmis.high, pmis.why);
    CHECK_EQ(lab_caught.status & STATUS_BUFFER, STATUS_BUFFER);
    if (!pmu_here()->measured.skid.high)
        CHECK_EQ(lab_caught.rip, r.next);
}

LAB_TEST(pebs_buffer, threshold,
         "a PMI comes, and bit 62 of the status, with the record that reaches the threshold, not "
         "before; records go on [PE-10 PE-12]")
{
    SKIP_WITHOUT_PEBS();
    unsigned all = fill(MANY, MANY + 1);
    REQUIRE(all > 8);
    CHECK_EQ(lab_caught.pmis, 0);
    CHECK_EQ(status(), 0);
    for (unsigned threshold = 1; threshold <= all; threshold++) {
        CHECK(fill(MANY, threshold) >= all); /* its handler adds its own */
        check_interrupt(threshold);
        CHECK_EQ(status(), STATUS_BUFFER);
        CHECK(pebs_take_full());
        CHECK_EQ(status(), 0);
    }
    CHECK_EQ(fill(MANY, all + 1), all);
    CHECK_EQ(lab_caught.pmis, 0);
}

static uint64_t changed; /* after so many events of counter 3; 0: not yet */

/* From now on counter 1 writes. */
static void change_counter(void)
{
    wrmsr(pmu_here()->msr.global_control, 0);
    note_count();
    changed = pmu_read(3);
    pebs_set_reload(&pebs_place.area, 1, -(EACH - 1ul) & pmu_mask(pmu_here(), 1));
    pebs_enable(CTR1, pebs_place.data_cfg);
    wrmsr(pmu_here()->msr.global_control, CTR1 | PMU_BIT(3));
}

/* Counter 2 interrupts after so many events; 3 counts them all. Whether it came. */
static bool interrupt_after(uint64_t events, void (*handler)(void))
{
    pebs_drain(&pebs_place.area);
    pebs_arm(0, EACH - 1, EACH - 1);
    pebs_arm(1, EACH - 1, EACH - 1);
    pmu_program(2, lab_select(2, PMU_KERNEL | PMU_INTERRUPT), -events & pmu_mask(pmu_here(), 2));
    pmu_program(3, lab_select(3, PMU_KERNEL), 0);
    changed = 0;
    pebs_enable(CTR0, pebs_place.data_cfg);
    pebs_run_gated(INTERRUPTED, handler);
    pebs_enable(0, 0);
    pmu_take_overflow();
    return lab_caught.pmis + lab_caught.nmis;
}

/* Each is of the event of which it must be; those of the handler are not compared. */
static void check_records(uint64_t interrupted, unsigned length)
{
    struct pebs_record r;
    uint64_t all = pmu_read(3), handler = all - (length + lab_before() - 2),
             first = changed ? changed : all, before = first / EACH;
    CHECK_EQ(pebs_count(), before + (all - first) / EACH);
    for (unsigned n = 0; n < pebs_count() && pebs_get(n, &r); n++) {
        uint64_t event = (n < before ? 0 : first - before * EACH) + (n + 1) * EACH;
        bool late = event > interrupted, inside = late && event - interrupted <= handler;
        CHECK_EQ(r.applicable, n < before ? CTR0 : CTR1);
        CHECK_EQ(inside ? pebs_step_of(r.address) : pebs_check(&r),
                 inside ? PEBS_STEPS_MAX : pebs_expected(event - 1 - (late ? handler : 0)));
    }
}

VPMU_TEST(pebs_buffer, interrupted,
          "an interrupt or an NMI at each instruction, whose handler goes on or lets another "
          "counter write: each record is of its instruction, none is lost, none comes twice "
          "[PE-02 PE-04 PE-05 PE-06 PE-13]")
{
    SKIP_WITHOUT_PEBS();
    SKIP_IF(pmu_here()->measured.skid.high, "no counter whose interrupts come at once");
    unsigned length = pebs_steps(INTERRUPTED);
    pebs_prepare(pebs_facts()->groups & PEBS_GPR, SO_MANY, SO_MANY + 1);
    for (unsigned way = 0; way < 4; way += test_long() ? 1 : 3) {
        const unsigned step = test_long() ? 1 : 2; /* one way the odd ones, the other the even */
        uint64_t events = way && step == 2 ? 2 : 1, last = length + lab_before() - 1;
        pebs_lvt = way & 1 ? APIC_LVT_NMI : VECTOR_PMI;
        for (; interrupt_after(events, way & 2 ? change_counter : note_count); events += step)
            check_records(events, length);
        check_records(events, length);
        CHECK_BECAUSE(events, last, last + step - 1, "the first at which none comes");
    }
    pebs_lvt = VECTOR_PMI;
}

LAB_TEST(pebs_buffer, full,
         "where there is no space for a record none is written, nor anything behind the buffer, "
         "and software alone moves the index back [PE-11 PE-12]")
{
    SKIP_WITHOUT_PEBS();
    unsigned length = pebs_steps(CTR0 | CTR1);
    for (unsigned capacity = 2; capacity <= 4; capacity++) {
        unsigned count = fill(capacity, MANY);
        CHECK_RANGE(count, capacity - !vpmu_present() /* some leave the last one */, capacity);
        pebs_record(CTR0, NULL);
        CHECK_EQ(pebs_count(), count);
        CHECK_EQ(pebs_drain(&pebs_place.area), count * pebs_place.size);
        pebs_arm(0, 2, 1);
        pebs_record(CTR0, NULL);
        CHECK_EQ(pebs_count(), count);
    }
    pmu_program(1, lab_select(1, PMU_KERNEL), 0);
    pebs_prepare(0, 1, MANY);
    pebs_arm(0, 2, 1);
    pebs_enable(CTR0, 0);
    pebs_run_gated(CTR0 | CTR1, NULL);
    pebs_enable(0, 0);
    CHECK_EQ(pmu_read(1), length + lab_before() - 2);
}

LAB_TEST(pebs_buffer, counters,
         "counters that overflow at once have one record with the bits of both, others each their "
         "own; one that is set to 0 writes none again [PE-06]")
{
    struct pebs_record r;
    SKIP_WITHOUT_PEBS();
    SKIP_IF(!(pebs_facts()->counters & CTR1), "this needs two counters");
    uint64_t seen = 0;
    pebs_steps(CTR0 | CTR1);
    for (unsigned apart = 0; apart < 3; apart++) {
        pebs_prepare(0, MANY, MANY);
        pebs_arm(0, 4, 0);
        pebs_arm(1, 4 + apart, 0);
        pebs_record(CTR0 | CTR1, NULL);
        unsigned count = pebs_count();
        CHECK_EQ(count, apart ? 2 : 1);
        for (unsigned n = 0; n < count && pebs_get(n, &r); n++) {
            CHECK_EQ(r.applicable, !apart ? CTR0 | CTR1 : n ? CTR1 : CTR0);
            seen |= r.applicable;
            pebs_check(&r);
        }
    }
    CHECK_EQ(seen, CTR0 | CTR1);
}

/* Counter 0, with an event of this ring, makes no record in ring 0. */
static void expect_none(uint64_t control, uint64_t enable, uint32_t ring)
{
    pebs_prepare(0, 8, 8);
    pmu_program(0, lab_select(0, ring), -4ul & pmu_mask(pmu_here(), 0));
    CHECK(pebs_enable(enable, 0));
    pebs_run_gated(control, NULL);
    pebs_enable(0, 0);
    CHECK_EQ(pebs_count(), 0);
    pebs_check_guard();
}

LAB_TEST(pebs_buffer, off,
         "without its bit of PEBS_ENABLE a counter's overflow sets the status and writes nothing; "
         "a counter that stands still, or is ring 3's, writes nothing [PE-13 PE-14]")
{
    SKIP_WITHOUT_PEBS();
    expect_none(CTR0, 0, PMU_KERNEL);
    CHECK_EQ(status(), CTR0);
    lab_wrmsr(pmu_here()->msr.global_clear, CTR0);
    expect_none(0, CTR0, PMU_KERNEL);
    expect_none(CTR1, CTR0, PMU_KERNEL);
    expect_none(CTR0, CTR0, PMU_USER);
    CHECK_EQ(status(), 0);
    CHECK_EQ(pmu_read(0), -4ul & pmu_mask(pmu_here(), 0));
}

static const struct ds_area read_only = { .index = (uint64_t)pebs_place.buffer, .max = ~0ul };

/* Addresses, 0: where it should be; then numbers of records from the base. */
static const struct odd {
    const char *what;
    uint64_t area, buffer;
    int index, max, threshold;
    unsigned records; /* MANY: as many as are left at the edge */
} odds[] = {
    { "no buffer", 0, NOWHERE, 0, 8, 9, 0 },
    { "a buffer that is read-only", 0, (uint64_t)&read_only, 0, 8, 9, 0 },
    { "a buffer that ends in a record", 0, EDGE - LEFT, 0, MANY, MANY, MANY },
    { "no area", NOWHERE, 0, 0, 8, 9, 0 },
    { "an area that is read-only", (uint64_t)&read_only, 0, 0, 8, 9, 0 },
    { "an area at the end of all addresses", -0x30ul, 0, 0, 8, 9, 0 },
    { "an area in two pages", EDGE - PAGE_SIZE - 0x28, 0, 0, 3, 9, 3 },
    { "an area that ends behind the first reset field", EDGE - 0x48, 0, 0, 3, 9, 3 },
    { "before it: nothing sets the counter", EDGE - 0x40, 0, 0, 3, 9, 1 },
    { "before the threshold", EDGE - 0x38, 0, 0, 3, 9, 0 },
    { "an index below the base", 0, 0, -2, 3, 9, 5 },
    { "an index above the maximum", 0, 0, 5, 3, 9, 0 },
    { "a maximum below the base", 0, 0, 0, -1, 9, 0 },
    { "a threshold below the base", 0, 0, 0, 3, -1, 3 },
};

static void try_odds(unsigned)
{
    struct ds_area *area = &pebs_place.area;
    SKIP_WITHOUT_PEBS();
    memset((void *)(EDGE - LEFT), PEBS_GUARD, LEFT);
    for (const struct odd *o = odds; o < odds + ARRAY_SIZE(odds); o++) {
        pebs_prepare(0, MANY, MANY);
        pebs_arm(0, 2, 1);
        const uint64_t size = pebs_place.size, base = o->buffer ? o->buffer : area->base + 4 * size,
                       index = base + o->index * size, left = EDGE - o->area,
                       bytes = (o->records == MANY ? LEFT / size : o->records) * size;
        area->base = base;
        area->index = index;
        area->max = base + o->max * size;
        area->threshold = base + o->threshold * size;
        struct ds_area *at = left <= 2 * PAGE_SIZE ? (struct ds_area *)o->area : area;
        memcpy(at, area, left < sizeof *area ? left : sizeof *area);
        lab_wrmsr(DS_AREA, o->area ? o->area : (uint64_t)area);
        pebs_record(CTR0, NULL);
        bool moved = CHECK_EQ(at->index - index, bytes);
        if (!CHECK_EQ(lab_caught.pmis, o->threshold < 0) || !moved)
            test_note("%s", o->what);
        if (o->records == MANY)
            CHECK_EQ(*(const uint8_t *)(index + bytes), PEBS_GUARD);
        area->base = (uint64_t)pebs_place.buffer;
        area->index = o->buffer ? area->base : index + bytes;
        pebs_check_guard();
    }
}

TEST(pebs_buffer, missing,
     "areas and buffers that are not there, read-only, cut off or odd: a record is where the index "
     "says, below the maximum, or nowhere; no fault. Never asked of processors [PE-11 PE-16]")
{
    SKIP_WITHOUT_VPMU();
    uint8_t *pages = phys_alloc(2);
    REQUIRE(pages != NULL);
    vm_window_map(LAST_WINDOW, virt_to_phys(pages), virt_to_phys(pages) + PAGE_SIZE);
    lab_run(try_odds, LAB_ANY);
    vm_window_unmap(LAST_WINDOW);
}

LAB_TEST(pebs_buffer, odd_events,
         "events that are not precise or nobody's, edges, thresholds and any thread: what they "
         "record is inside the buffer [PE-11]")
{
    static const uint16_t events[] = { 0x00c0, 0x003c, 0x013c, 0x00c4, 0x81d0, 0xffff };
    static const uint32_t flags[] = { 0, PMU_EDGE, PMU_ANY_THREAD, PMU_EDGE | PMU_THRESHOLD(2),
                                      PMU_INVERT | PMU_THRESHOLD(1) };
    unsigned records = 0;
    SKIP_WITHOUT_PEBS();
    pebs_prepare(0, 2, 1);
    for (unsigned i = 0; i < ARRAY_SIZE(events) * ARRAY_SIZE(flags); i++) {
        unsigned event = events[i % ARRAY_SIZE(events)], flag = flags[i / ARRAY_SIZE(events)];
        uint64_t select = pmu_raw_select(event & 255, (uint8_t)(event >> 8), PMU_KERNEL | flag);
        pebs_drain(&pebs_place.area);
        pebs_arm(0, 2, 1);
        if (!wrmsr_fault(pmu_select_msr(pmu_here(), 0), select | PMU_ENABLE))
            pebs_record(CTR0, NULL);
        CHECK(pebs_count() <= 2);
        records += pebs_count();
    }
    CHECK(records > 2);
    pebs_place.area.index = pebs_place.area.max;
    pebs_check_guard();
}

/* A register keeps these bits, and faults for each other one. */
static void check_bits(uint32_t msr, uint64_t legal)
{
    lab_wrmsr(msr, legal);
    CHECK_EQ(lab_rdmsr(msr), legal);
    for (unsigned bit = 0; bit < 64; bit++)
        if (!(legal >> bit & 1))
            CHECK_EQ(wrmsr_fault(msr, UINT64_C(1) << bit), LAB_GP_FAULT);
    CHECK_EQ(lab_rdmsr(msr), legal);
    lab_wrmsr(msr, 0);
}

/* Formats before 4 may have bits for latencies and others beside those of the counters. */
LAB_TEST(pebs_registers, bits,
         "PEBS_ENABLE keeps the bits of its counters, PEBS_DATA_CFG those of groups, DS_AREA a "
         "canonical address; others fault, and so does what the format does not have [PE-01]")
{
    SKIP_WITHOUT_PEBS();
    const struct pebs_facts *f = pebs_facts();
    if (f->groups || vpmu_present())
        check_bits(PEBS_ENABLE, f->counters);
    if (f->groups && vpmu_present())
        check_bits(PEBS_DATA_CFG,
                   f->groups | 0xff000000u |
                       (f->groups & PEBS_COUNTERS ? PEBS_VALUES_OF(pmu_here()->reported) : 0));
    if (!f->groups)
        lab_absent(PEBS_DATA_CFG);
    CHECK_EQ(lab_rdmsr(0x345) >> 6 & 3, 3); /* trap-like; registers of all formats */
    CHECK_EQ(lab_rdmsr(DS_AREA), 0);
    lab_wrmsr(DS_AREA, KERNEL_VMA);
    for (unsigned bit = vpmu_present() ? 47 : 57; bit < 63; bit++)
        CHECK_EQ(wrmsr_fault(DS_AREA, UINT64_C(1) << bit), LAB_GP_FAULT);
    CHECK_EQ(lab_rdmsr(DS_AREA), KERNEL_VMA);
    pebs_detach();
    CHECK_EQ(lab_rdmsr(DS_AREA), 0);
    uint64_t select = lab_select(0, PMU_KERNEL) | PMU_ADAPTIVE;
    CHECK_EQ(wrmsr_fault(pmu_select_msr(pmu_here(), 0), select), f->groups ? 0 : LAB_GP_FAULT);
    CHECK_EQ(wrmsr_fault(pmu_here()->msr.fixed_control, UINT64_C(1) << 32),
             f->groups ? 0 : LAB_GP_FAULT);
    wrmsr_fault(pmu_here()->msr.fixed_control, 0);
}

/* Counter 0 of this CPU makes records by the area that it was given. */
static void record_here(void)
{
    KIRQL old = irql_raise(IPI_LEVEL);
    pmu_program(0, lab_select(0, PMU_KERNEL), -4ul & pmu_mask(pmu_here(), 0));
    pebs_record(CTR0, NULL);
    pmu_clear(CTR0);
    irql_lower(old);
}

TEST(pebs_buffer, processors,
     "each processor writes where its own area says, whatever the others have [PE-15]")
{
    static struct ds_area areas[CPUS_MOST];
    HANDLE owner;
    SKIP_WITHOUT_PMU();
    SKIP_WITH_ONE_CPU();
    SKIP_IF(!pebs_facts(), "no records");
    unsigned count = cpu_count < CPUS_MOST ? cpu_count : CPUS_MOST;
    REQUIRE_OK(hal_counters_claim("laboratory", cpu_all(), CTR0, NULL, &owner));
    for (unsigned cpu = 0; cpu < count; cpu++) {
        test_run_on(cpu);
        pebs_prepare(0, MANY, MANY);
        uint8_t *mine = pebs_place.buffer + cpu * (PEBS_BYTES / CPUS_MOST);
        CHECK(pebs_attach(&areas[cpu], mine, PEBS_BYTES / CPUS_MOST, pebs_place.size, MANY));
        pebs_set_reload(&areas[cpu], 0, -4ul & pmu_mask(pmu_here(), 0));
    }
    for (unsigned cpu = 0; cpu < count; cpu++) {
        test_run_on(cpu);
        record_here();
        for (unsigned other = 0; other < count; other++) {
            bool wrote = areas[other].index != areas[other].base;
            if (wrote != (other <= cpu))
                test_note("records of CPU %u: the buffer of CPU %u is %s", cpu, other,
                          wrote ? "not empty" : "empty");
            CHECK_EQ(wrote, other <= cpu);
        }
        pebs_detach();
    }
    test_run_anywhere();
    CHECK_OK(HalFreeHardwareCounters(owner));
}

/* Where a branch goes of which the record is, unless it is one that is not taken each time, or a
 * fault, whose instruction was done again. How many rows are of it. */
static unsigned check_branch(const struct pebs_record *r)
{
    unsigned rows = 0;
    bool right = false;
    for (const struct lbr_row *row = lbr_user_rows; row->from; row++)
        if (row->from == r->address) {
            right |= row->to == r->next || row->to == (uint64_t)lbr_on_page_fault ||
                     row->class == PMU_HIDE_JCC;
            rows++;
        }
    if (rows && !CHECK(right))
        test_note("the next of %lx is %lx", r->address, r->next);
    return rows;
}

/* A record after each second event of one ring, while a program in ring 3 branches; of how many. */
static unsigned record_ring3(unsigned cpu, uint32_t ring, uint64_t events)
{
    HANDLE owner;
    struct pebs_record r;
    unsigned branches = 0;
    test_run_on(cpu);
    if (!CHECK_OK(hal_counters_claim("laboratory", cpu_set_one(cpu), CTR0, NULL, &owner)))
        return 0;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pebs_prepare(pebs_facts()->groups & PEBS_GPR, SO_MANY, SO_MANY + 1);
    pebs_arm(0, events, 1);
    pmu_program(0, pmu_selected(0) ^ PMU_KERNEL ^ ring, pmu_read(0));
    pebs_enable(CTR0, pebs_place.data_cfg);
    irql_lower(old);
    lbr_run_gated(user_branches, (struct pmu_gate){ pmu_here()->msr.global_control, CTR0, 0 });
    old = irql_raise(PROFILE_LEVEL);
    pmu_clear(CTR0);
    pebs_detach();
    irql_lower(old);
    CHECK(pebs_count() > 10);
    for (unsigned n = 0; n < pebs_count() && pebs_get(n, &r); n++) {
        CHECK_EQ(r.address >> 63, ring == PMU_KERNEL);
        CHECK(ring == PMU_KERNEL || r.gpr[4] >> 63 <= r.next >> 63); /* whose stack it is */
        branches += ring == PMU_USER && check_branch(&r);
    }
    CHECK_OK(HalFreeHardwareCounters(owner));
    return branches;
}

TEST(
    pebs_buffer, ring3,
    "records of a program in ring 3 are all its own, those of SYSCALL and INT n too, whose next "
    "instruction is the kernel's; a counter of ring 0 has none of them: the buffer is the kernel's "
    "[PE-05 PE-14 PE-15]")
{
    SKIP_WITHOUT_PMU();
    SKIP_IF(!pebs_facts(), "no records");
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        CHECK(record_ring3(cpu, PMU_USER, 1) + record_ring3(cpu, PMU_USER, 2) > 16);
        record_ring3(cpu, PMU_KERNEL, 2);
    }
    test_run_anywhere();
}
