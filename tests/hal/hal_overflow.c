/* SPDX-License-Identifier: MIT */
/* The overflow of an owned counter, and that a free leaves no counter programmed. The overflow
 * is caused inside an IPI, with interrupts off, so that its interrupt follows immediately. */
#include "kernel/base/sanitize/kasan.h"
#include "kernel/driver/nt_driver.h"
#include "tests/harness/lab.h"

#define PERIOD (KASAN_ON ? 20000u : 1000u) /* a handler is shorter */
#define LOOPS (2 * PERIOD)                 /* of two instructions or more: some periods */
#define WAIT_PAUSES 5000u                  /* for what must come */
#define LOOKS 200u /* between two of those, each of which leaves a virtual machine */

#define SKIP_WITHOUT_INSTRUCTIONS()                                                                \
    do {                                                                                           \
        SKIP_WITHOUT_PMU();                                                                        \
        if (!common_instructions())                                                                \
            SKIP("no counter counts instructions");                                                \
    } while (0)

/* Records of two owners' handlers, which run on one CPU at a time. */
static struct seen {
    uint32_t calls; /* atomic */
    uint64_t bits;
    HANDLE handle;
    KIRQL irql;
    unsigned cpu;
    uint64_t rearm; /* 0: not at all */
} seen[2];

static void note_overflow(struct seen *s, ULONGLONG bits, HANDLE handle)
{
    s->bits |= bits;
    s->handle = handle;
    s->irql = irql_current();
    s->cpu = cpu_number();
    for_each_bit(ctr, s->rearm ? bits : 0)
        pmu_write(ctr, -s->rearm & pmu_mask(pmu_here(), ctr));
    __atomic_fetch_add(&s->calls, 1, __ATOMIC_RELEASE);
}

static void first_handler(ULONGLONG bits, HANDLE handle) { note_overflow(&seen[0], bits, handle); }

static void second_handler(ULONGLONG bits, HANDLE handle) { note_overflow(&seen[1], bits, handle); }

static uint32_t calls(unsigned owner)
{
    return __atomic_load_n(&seen[owner].calls, __ATOMIC_ACQUIRE);
}

static void wait_for_overflows(unsigned owner, uint32_t wanted)
{
    for (unsigned i = 0; i < WAIT_PAUSES * LOOKS && calls(owner) < wanted; i++)
        if (i % LOOKS == 0)
            pause();
}

/* Arms the counters, together, and lets them overflow. */
static void overflow_here(void *argument)
{
    uint64_t counters = *(const uint64_t *)argument;
    KIRQL old = irql_raise(PROFILE_LEVEL);
    for_each_bit(ctr, counters)
        pmu_program(ctr,
                    pmu_select(pmu_here(), PMU_INSTRUCTIONS, PMU_KERNEL | PMU_USER | PMU_INTERRUPT),
                    -(uint64_t)PERIOD & pmu_mask(pmu_here(), ctr));
    pmu_start(counters);
    for (unsigned i = 0; i < LOOPS; i++)
        asm volatile("");
    irql_lower(old);
}

/* Counters that stay where they are after an overflow. */
static void overflow_on(unsigned cpu, uint64_t counters)
{
    smp_call(cpu_set_one(cpu), overflow_here, &counters);
}

/* The first owner is called so often, 0 or 1, and no more. */
static void overflow_once(unsigned cpu, uint64_t counters, uint32_t wanted)
{
    overflow_on(cpu, counters);
    wait_for_overflows(0, wanted);
    lab_wait_quietly();
    CHECK_EQ(calls(0), wanted);
}

static void clear_here(void *argument)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    pmu_clear(*(const uint64_t *)argument);
    irql_lower(old);
}

static HANDLE own_counters(struct cpu_set where, uint64_t counters,
                           PPHYSICAL_COUNTER_OVERFLOW_HANDLER handler)
{
    struct list list = { 1, { overflow(handler) } };
    HANDLE handle = NULL;
    for_each_bit(ctr, counters)
        list.Descriptors[list.Count++] = single((ULONG)ctr);
    CHECK_OK(take_on(where, &list, &handle));
    return handle;
}

