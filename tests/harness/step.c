/* SPDX-License-Identifier: MIT */
#include "tests/harness/step.h"
#include "tests/harness/kernel.h"

#define DR7_OFF 0x400u
#define NEVER 0x7fffffffu
#define DR7_ON 0x401u /* DR0: when its instruction is fetched, in any ring */

void step_on_debug(void);
bool step_trap(struct trap_frame *frame);

/* Of the one CPU that steps. */
static struct {
    const struct step_window *window;
    const struct thread *thread;
    void (*look)(const uint8_t *instruction); /* NULL: none */
    unsigned begin, wanted, at; /* not before; the event's instruction; this one; from 0 */
    bool before, inside;        /* of the window; after it neither */
    bool could;                 /* the event have come at the instruction before */
    bool came;                  /* the event; atomic */
    uint64_t to, rsp;           /* where the window ends, with a higher RSP */
} step;
static uint32_t turn, ended; /* atomic: of the partner */
static void (*partner_function)(void);

/* In a switch the current thread is the next one already. SYSCALL's entry has ring 3's stack. */
static bool is_on_stack(const struct trap_frame *frame)
{
    bool kernels = frame->rsp - (uint64_t)step.thread->stack < KERNEL_STACK_SIZE;
    return !(frame->cs & 3) && (kernels || frame->rsp < USER_END);
}

static bool window_is_over(const struct trap_frame *frame)
{
    return frame->rip == step.to && frame->rsp > step.rsp;
}

/* Of a gate's window the IRETQ, or SYSRET, is the last: what it returns to is not stepped. */
static bool is_last(const struct trap_frame *frame)
{
    const uint8_t *code = (const uint8_t *)frame->rip;
    return frame->rsp == step.rsp && code[0] == 0x48 &&
           (code[1] == 0xcf || (code[1] == 0x0f && code[2] == 0x07));
}

/* Of memory, which no step needs to see: the next stop is where the function returns to. */
static bool passes_over(const struct trap_frame *frame)
{
    if (frame->rip != (uint64_t)memset && frame->rip != (uint64_t)memcpy)
        return false;
    write_dr0(*(const uint64_t *)frame->rsp);
    return true;
}

/* Whether the event comes now, or at the end of this instruction's IRETQ. */
static bool event_comes(const struct trap_frame *frame)
{
    bool can = step.window->event == STEP_NMI ||
               (frame->rflags & RFLAGS_IF && read_cr8() < DISPATCH_LEVEL);
    bool again = can && !step.could && step.at >= step.begin;
    step.could = can;
    return step.at++ >= step.wanted ? can : again;
}

static void send_event(void)
{
    if (step.window->event == STEP_SWITCH) {
        __atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
        CPU_SET_FIELD(reschedule, 1);
        apic_send_self(VECTOR_RESCHEDULE);
    }
}

bool step_trap(struct trap_frame *frame)
{
    if (step.before && frame->rip == (uint64_t)step.window->from && is_on_stack(frame)) {
        step.before = false;
        step.inside = true;
        step.rsp = frame->rsp;
        step.to = frame->rsp < USER_END ? 0 : *(const uint64_t *)frame->rsp;
    }
    frame->rflags |= RFLAGS_RF; /* past the breakpoint */
    /* A switch's POPFQ has cleared TF: this is another thread. */
    if (!(frame->rflags & RFLAGS_TF) && !is_on_stack(frame))
        step.inside = false;
    step.inside = step.inside && !window_is_over(frame);
    if (step.inside && step.look)
        step.look((const uint8_t *)frame->rip);
    bool now = step.inside && event_comes(frame);
    if (step.inside && is_last(frame))
        step.inside = false;
    if (step.inside && !now && !passes_over(frame))
        frame->rflags |= RFLAGS_TF;
    else
        frame->rflags &= ~(uint64_t)RFLAGS_TF;
    if (!now)
        return false;
    step.inside = false;
    step.came = true;
    send_event();
    return step.window->event == STEP_NMI;
}

bool step_came(void) { return step.came; }

static struct table_register kernel_idt;

