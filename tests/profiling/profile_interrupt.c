/* SPDX-License-Identifier: MIT */
/* KeProfileInterruptWithSource: the bucket of a sample, and that nothing else changes. The
 * objects are of ProfileTime and of addresses where no code runs, so that only these tests'
 * samples are counted.
 *
 * Source: PO-50 to PO-60 of tests/contract.md. */
#include "kernel/ke/object.h"
#include "tests/harness/kernel.h"

#define BASE 0xffffa00000001000 /* kernel space where nothing is */
#define BUCKETS 16
#define CANARY 0xc5c5c5c5

/* Two more elements than the object has buckets, on either side. */
static ULONG memory[BUCKETS + 4];
static ULONG *const buffer = memory + 2;

static void fill_histogram(void)
{
    for (unsigned i = 0; i < BUCKETS + 4; i++)
        memory[i] = CANARY;
    memset(buffer, 0, BUCKETS * sizeof *buffer);
}

static uint64_t sum(void)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        total += buffer[i];
    CHECK(memory[0] == CANARY && memory[1] == CANARY && buffer[BUCKETS] == CANARY &&
          buffer[BUCKETS + 1] == CANARY);
    return total;
}

/* 16 buckets of 16 bytes; BufferSize is two elements larger. */
static HANDLE usual(void)
{
    fill_histogram();
    return profile_made(BASE, 16 * BUCKETS, 4, buffer, sizeof memory - 2 * sizeof *memory,
                        ProfileTime, ~0ul);
}

TEST(profile_interrupt, when_not_started,
     "without an object, before the start, after the stop and for another source nothing is "
     "counted; for time no counter is needed [HC-46 PO-34 PO-46 PO-47 PO-55 PO-73]")
{
    fill_histogram();
    CHECK_EQ(profiles_started(), 0);
    sample_at(BASE, ProfileTime);
    CHECK_EQ(sum(), 0);
    HANDLE profile = usual();
    sample_at(BASE, ProfileTime);
    CHECK_EQ(sum(), 0);
    profile_start(profile);
    CHECK_EQ(hal_counters_owned(), 0);
    sample_at(BASE, ProfileTotalIssues);
    sample_at(BASE, (KPROFILE_SOURCE)-1);
    CHECK_EQ(sum(), 0);
    sample_at(BASE, ProfileTime);
    CHECK_EQ(buffer[0], 1);
    profile_stop(profile);
    sample_at(BASE, ProfileTime);
    CHECK_EQ(sum(), 1);
    profile_start(profile);
    sample_at(BASE, ProfileTime);
    CHECK_EQ(buffer[0], 2);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS); /* stops it */
    CHECK_EQ(profiles_started(), 0);
    sample_at(BASE, ProfileTime);
    profile = profile_made(BASE, 16 * BUCKETS, 4, buffer, 4 * BUCKETS, ProfileTime, ~0ul);
    CHECK_EQ(buffer[0], 2);
    CHECK_EQ(sum(), 2); /* what it finds there stays */
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
}

TEST(profile_interrupt, saturates, "a bucket at its highest value keeps it [PO-60]")
{
    HANDLE profile = usual();
    buffer[3] = 0xfffffffe;
    profile_start(profile);
    for (unsigned i = 0; i < 3; i++)
        sample_at(BASE + 48, ProfileTime);
    CHECK_EQ(buffer[3], 0xffffffff);
    CHECK_EQ(buffer[2] + buffer[4], 0);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
}

static void sample_here(void *) { sample_at(BASE + 16, ProfileTime); }

