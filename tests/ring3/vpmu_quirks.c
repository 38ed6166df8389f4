/* SPDX-License-Identifier: MIT */
/* For tests/vpmu/vpmu_quirks_count.c and vpmu_questions.c. */
#include "tests/harness/questions.h"
#include "tests/ring3/helpers.h"
#include "tests/ring3/work.h"

#define USER_QUIRK_TRIES 20u
#define FLAG_TF 0x100u

extern uint64_t user_quirk_counts[2];
uint64_t user_quirk_counts[2];
void user_quirk_traps(uint64_t selector);
void user_questions(uint64_t argument);

/* Executes as many instructions whatever the flags are. */
static __attribute__((noinline)) uint64_t stretch(uint32_t selector, uint64_t flags)
{
    uint64_t start = read_exactly(selector);
    asm volatile("pushfq\norq %0,(%%rsp)\npopfq\ncall work_10\npushfq\nandq $~0x100,(%%rsp)\npopfq"
                 :
                 : "r"(flags)
                 : "rax", "rcx", "rdx", "memory", "cc");
    return read_exactly(selector) - start;
}

void user_quirk_traps(uint64_t selector)
{
    HANDLE profile = NULL;
    if (!CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), 0, 1, &profile), ERROR_SUCCESS))
        return;
    for (unsigned with = 0; with < 2; with++) {
        user_quirk_counts[with] = ~UINT64_C(0);
        for (unsigned i = 0; i < USER_QUIRK_TRIES; i++) {
            uint64_t found = stretch((uint32_t)selector, with ? FLAG_TF : 0);
            user_quirk_counts[with] =
                found < user_quirk_counts[with] ? found : user_quirk_counts[with];
        }
    }
    ring3_disable(profile);
}

void user_questions(uint64_t argument)
{
    HANDLE profile = NULL;
    if (!CHECK_EQ(EnableThreadProfiling(GetCurrentThread(), 0, 1, &profile), ERROR_SUCCESS))
        return;
    struct questions q = questions_ask((uint32_t)argument);
    CHECK_EQ(q.answers[1], q.answers[0]);
    CHECK_EQ(q.exact[1], q.exact[0]);
    CHECK(q.lacking[0] <= argument >> 32);
    CHECK(q.lacking[1] <= argument >> 32);
    ring3_disable(profile);
}