static void begin_steps(void)
{
    static struct gate gates[256];
    struct table_register mine = { sizeof gates - 1, (uint64_t)gates };
    sidt(&kernel_idt);
    memcpy(gates, (const void *)kernel_idt.base, sizeof gates);
    gate_set(&gates[EXC_DEBUG], (uint64_t)step_on_debug);
    lidt(&mine);
}

static void end_steps(void)
{
    write_dr7(DR7_OFF);
    lidt(&kernel_idt);
}

/* Without a tick, which may switch threads and so come to the window, before all is there. */
static void arm_step(const struct step_window *window, unsigned begin,
                     void (*look)(const uint8_t *instruction))
{
    uint64_t flags = read_flags();
    cli();
    write_dr0((uint64_t)window->from);
    step = (__typeof__(step)){
        .window = window,
        .thread = window->thread ? window->thread : thread_current(),
        .look = look,
        .begin = begin,
        .wanted = begin ? begin + window->left_out : 0,
        .before = true,
        .could = true,
    };
    write_dr7(DR7_ON);
    write_flags(flags);
}

unsigned step_through(const struct step_window *window, void (*scenario)(void *), void *argument)
{
    unsigned n = 0;
    begin_steps();
    for (unsigned begin = 0;; begin = step.at, n++) {
        arm_step(window, begin, NULL);
        scenario(argument);
        if (!step.came)
            break;
    }
    end_steps();
    return n;
}

void step_look(const struct step_window *window, void (*look)(const uint8_t *instruction),
               void (*scenario)(void *), void *argument)
{
    begin_steps();
    arm_step(window, NEVER, look);
    scenario(argument);
    end_steps();
}

static void run_partner(void *)
{
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&turn, __ATOMIC_ACQUIRE)) {
            partner_function();
            __atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
        }
        sched_switch(WrYieldExecution);
    }
}

struct thread *step_partner(void (*function)(void))
{
    partner_function = function;
    turn = ended = 0;
    return team_start(run_partner, NULL, cpu_set_one(cpu_number()), thread_current()->priority);
}

void step_partner_wait(void)
{
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE))
        sched_switch(WrYieldExecution);
}

void step_partner_end(struct thread *partner)
{
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    team_end(partner);
}

/* --- Collisions. --- */

#define LEFT_OUT 47u     /* instructions */
#define LONG_LEFT_OUT 8u /* for a test must end within its time */

static struct {
    const struct collision *row;
    NTSTATUS said[2];
} colliding;

static void call_second(void) { colliding.said[1] = colliding.row->second(); }

/* What both have said is what the row allows. */
static bool is_allowed(const struct collision *row)
{
    bool won[2];
    for (unsigned i = 0; i < 2; i++) {
        won[i] = colliding.said[i] == STATUS_SUCCESS;
        if (!won[i] && (!row->lost[i] || colliding.said[i] != row->lost[i]))
            return false;
    }
    return row->one ? won[0] != won[1] : won[0] || won[1];
}

static void call_both(void *argument)
{
    const struct collision *row = argument;
    step.before = false; /* begin may call the function, too */
    if (row->begin && !CHECK(row->begin()))
        return;
    step.before = true;
    colliding.said[0] = row->first();
    step.before = false;
    step_partner_wait();
    if (!step.came)
        CHECK_STATUS(colliding.said[0], row->alone);
    else if (!CHECK(is_allowed(row)))
        test_note("%s: %x, then %x", row->name, (unsigned)colliding.said[0],
                  (unsigned)colliding.said[1]);
    if (row->end)
        row->end();
}

void step_collide(const struct collision *rows, unsigned count)
{
    for (const struct collision *row = rows; row < rows + count; row++) {
        const struct step_window window = { (const void *)(uint64_t)row->in, STEP_SWITCH,
                                            test_long() ? LONG_LEFT_OUT : LEFT_OUT, NULL };
        colliding.row = row;
        struct thread *partner = step_partner(call_second);
        unsigned n = step_through(&window, call_both, (void *)(uint64_t)row);
        step_partner_end(partner);
        if (!CHECK(n > 1) || test_long())
            test_note("%s: at %u instructions", row->name, n);
    }
}
