/* SPDX-License-Identifier: MIT */
/* One run of a snippet: page tables, gates and registers of its own, and back again whatever it
 * does. */
#include "kernel/ke/fpu.h"
#include "tests/cost/bench.h"
#include "tests/harness/kernel.h"

#define FAULT_STACK 2 /* IST: the double fault's; no handler here can fault */
#define TIMER_ONLY 12 /* CR8: the timer comes through */
#define ALL_OFF 15

/* bench_enter.asm */
struct registers {
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t rip, cs, rflags, rsp, ss;
};
_Static_assert(offsetof(struct registers, cs) == 16 * 8, "bench_enter.asm");
extern void bench_enter(const struct registers *registers);
extern const uint8_t bench_stubs[32][16];
extern void bench_on_interrupt(void), bench_on_nmi(void);
extern struct bench_end bench_ended;

static struct gate gates[256];
static uint64_t deadline;

/* From bench_enter.asm; GS may be ring 3's. */
bool bench_tick(void);
bool bench_tick(void)
{
    apic_eoi();
    return (int64_t)(rdtsc() - deadline) > 0;
}

/* The NMI stays the kernel's, unless it guards a trial. */
static void set_gates(const struct table_register *kernel, bool guarded)
{
    memcpy(gates, (const void *)kernel->base, sizeof gates);
    for (unsigned v = 0; v < 256; v++) {
        if (v == EXC_NMI)
            continue;
        gate_set(&gates[v], v < 32 ? (uint64_t)bench_stubs[v] : (uint64_t)bench_on_interrupt);
        gates[v].ist = FAULT_STACK;
    }
    if (guarded)
        gate_set(&gates[EXC_NMI], (uint64_t)bench_on_nmi);
}

static uint64_t middle(unsigned area)
{
    return BENCH_AREAS + area * BENCH_AREA_STEP + BENCH_AREA_PAGES / 2 * (uint64_t)PAGE_SIZE;
}

static bool stack_is_sound(uint64_t rsp)
{
    return rsp >= BENCH_AREAS && rsp <= BENCH_AREAS + BENCH_AREA_PAGES * (uint64_t)PAGE_SIZE;
}

static struct registers start_of(const struct bench *b, unsigned half, bool interrupts)
{
    return (struct registers){ .rsp = middle(0),
                               .rbp = middle(1),
                               .rsi = middle(2),
                               .rdi = middle(3),
                               .r14 = middle(4),
                               .rip = BENCH_CODE + b->h.half[half].entry,
                               .cs = b->h.ring ? SEL_USER_CS : SEL_KERNEL_CS,
                               .ss = b->h.ring ? SEL_USER_SS : SEL_KERNEL_SS,
                               .rflags = 2u /* always set */ | (interrupts ? RFLAGS_IF : 0) };
}

/* x87, SSE and AVX as a new thread has them; in ring 0 nobody else uses them. */
static void reset_fpu(void)
{
    static uint8_t area[FPU_AREA_MAX] __attribute__((aligned(64)));
    fpu_reset(area);
    fpu_restore(area);
}

/* One gate where there is a global control, else one for each counter. */
static void set_counter_gates(const struct bench *b, uint64_t counters)
{
    struct bench_gate *g = b->data->gates;
    memset(b->data, 0, sizeof *b->data);
    for (; counters && g < b->data->gates + BENCH_GATES; counters &= counters - 1) {
        struct pmu_gate one = pmu_gate((unsigned)__builtin_ctzll(counters));
        if (g > b->data->gates && g[-1].msr == one.msr) {
            g[-1].on |= one.on;
            continue;
        }
        *g++ = (struct bench_gate){ .msr = one.msr, .on = one.on, .off = one.off };
    }
}

/* A trial's second guard, for a snippet that iterations interrupts off: a counter of cycles whose
 * overflow is an NMI. Returns it as a mask; 0: there is none. */
static uint64_t start_guard(uint64_t limit)
{
    uint64_t able = pmu_counters_for(pmu_here(), PMU_CYCLES);
    if (!able || boot_safe())
        return 0;
    unsigned ctr = (unsigned)__builtin_ctzll(able);
    uint64_t most = pmu_max_period(pmu_here(), ctr), period = limit < most ? limit : most;
    uint32_t flags = PMU_USER | PMU_KERNEL | PMU_INTERRUPT;
    pmu_program(ctr, pmu_select(pmu_here(), PMU_CYCLES, flags),
                -period & pmu_mask(pmu_here(), ctr));
    apic_write_pmi_lvt(APIC_LVT_NMI);
    pmu_start(PMU_BIT(ctr));
    return PMU_BIT(ctr);
}

static void stop_guard(uint64_t guard)
{
    if (!guard)
        return;
    pmu_stop(guard);
    pmu_reset();
    hal_pmi_init_cpu();
}

/* What the snippet may have changed that the kernel needs is put back before anything uses it. */
static void enter_snippet(const struct registers *registers)
{
    uint64_t gs = rdmsr(MSR_GS_BASE), kernel_gs = rdmsr(MSR_KERNEL_GS_BASE), efer = rdmsr(MSR_EFER);
    wrmsr(MSR_EFER, efer & ~(uint64_t)EFER_SCE); /* SYSCALL is #UD: the kernel's stack is in use */
    bench_enter(registers);
    wrmsr(MSR_GS_BASE, gs);
    wrmsr(MSR_KERNEL_GS_BASE, kernel_gs);
    wrmsr(MSR_EFER, efer);
}

static void run_half(const struct bench *b, uint64_t counters, bool guarded,
                     const struct registers *registers)
{
    struct table_register kernel, mine = { sizeof gates - 1, (uint64_t)gates };
    uint64_t cr8 = read_cr8();
    sidt(&kernel);
    set_gates(&kernel, guarded);
    vm_switch(b->pml4);
    write_cr8(registers->rflags & RFLAGS_IF ? TIMER_ONLY : ALL_OFF);
    lidt(&mine);
    if (b->h.ring && counters)
        pmu_start(counters);
    enter_snippet(registers);
    if (b->h.ring && counters)
        pmu_stop(counters);
    bench_ended.address = bench_ended.vector == EXC_PAGE_FAULT ? read_cr2() : 0;
    lidt(&kernel);
    write_cr8(cr8);
    vm_switch(vm_kernel_pml4);
}

bool bench_execute(const struct bench *b, unsigned half, uint64_t counters, bool trial,
                   uint64_t limit, struct bench_end *end)
{
    struct registers registers = start_of(b, half, trial);
    bool were_on = read_flags() & RFLAGS_IF;
    cli();
    reset_fpu();
    set_counter_gates(b, b->h.ring ? 0 : counters);
    deadline = rdtsc() + limit;
    uint64_t guard = trial ? start_guard(limit) : 0;
    run_half(b, counters, guard, &registers);
    stop_guard(guard);
    *end = bench_ended;
    if (were_on)
        sti();
    return end->vector == EXC_BREAKPOINT && end->rip == BENCH_CODE + b->h.half[half].stop &&
           stack_is_sound(end->rsp);
}
