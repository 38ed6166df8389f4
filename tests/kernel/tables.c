/* SPDX-License-Identifier: MIT */
/* Changes of page tables, as other processors see them. */
#include "tests/harness/kernel.h"

#define SOMEWHERE 0x600000000000ul

static struct {
    const uint64_t *pml4;
    uint32_t changed; /* atomic */
} mapped;

#define USERS_MAX 8u

static uint64_t running; /* atomic: how many run with mapped.pml4 */

static void run_with(void *)
{
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    vm_switch(mapped.pml4);
    __atomic_fetch_add(&running, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&mapped.changed, __ATOMIC_ACQUIRE))
        pause();
    vm_switch(vm_kernel_pml4);
    irql_lower(old);
}

static uint64_t calls_of_flush(const uint64_t *pml4)
{
    uint64_t before = trap_counts[VECTOR_CALL];
    vm_flush(pml4);
    return trap_counts[VECTOR_CALL] - before;
}

static uint64_t calls_of_unmap(uint64_t *pml4, uint64_t page)
{
    CHECK(vm_map(pml4, SOMEWHERE, page, 0));
    uint64_t before = trap_counts[VECTOR_CALL];
    CHECK_EQ(vm_unmap(pml4, SOMEWHERE), page);
    return trap_counts[VECTOR_CALL] - before;
}

TEST(vm, flushes_its_users,
     "a change of a process's table interrupts the processors that run with it and no other one, a "
     "change of the kernel's interrupts all")
{
    SKIP_WITH_ONE_CPU();
    struct thread *threads[USERS_MAX];
    uint64_t *page = phys_alloc(1), *pml4 = vm_create();
    unsigned count = cpu_count < USERS_MAX ? cpu_count : USERS_MAX;
    REQUIRE(page && pml4);
    mapped.pml4 = pml4;
    running = mapped.changed = 0;
    test_run_on(0);
    for (unsigned users = 0; users < count; users++) {
        if (users) {
            threads[users] = team_start(run_with, NULL, cpu_set_one(users), THREAD_PRIORITY);
            REQUIRE(threads[users] != NULL);
        }
        CHECK(team_until(&running, users));
        CHECK_EQ(calls_of_flush(pml4), users);
        CHECK_EQ(calls_of_unmap(pml4, virt_to_phys(page)), users);
    }
    CHECK_EQ(calls_of_flush(vm_kernel_pml4), cpu_count - 1);
    __atomic_store_n(&mapped.changed, 1, __ATOMIC_RELEASE);
    for (unsigned users = 1; users < count; users++)
        team_end(threads[users]);
    CHECK_EQ(calls_of_flush(pml4), 0);
    phys_free(page, 1);
    vm_destroy(pml4);
}

#define CHANGES 200u

static uint64_t announced, stale,
    looks; /* atomic: whose page is mapped, at least; what was wrong */

/* Comes and goes: a change meets it with the table, without it, and on the way. */
static void read_changes(void *)
{
    const volatile uint64_t *page = (const volatile uint64_t *)SOMEWHERE;
    while (!__atomic_load_n(&mapped.changed, __ATOMIC_ACQUIRE)) {
        KIRQL old = irql_raise(DISPATCH_LEVEL);
        vm_switch(mapped.pml4);
        for (unsigned i = 0; i < 5; i++) {
            uint64_t least = __atomic_load_n(&announced, __ATOMIC_ACQUIRE);
            if (*page < least)
                __atomic_fetch_add(&stale, 1, __ATOMIC_RELAXED);
            pause();
        }
        vm_switch(vm_kernel_pml4);
        irql_lower(old);
        __atomic_fetch_add(&looks, 1, __ATOMIC_RELEASE);
        pause();
    }
}

TEST(vm, no_flush_is_lost,
     "a page that was flushed is read by no processor, though processors begin and end to run with "
     "its table all the time")
{
    SKIP_WITH_ONE_CPU();
    struct thread *threads[USERS_MAX];
    uint64_t *pages[2] = { phys_alloc(1), phys_alloc(1) }, *pml4 = vm_create();
    unsigned count = cpu_count < USERS_MAX ? cpu_count : USERS_MAX;
    REQUIRE(pages[0] && pages[1] && pml4);
    REQUIRE(vm_map(pml4, SOMEWHERE, virt_to_phys(pages[0]), PTE_NX));
    mapped.pml4 = pml4;
    mapped.changed = 0;
    announced = stale = looks = 0;
    test_run_on(0);
    for (unsigned cpu = 1; cpu < count; cpu++) {
        threads[cpu] = team_start(read_changes, NULL, cpu_set_one(cpu), THREAD_PRIORITY);
        REQUIRE(threads[cpu] != NULL);
    }
    CHECK(team_until(&looks, 1));
    for (uint64_t change = 1; change <= CHANGES; change++) {
        uint64_t *page = pages[change % 2];
        __atomic_store_n(page, change, __ATOMIC_RELAXED);
        CHECK(vm_put(pml4, SOMEWHERE, virt_to_phys(page) | PTE_PRESENT | PTE_NX));
        vm_flush(pml4);
        __atomic_store_n(pages[(change + 1) % 2], 0, __ATOMIC_RELAXED);
        __atomic_store_n(&announced, change, __ATOMIC_RELEASE);
        for (uint64_t i = 0; i < change % 16; i++)
            pause();
    }
    __atomic_store_n(&mapped.changed, 1, __ATOMIC_RELEASE);
    for (unsigned cpu = 1; cpu < count; cpu++)
        team_end(threads[cpu]);
    CHECK_EQ(stale, 0);
    CHECK(looks > count);
    phys_free(pages[(CHANGES + 1) % 2], 1);
    vm_destroy(pml4); /* with the other page */
}