static void forget_seen(void) { seen[0] = seen[1] = (struct seen){ 0 }; }

/* Interrupts of counters that were taken so far. */
static uint64_t interrupts(void) { return trap_counts[hal_pmi_is_nmi() ? EXC_NMI : VECTOR_PMI]; }

static void check_owner(unsigned cpu, uint64_t counters)
{
    forget_seen();
    uint64_t before = interrupts();
    HANDLE handle = own_counters(cpu_set_one(cpu), counters, first_handler);
    overflow_once(cpu, counters, 1);
    CHECK_EQ(seen[0].bits, counters);
    CHECK(seen[0].handle == handle);
    CHECK_EQ(seen[0].irql, PROFILE_LEVEL);
    CHECK_EQ(seen[0].cpu, cpu);
    if (vpmu_present()) /* a real processor may send a second, spurious interrupt */
        CHECK_EQ(interrupts() - before, 1);
    free_and_check(handle);
}

TEST(hal_overflow, handler,
     "an overflow of any counter on any processor, or of all together, calls its owner's handler "
     "once, with the right bits, handle, IRQL and processor [HC-36 HC-37 HC-38 VP-89]")
{
    SKIP_WITHOUT_INSTRUCTIONS();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        uint64_t counters = pmu_counters_for(pmu_of(cpu), PMU_INSTRUCTIONS);
        for_each_bit(ctr, counters)
            check_owner(cpu, PMU_BIT(ctr));
        check_owner(cpu, counters);
    }
}

TEST(hal_overflow, two_owners,
     "two owners whose counters overflow together are both called, each with its own bits [HC-39 "
     "HC-40]")
{
    SKIP_WITHOUT_INSTRUCTIONS();
    uint64_t counters = common_instructions(), lowest = counters & -counters;
    SKIP_IF(counters == lowest, "only one counter counts instructions");
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        forget_seen();
        HANDLE one = own_counters(cpu_set_one(cpu), lowest, first_handler);
        HANDLE rest = own_counters(cpu_set_one(cpu), counters & ~lowest, second_handler);
        overflow_on(cpu, counters);
        wait_for_overflows(0, 1);
        wait_for_overflows(1, 1);
        lab_wait_quietly();
        CHECK_EQ(calls(0), 1);
        CHECK_EQ(calls(1), 1);
        CHECK_EQ(seen[0].bits, lowest);
        CHECK_EQ(seen[1].bits, counters & ~lowest);
        CHECK(seen[0].handle == one);
        CHECK(seen[1].handle == rest);
        free_and_check(one);
        free_and_check(rest);
    }
}

TEST(hal_overflow, without_handler,
     "an overflow of an owner without a handler calls nobody, alone or together with another "
     "owner's [HC-39]")
{
    SKIP_WITHOUT_INSTRUCTIONS();
    uint64_t counters = common_instructions(), lowest = counters & -counters;
    HANDLE quiet = NULL;
    forget_seen();
    CHECK_STATUS(hal_counters_claim("quiet", cpu_set_one(0), lowest, NULL, &quiet), STATUS_SUCCESS);
    HANDLE other =
        counters == lowest ? NULL : own_counters(cpu_set_one(0), counters & ~lowest, first_handler);
    uint64_t before = interrupts();
    overflow_on(0, lowest);
    lab_wait_quietly();
    CHECK(interrupts() != before); /* it did overflow */
    CHECK_EQ(calls(0), 0);
    counting_pause(lowest);
    overflow_once(0, counters, other != NULL);
    CHECK_EQ(seen[0].bits, counters & ~lowest);
    free_and_check(quiet);
    if (other)
        free_and_check(other);
}