TEST(profile_interrupt, inside_handler,
     "a sample belongs to the interrupted address of its trap frame, also inside another "
     "interrupt's handler [PO-74]")
{
    ULONG all = 0, loop = 0;
    HANDLE profile = usual();
    profile_start(profile);
    smp_call(SMP_ALL, sample_here, NULL); /* in the IPI of every other processor */
    CHECK_EQ(buffer[1], cpus_of_group());
    CHECK_EQ(sum(), cpus_of_group());
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);

    /* Real samples: the timer interrupts the loop, not its own handler. */
    test_run_on(0);
    profile = profile_made((uint64_t)profile_loop_start,
                           (uint64_t)(profile_loop_end - profile_loop_start), 6, &loop, sizeof loop,
                           ProfileTime, 1);
    HANDLE kernel = profile_made(KERNEL_VMA, 0x7fffffff, 31, &all, sizeof all, ProfileTime, 1);
    profile_start(profile);
    profile_start(kernel);
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    ULONG before = all - loop;
    for (unsigned i = 0; i < 10000 && loop < 10; i++)
        profile_loop(10000); /* long against the look, which waits where races are looked for */
    ULONG outside = all - loop - before;
    irql_lower(old);
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    CHECK_STATUS(NtClose(kernel), STATUS_SUCCESS);
    test_run_anywhere();
    CHECK(loop >= 10);
    CHECK(outside <= 2); /* the test's own few instructions around the loop */
}

/* --- One process. --- */

/* Makes a sample in a kernel thread that is assigned to the process meanwhile. */
static void sample_as(struct process *process)
{
    struct thread *me = thread_current();
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    me->process = process;
    sample_at(BASE, ProfileTime);
    me->process = NULL;
    irql_lower(old);
}

TEST(profile_interrupt, process,
     "an object of a process counts samples of that process only, an object without one all "
     "samples, of a region that both have, too [PO-57 PO-58]")
{
    struct process *a = user_process(), *b = user_process();
    HANDLE of_a = NULL, profile = NULL, all = usual();
    ULONG counts[1] = { 0 };
    REQUIRE(a && b);
    CHECK_STATUS(handle_create(&a->object, PROCESS_QUERY_INFORMATION, &of_a), STATUS_SUCCESS);
    CHECK_OK(NtCreateProfile(&profile, of_a, (PVOID)BASE, 16, 4, counts, sizeof counts, ProfileTime,
                             ~0ul));
    profile_start(profile);
    profile_start(all);
    sample_as(b);
    CHECK_EQ(counts[0], 0);
    sample_as(a);
    CHECK_EQ(counts[0], 1);
    sample_at(BASE, ProfileTime);
    CHECK_EQ(counts[0], 1);
    CHECK_EQ(buffer[0], 3);
    CHECK_STATUS(NtClose(of_a), STATUS_SUCCESS);
    object_release(&a->object);
    object_release(&b->object);
    sample_at(BASE, ProfileTime); /* the object keeps the process */
    CHECK_STATUS(NtClose(profile), STATUS_SUCCESS);
    CHECK_STATUS(NtClose(all), STATUS_SUCCESS);
}

TEST(profile_interrupt, process_ends,
     "the end of the process that owns the handle stops the object [PO-49]")
{
    CHECK_STATUS(user_run(user_profile_left, 0), STATUS_SUCCESS);
    CHECK_EQ(profiles_started(), 0);
}

TEST(profile_interrupt, restricted, "a restricted process cannot profile kernel space [PO-31]")
{
    struct process *process = user_process();
    REQUIRE(process);
    process->restricted = true;
    user_finish(process, user_start(process, user_profile_restricted, 0));
}

/* --- All small combinations, between guard pages. --- */

#define GUARDED                                                                                    \
    (VM_WINDOW + 510 * PAGE_SIZE) /* the window's last pages, which no thread uses in this test */
#define SIZES 24
#define SIZES_BUFFER 28
#define LOOKED_AT 128u /* bytes at the page's end, of which the buffer is a part */

struct combination {
    uint64_t base, size;
    ULONG log2, buffer_size;
};

static uint64_t buckets_of(const struct combination *c)
{
    return c->size / (1ul << c->log2) + (c->size % (1ul << c->log2) != 0);
}

