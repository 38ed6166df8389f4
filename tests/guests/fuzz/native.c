/* SPDX-License-Identifier: MIT */
/* tests/guests/fuzz/native.h: an INT3 enters, TF steps, and signals come back, on a stack of their
 * own. */
#define _GNU_SOURCE
#include "tests/guests/fuzz/native.h"
#include <asm/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "tests/guests/fuzz/fuzz.h"

enum { STACK = 1 << 18 };
#define TF 0x100

static const int slots[16] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};
static enum { OUTSIDE, ENTERING, INSIDE } where;
static struct native *state;
static bool (*before)(const struct native *s);
static int raised;
static gregset_t host;

static void leave_native(gregset_t g)
{
    memcpy(g, host, sizeof host);
    where = OUTSIDE;
}

static void take_signal(const gregset_t g)
{
    for (unsigned i = 0; i < 16; i++)
        state->r[i] = (uint64_t)g[slots[i]];
    state->rip = (uint64_t)g[REG_RIP];
    state->flags = (uint64_t)g[REG_EFL];
}

static void give_control(gregset_t g)
{
    for (unsigned i = 0; i < 16; i++)
        g[slots[i]] = (greg_t)state->r[i];
    g[REG_RIP] = (greg_t)state->rip;
    g[REG_EFL] = (greg_t)(state->flags | TF);
}

/* A block, or this program, has done what it must not. */
static void lost(int number, uint64_t rip)
{
    printf("signal %d at %lx\n", number, rip);
    FUZZ_CHECK(!"a signal outside of native_run");
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    greg_t *g = u->uc_mcontext.gregs;
    (void)info;
    if (where == OUTSIDE)
        lost(number, (uint64_t)g[REG_RIP]);
    if (where == ENTERING)
        memcpy(host, g, sizeof host);
    else
        take_signal(g);
    if (number != SIGTRAP)
        raised = number;
    if (number != SIGTRAP || !before(state))
        leave_native(g);
    else if (where == ENTERING)
        give_control(g);
    if (where == ENTERING)
        where = INSIDE;
}

static void prepare_stack(void)
{
    static const int numbers[] = { SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE };
    static char below[STACK];
    static const stack_t stack = { .ss_sp = below, .ss_size = STACK };
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
    action.sa_sigaction = on_signal;
    if (sigaltstack(&stack, NULL))
        abort();
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

int native_run(struct native *s, bool (*step)(const struct native *s))
{
    static bool prepared;
    if (!prepared)
        prepare_stack();
    prepared = true;
    state = s;
    before = step;
    raised = 0;
    where = ENTERING;
    asm volatile("int3" : : : "memory");
    return raised;
}

int native_file(uint64_t size)
{
    int file = memfd_create("guest", 0);
    return file < 0 || ftruncate(file, (off_t)size) ? -1 : file;
}

uint64_t native_fs(void)
{
    uint64_t base = 0;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
    return base;
}

void native_set_gs(uint64_t base) { syscall(SYS_arch_prctl, ARCH_SET_GS, base); }