TEST(hal_overflow, after_free,
     "an overflow of a counter that was freed calls no handler, also when an owner of other "
     "counters has its slot")
{
    SKIP_WITHOUT_INSTRUCTIONS();
    uint64_t counters = common_instructions(), lowest = counters & -counters;
    SKIP_IF(counters == lowest, "only one counter counts instructions");
    forget_seen();
    free_and_check(own_counters(cpu_set_one(0), lowest, first_handler));
    HANDLE other = NULL;
    for (unsigned owned = 0; owned < 2; owned++) { /* while its place is free, then another's */
        uint64_t before = interrupts();
        overflow_on(0, lowest);
        lab_wait_quietly();
        CHECK(interrupts() != before); /* it did overflow */
        CHECK_EQ(calls(0), 0);
        smp_call(cpu_set_one(0), clear_here, &lowest);
        if (!owned)
            other = own_counters(cpu_set_one(0), counters & ~lowest, first_handler);
    }
    free_and_check(other);
}

#define END_MOST                                                                                   \
    40u /* instructions: from where the counters resume to where the interrupt returns */

static void once_more(ULONGLONG bits, HANDLE handle)
{
    first_handler(bits, handle);
    seen[0].rearm = 0;
}

TEST(hal_overflow, at_the_end,
     "an overflow in the last instructions of the interrupt that re-armed its counter interrupts, "
     "too [HC-36]")
{
    SKIP_WITHOUT_INSTRUCTIONS();
    uint64_t lowest = common_instructions();
    lowest &= -lowest;
    HANDLE handle = own_counters(cpu_set_one(0), lowest, once_more);
    for (unsigned n = 1; n <= END_MOST; n++) {
        forget_seen();
        seen[0].rearm = n;
        overflow_on(0, lowest);
        wait_for_overflows(0, 2);
        if (!CHECK_EQ(calls(0), 2))
            test_note("the counter was to overflow after %u instructions", n);
        smp_call(cpu_set_one(0), clear_here, &lowest);
    }
    free_and_check(handle);
}

TEST(hal_overflow, none_after_free,
     "a handler that re-arms its counters is called again and again on every processor, and not "
     "after the free has returned [HC-36 HC-41]")
{
    SKIP_WITHOUT_INSTRUCTIONS();
    uint64_t counters = common_instructions();
    for (unsigned i = 0; i < (test_long() ? 10 : 3); i++) {
        forget_seen();
        seen[0].rearm = PERIOD;
        HANDLE handle = own_counters(cpu_all(), counters, first_handler);
        smp_call(cpu_all(), overflow_here, &counters);
        wait_for_overflows(0, 20);
        CHECK(calls(0) >= 20);
        free_and_check(handle);
        uint32_t at_free = calls(0);
        lab_wait_quietly();
        CHECK_EQ(calls(0), at_free);
    }
}

/* What a CPU's registers hold, all of them joined: running counters, what they count, and values of
 * those that count instructions. */
struct registers {
    uint64_t running, selects, values;
};

static void read_registers(void *into)
{
    struct registers *r = into;
    *r = (struct registers){ .running = pmu_running() };
    for_each_bit(ctr, pmu_here()->counters)
        r->selects |= pmu_selected(ctr);
    for_each_bit(ctr, common_instructions())
        r->values |= pmu_read(ctr);
}

static struct registers registers_of(unsigned cpu)
{
    struct registers r;
    smp_call(cpu_set_one(cpu), read_registers, &r);
    return r;
}

TEST(hal_overflow, free_spares_others,
     "a free stops and clears the counters that the owner left running, and leaves those of other "
     "owners running, on other processors too [HC-42]")
{
    SKIP_WITHOUT_INSTRUCTIONS();
    uint64_t counters = common_instructions(), lowest = counters & -counters;
    SKIP_IF(counters == lowest, "only one counter counts instructions");
    forget_seen();
    const unsigned last = cpu_count - 1;
    HANDLE one = own_counters(cpu_set_one(0), lowest, first_handler),
           rest = own_counters(cpu_all(), counters & ~lowest, second_handler),
           same =
               last ? own_counters(cpu_set_minus(cpu_all(), cpu_set_one(0)), lowest, first_handler)
                    : NULL;
    smp_call(cpu_all(), overflow_here, &counters);
    CHECK(registers_of(0).selects != 0);
    free_and_check(one);
    CHECK_EQ(registers_of(0).running, counters & ~lowest);
    CHECK(!last || registers_of(last).running == counters);
    free_and_check(rest);
    CHECK(!last || registers_of(last).running == lowest);
    if (last)
        free_and_check(same);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        CHECK_EQ(registers_of(cpu).running, 0);
        CHECK_EQ(registers_of(cpu).selects, 0);
        CHECK_EQ(registers_of(cpu).values, 0);
    }
}