/* Every address from before the region to after it, and some that are far away. */
static void sample_around(const struct combination *c)
{
    const uint64_t away[] = { 0, ~0ul, c->base - PAGE_SIZE, c->base ^ 1ul << 63,
                              c->base + (1ul << 36) };
    for (unsigned i = 0; i < ARRAY_SIZE(away); i++)
        sample_at(away[i], ProfileTime);
    for (uint64_t a = c->base - 5; a != c->base + c->size + 5; a++)
        sample_at(a, ProfileTime);
}

static bool expected_counts(const struct combination *c, const ULONG *counts, const uint8_t *page)
{
    const uint64_t offset = (uint64_t)counts - (uint64_t)page;
    uint64_t buckets = buckets_of(c);
    for (uint64_t i = 0; i < buckets; i++) {
        uint64_t first = i << c->log2, last = (i + 1) << c->log2;
        if (counts[i] != (last < c->size ? last : c->size) - first)
            return false;
    }
    for (unsigned i = PAGE_SIZE - LOOKED_AT; i < PAGE_SIZE; i++)
        if ((i < offset || i >= offset + 4 * buckets) && page[i] != 0xc5)
            return false;
    return true;
}

/* The buffer ends at the end of the page; the next page is not mapped. */
static void try(uint8_t *page, const struct combination *c)
{
    HANDLE profile = NULL;
    unsigned offset = (PAGE_SIZE - c->buffer_size) & ~3u;
    bool fits = c->log2 > 31 || c->buffer_size / 4 >= buckets_of(c);
    NTSTATUS wanted = !c->buffer_size               ? STATUS_INVALID_PARAMETER_7
                      : c->log2 < 2 || c->log2 > 31 ? STATUS_INVALID_PARAMETER
                      : !fits                       ? STATUS_BUFFER_TOO_SMALL
                                                    : STATUS_SUCCESS;
    memset(page + PAGE_SIZE - LOOKED_AT, 0xc5, LOOKED_AT);
    NTSTATUS status =
        NtCreateProfile(&profile, NULL, (PVOID)c->base, c->size, c->log2,
                        (PULONG)(void *)(page + offset), c->buffer_size, ProfileTime, ~0ul);
    if (status != wanted)
        CHECK_STATUS(status, wanted);
    if (NT_SUCCESS(status) && status != wanted)
        NtClose(profile);
    if (!NT_SUCCESS(status) || status != wanted)
        return;
    memset(page + offset, 0, 4 * buckets_of(c));
    NtStartProfile(profile);
    sample_around(c);
    NtClose(profile);
    if (!expected_counts(c, (const ULONG *)(const void *)(page + offset), page)) {
        test_note("size %lu, log2 %u, buffer %u", c->size, c->log2, c->buffer_size);
        CHECK(!"counts and nothing else");
    }
}

TEST(profile_interrupt, small_combinations,
     "of all small sizes of regions, buckets and buffers each that is wrong is refused, in order; "
     "else each address of the region, and no other, counts in its bucket, and nothing beside the "
     "buffer is written [PO-01 PO-02 PO-03 PO-04 PO-05 PO-06 PO-07 PO-50 PO-51 PO-52 PO-53 PO-54]")
{
    static const ULONG log2s[] = { 0, 1, 2, 3, 4, 5, 31, 32, 0xffffffff };
    void *page = phys_alloc(1);
    unsigned tried = 0, step = test_long() ? 1 : 5; /* which meets every remainder of a bucket */
    REQUIRE(page && vm_map(vm_kernel_pml4, GUARDED, virt_to_phys(page), PTE_WRITE | PTE_NX));
    for (uint64_t size = 0; size < SIZES; size += step)
        for (unsigned i = 0; i < ARRAY_SIZE(log2s); i++)
            for (ULONG buffer_size = 0; buffer_size < SIZES_BUFFER; buffer_size++, tried++)
                try((uint8_t *)GUARDED, &(struct combination){ BASE, size, log2s[i], buffer_size });
    CHECK_EQ(tried, (SIZES + step - 1) / step * ARRAY_SIZE(log2s) * SIZES_BUFFER);
    vm_unmap(vm_kernel_pml4, GUARDED);
    phys_free(page, 1);
}
