/* SPDX-License-Identifier: MIT */
/* The ways into ring 0: which flags of ring 3 come along. Ring 3's half: ring3/entry.c. */
#include "tests/harness/peek.h"

#define FLAG_DF (1u << 10)
#define FLAG_NT (1u << 14)

extern void syscall_entry(void);
extern void user_spin_with_flags(uint64_t unused);
extern void user_half_syscall(uint64_t entry);
extern uint64_t user_spinning;

static void note_flags(void *flags) { *(uint64_t *)flags = read_flags(); }

TEST(entry, interrupts, "DF and AC that ring 3 set are clear in an interrupt from there")
{
    uint64_t flags = 0;
    SKIP_WITH_ONE_CPU();
    test_run_on(0);
    for (unsigned cpu = 1; cpu < cpu_count; cpu++) {
        struct process *process = user_process();
        REQUIRE(process != NULL);
        struct thread *thread =
            user_thread("spinner", process, (uint64_t)user_spin_with_flags, 0, cpu_set_one(cpu));
        if (CHECK(thread != NULL)) {
            while (!peek(process, &user_spinning))
                sched_switch(WrYieldExecution), pause();
            for (unsigned i = 0; i < 20; i++) {
                smp_call(cpu_set_one(cpu), note_flags, &flags);
                CHECK_EQ(flags & (FLAG_DF | RFLAGS_AC | FLAG_NT), 0);
            }
            thread_terminate(thread, STATUS_SUCCESS);
        }
        user_finish(process, thread);
    }
}

TEST(entry, half_syscalls,
     "a jump of ring 3 to the kernel's SYSCALL entry is one system call, and sets no flag that "
     "ring 3 may not set")
{
    CHECK_OK(user_run(user_half_syscall, (uint64_t)syscall_entry));
}