/* A driver's own handler of the interrupt. */
static struct {
    uint32_t calls; /* atomic */
    KIRQL irql;
    unsigned cpu;
    uint64_t status, rip;
} driver;

static __attribute__((ms_abi)) void driver_pmi(PVOID frame)
{
    driver.irql = irql_current();
    driver.cpu = cpu_number();
    driver.rip = ((const struct trap_frame *)frame)->rip;
    /* Linux found bit 63 set with PMIs of some processors. */
    driver.status =
        pmu_here()->msr.global_status ? rdmsr(pmu_here()->msr.global_status) & ~(1ul << 63) : 0;
    __atomic_fetch_add(&driver.calls, 1, __ATOMIC_RELEASE);
}

static __attribute__((ms_abi)) void second_pmi(PVOID) { driver.calls = 1000; }

extern HAL_DISPATCH HalDispatchTable;
typedef NTSTATUS (*__attribute__((ms_abi)) set_information)(HAL_SET_INFORMATION_CLASS, ULONG,
                                                            PVOID);

/* As drivers call it. */
static NTSTATUS set_driver(ULONG size, void (*handler)(PVOID) __attribute__((ms_abi)))
{
    const set_information set_it =
        (set_information)(uint64_t)HalDispatchTable.HalSetSystemInformation;
    return set_it(HalProfileSourceInterruptHandler, size, &handler);
}

TEST(hal_overflow, driver_handler,
     "a driver's interrupt handler is called before the status is cleared, in addition to the "
     "owner's; there is one at a time [HC-49]")
{
    const ULONG size = sizeof(PVOID);
    SKIP_WITHOUT_INSTRUCTIONS();
    if (hal_pmi_is_nmi()) {
        CHECK_STATUS(set_driver(size, driver_pmi), STATUS_NOT_SUPPORTED);
        return;
    }
    unsigned ctr = bit_lowest(common_instructions());
    CHECK_STATUS(set_driver(size - 1, driver_pmi), STATUS_INFO_LENGTH_MISMATCH);
    REQUIRE_OK(set_driver(2 * size, driver_pmi)); /* of a larger structure it is the first */
    CHECK_STATUS(set_driver(size, second_pmi), STATUS_DEVICE_BUSY);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        forget_seen();
        driver.calls = 0;
        HANDLE handle = own_counters(cpu_set_one(cpu), PMU_BIT(ctr), first_handler);
        overflow_once(cpu, PMU_BIT(ctr), 1);
        CHECK_EQ(driver.calls, 1);
        CHECK_EQ(driver.irql, PROFILE_LEVEL);
        CHECK_EQ(driver.cpu, cpu);
        CHECK(driver.rip >= KERNEL_VMA);
        CHECK_EQ(driver.status, pmu_of(cpu)->msr.global_status ? PMU_BIT(ctr) : 0);
        free_and_check(handle);
    }
    CHECK_STATUS(set_driver(size, NULL), STATUS_SUCCESS);
    HANDLE handle = own_counters(cpu_set_one(0), PMU_BIT(ctr), first_handler);
    forget_seen();
    overflow_on(0, PMU_BIT(ctr));
    wait_for_overflows(0, 1);
    free_and_check(handle);
    CHECK_EQ(calls(0), 1);
    CHECK(driver.calls == 1); /* not called any more */
    CHECK_STATUS(set_driver(size, driver_pmi), STATUS_SUCCESS);
    CHECK_STATUS(set_driver(size, NULL), STATUS_SUCCESS);
}
