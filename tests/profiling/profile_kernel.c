/* SPDX-License-Identifier: MIT */
/* Profile objects of a driver in ring 0: processors, rights, and that no sample is lost when two
 * processors count in one bucket. */
#include "tests/harness/lab.h"
#include "tests/harness/peek.h"

#define BASE 0xffffa00000001000 /* kernel space where nothing is */
#define USER_BASE 0x400000u
#define PAGE (VM_WINDOW + 508 * PAGE_SIZE) /* which no thread's slot needs here */

TEST(profile_kernel, everywhere,
     "an affinity of -1 profiles all active processors of the group, no group those of all, and "
     "else each processor those of the affinity alone [PO-21 PO-56]")
{
    ULONG counts = 0, of_first = 0;
    HANDLE profile = profile_made(BASE, 16, 4, &counts, sizeof counts, ProfileTime, ~0ul);
    HANDLE first = profile_made(BASE, 16, 4, &of_first, sizeof of_first, ProfileTime, 1);
    profile_start(profile);
    profile_start(first);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        sample_at(BASE, ProfileTime);
        CHECK_EQ(counts, cpu < cpus_of_group() ? cpu + 1 : cpus_of_group());
        CHECK_EQ(of_first, 1);
    }
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    CHECK_STATUS(NtClose(first), STATUS_SUCCESS);
    REQUIRE_OK(NtCreateProfileEx(&profile, NULL, (PVOID)BASE, 16, 4, &counts, sizeof counts,
                                 ProfileTime, 0, NULL)); /* no group is all of them */
    profile_start(profile);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        test_run_on(cpu);
        sample_at(BASE, ProfileTime);
        CHECK_EQ(counts, cpus_of_group() + cpu + 1);
    }
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    for (unsigned cpu = 0; hal_source_supported(SOURCE) && cpu < cpus_of_group(); cpu++) {
        KAFFINITY where = cpu ? PMU_BIT(cpu) : ~0ul;
        profile = profile_made(BASE, 16, 4, &counts, sizeof counts, SOURCE, where);
        profile_start(profile);
        for (unsigned other = 0; other < cpu_count; other++)
            CHECK_EQ(profile_samples(other, SOURCE), cpu ? other == cpu : other < cpus_of_group());
        CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    }
}

TEST(profile_kernel, no_privilege,
     "ring 0 needs no privilege to profile all processes' user space [PO-29]")
{
    ULONG counts = 0;
    HANDLE profile = profile_made(USER_BASE, 16, 4, &counts, sizeof counts, ProfileTime, ~0ul);
    REQUIRE(profile != NULL);
    profile_start(profile);
    sample_at(USER_BASE, ProfileTime);
    CHECK_EQ(counts, 1);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
}

/* --- Another processor counts between the load and the store of a bucket. --- */

static ULONG *bucket; /* by the direct map */
static uint64_t *entry;
static unsigned interrupted;

static uint64_t *page_entry_of(uint64_t *table, uint64_t address)
{
    for (unsigned shift = 39; shift > 12; shift -= 9)
        table = phys_to_virt(table[address >> shift & 511] & PTE_ADDRESS);
    return &table[address >> 12 & 511];
}

/* Handles the fault of the store into the read-only page: does what another processor would do,
 * then continues. */
static bool count_meanwhile(uint64_t address)
{
    if ((address & ~(uint64_t)(PAGE_SIZE - 1)) != PAGE)
        return false;
    ++*bucket;
    interrupted++;
    *entry |= PTE_WRITE;
    invlpg(PAGE);
    return true;
}

static void sample_interrupted(void)
{
    KIRQL old = irql_raise(PROFILE_LEVEL);
    *entry &= ~(uint64_t)PTE_WRITE;
    invlpg(PAGE);
    interrupted = 0;
    lab_catch();
    lab_resolve(count_meanwhile);
    sample_at(BASE, ProfileTime);
    lab_release();
    irql_lower(old);
    CHECK_EQ(interrupted, 1);
}

TEST(profile_kernel, not_lost,
     "a sample on another processor between the load and the store of a bucket is not lost "
     "[PO-59]")
{
    bucket = phys_alloc(1);
    REQUIRE(bucket && vm_map(vm_kernel_pml4, PAGE, virt_to_phys(bucket), PTE_WRITE | PTE_NX));
    entry = page_entry_of(vm_kernel_pml4, PAGE);
    HANDLE profile = profile_made(BASE, 16, 4, (void *)PAGE, sizeof *bucket, ProfileTime, ~0ul);
    profile_start(profile);
    for (ULONG before = 1; before < 1000; before *= 3) {
        *bucket = before;
        sample_interrupted();
        CHECK_EQ(*bucket, before + 2);
    }
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    vm_unmap(vm_kernel_pml4, PAGE);
    phys_free(bucket, 1);
}

/* --- A buffer of ring 3 stays locked during the profile. --- */

static void *physical_of(const struct process *process, uint64_t address)
{
    uint64_t found = vm_entry(process->pml4, address);
    uint8_t *its_page = phys_to_virt(found & PTE_ADDRESS);
    return CHECK(found) ? its_page + address % PAGE_SIZE : NULL;
}

TEST(profile_kernel, locked,
     "a page that ring 3 frees during the profile stays allocated until the stop [PO-62]")
{
    struct runner r = start_on(user_profile_buffer, BASE, SMP_ALL);
    REQUIRE(r.thread && peek_wait(r.process, &user_state, 1));
    uint64_t *go_on = physical_of(r.process, (uint64_t)&user_reads);
    REQUIRE(go_on);
    size_t before = phys_free_pages();
    __atomic_store_n(go_on, 1, __ATOMIC_RELEASE);
    peek_wait(r.process, &user_state, 2);
    CHECK_EQ(phys_free_pages(), before);
    __atomic_store_n(go_on, 2, __ATOMIC_RELEASE);
    peek_wait(r.process, &user_state, 3);
    CHECK_EQ(phys_free_pages(), before + 2); /* and the list of the buffer's pages */
    __atomic_store_n(go_on, 3, __ATOMIC_RELEASE);
    user_finish(r.process, r.thread);
}
