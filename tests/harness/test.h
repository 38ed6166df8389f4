/* SPDX-License-Identifier: MIT */
/* How a test is written, in both rings. TEST makes a test of the function that follows; there is no
 * list to edit. The meaning is one line for `make list`, with the ids of what it proves in
 * brackets. In tests/ring3 use TEST_USER: the body runs in ring 3, in a process of its own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/nt/nt.h"

struct test {
    const char *group, *name, *meaning;
    void (*function)(void);
    bool ring3;
    /* A test of each counter of a set stands for as many tests (each.c). */
    void (*each)(unsigned ctr);
    uint64_t (*counters)(void);
    unsigned ctr;
};

/* What a test found; each process in ring 3 has its own, which the runner fetches. */
struct test_report {
    uint64_t checks, failures; /* atomic */
    const char *skip;          /* reason, or NULL */
    uint32_t lines;            /* atomic; of the failed test, TEST_LINES_MAX of them printed */
    uint32_t lines_before;     /* ring 3: of them, before the process */
    bool long_run;
};
#define TEST_LINES_MAX 10u

/* A pointer to the record: the linker of each ring sorts them by section. */
#define TEST_RECORD(test_group, test_name, ...)                                                    \
    static const struct test test_record_##test_group##_##test_name = { .group = #test_group,      \
                                                                        .name = #test_name,        \
                                                                        __VA_ARGS__ };             \
    static const struct test *const test_pointer_##test_group##_##test_name                        \
        __attribute__((section(".tests$" #test_group "." #test_name), used)) =                     \
            &test_record_##test_group##_##test_name;
#define TEST_IN(in_ring3, test_group, test_name, test_meaning)                                     \
    static void test_##test_group##_##test_name(void);                                             \
    TEST_RECORD(test_group, test_name, .meaning = test_meaning,                                    \
                .function = test_##test_group##_##test_name, .ring3 = in_ring3)                    \
    static void test_##test_group##_##test_name(void)
#define TEST(test_group, test_name, test_meaning)                                                  \
    TEST_IN(false, test_group, test_name, test_meaning)
#define TEST_USER(test_group, test_name, test_meaning)                                             \
    TEST_IN(true, test_group, test_name, test_meaning)
/* In ring 0: of each counter that the function names; the body has `ctr`. */
#define TEST_EACH(test_group, which, test_meaning)                                                 \
    static void each_##test_group(unsigned ctr);                                                   \
    TEST_RECORD(test_group, each, .meaning = test_meaning, .each = each_##test_group,              \
                .counters = which)                                                                 \
    static void each_##test_group(unsigned ctr)

/* Each check counts. A failed one prints and the test goes on, unless it is a REQUIRE. */
bool test_check(bool ok, const char *file, int line, const char *text);
bool test_check_number(uint64_t found, uint64_t low, uint64_t high, const char *file, int line,
                       const char *text);
bool test_check_status(NTSTATUS found, NTSTATUS wanted, const char *file, int line,
                       const char *text);
bool test_check_range(uint64_t found, uint64_t low, uint64_t high, const char *why,
                      const char *file, int line, const char *text);
/* Whether the command line says `long`: everything as often as the contract wants, which takes
 * minutes; else often enough to find what is plainly wrong. Both rings. */
bool test_long(void);
/* The number N of the command line's word name=N; 0: it is not there. Ring 0. */
uint64_t test_word(const char *name);
/* The number of the word fuzz=, 0: there is none. Ring 0. */
uint64_t test_seed(void);
/* The next of a course of numbers, which is not to begin with 0. Ring 0. */
uint64_t test_random(uint64_t *state);
void test_skip(const char *reason); /* NULL: not after all */
/* Ring 0: called after each failed check, to print what else matters. NULL: nothing. */
extern void (*test_on_failure)(void);
/* Checks that were made elsewhere count here. Ring 0 only. */
void test_adopt(const struct test_report *theirs);
/* A comment line of the test, with "# " in front. */
__attribute__((format(printf, 1, 2))) void test_note(const char *format, ...);

/* Inline, so that a static analyser sees that what holds after a CHECK was checked. */
static inline bool test_checked(bool ok, const char *file, int line, const char *text)
{
    test_check(ok, file, line, text);
    return ok;
}
#define CHECK(condition) test_checked(condition, __FILE__, __LINE__, #condition)
#define CHECK_EQ(found, wanted)                                                                    \
    __extension__({                                                                                \
        uint64_t check_wanted = (uint64_t)(wanted);                                                \
        test_check_number((uint64_t)(found), check_wanted, check_wanted, __FILE__, __LINE__,       \
                          #found);                                                                 \
    })
/* A range needs its reason in a comment; a lower bound of 0 fails, because it proves nothing. */
#define CHECK_RANGE(found, low, high)                                                              \
    test_check_number((uint64_t)(found), low, high, __FILE__, __LINE__, #found)
/* CHECK_RANGE with the reason in the line that a failure prints. */
#define CHECK_BECAUSE(found, low, high, why)                                                       \
    test_check_range((uint64_t)(found), low, high, why, __FILE__, __LINE__, #found)
#define CHECK_STATUS(call, wanted) test_check_status(call, wanted, __FILE__, __LINE__, #call)
#define CHECK_OK(call) test_check_status(call, STATUS_SUCCESS, __FILE__, __LINE__, #call)
#define RETURN_IF(condition)                                                                       \
    do {                                                                                           \
        if (condition)                                                                             \
            return;                                                                                \
    } while (0)
#define REQUIRE(condition) RETURN_IF(!CHECK(condition))
#define REQUIRE_STATUS(call, wanted) RETURN_IF(!CHECK_STATUS(call, wanted))
#define REQUIRE_OK(call) REQUIRE_STATUS(call, STATUS_SUCCESS)
#define SKIP(reason)                                                                               \
    do {                                                                                           \
        test_skip(reason);                                                                         \
        return;                                                                                    \
    } while (0)
#define SKIP_IF(condition, reason)                                                                 \
    do {                                                                                           \
        if (condition)                                                                             \
            SKIP(reason);                                                                          \
    } while (0)
/* Ring 0 only. */
#define SKIP_WITHOUT_PMU() RETURN_IF(test_skip_without_pmu())
/* A PMU, and RDPMC in ring 3. */
#define SKIP_WITHOUT_RDPMC() RETURN_IF(test_skip_without_rdpmc())
#define SKIP_BELOW_CPUS(n) RETURN_IF(test_skip_below_cpus(n))
#define SKIP_WITH_PMU() SKIP_IF(test_has_pmu(), "there is a PMU")
#define SKIP_WITH_ONE_CPU() SKIP_BELOW_CPUS(2)
bool test_has_pmu(void);
bool test_skip_without_pmu(void);
bool test_skip_without_rdpmc(void);
bool test_skip_below_cpus(unsigned count);
/* Moves the calling kernel thread to that CPU, or lets it run anywhere again. A test has a thread
 * of its own and need not come back. */
void test_run_on(unsigned cpu);
void test_run_anywhere(void);
/* For a loop over the CPUs: runs there; after the last one anywhere, and false. */
bool test_run_on_each(unsigned cpu);
