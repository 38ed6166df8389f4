/* SPDX-License-Identifier: MIT */
/* Where a process's ranges of addresses lie, and what is left for the kernel. */
#include "kernel/ke/memory.h"
#include "tests/harness/kernel.h"

#define FLAGS (PTE_PRESENT | PTE_WRITE | PTE_NX)
#define ANYWHERE 0
#define LARGE (1ul << 32)
#define SPARE 128                     /* pages that are the kernel's */
#define MOST (LARGE / PAGE_SIZE / 64) /* pages */

static uint64_t reserved(struct process *process, uint64_t base, uint64_t size)
{
    CHECK_OK(memory_reserve(process, &base, size, REGION_PRIVATE, PAGE_READWRITE));
    return base;
}

TEST(memory, ranges,
     "after each range that the kernel places there is a gap; ranges that a program places may be "
     "adjacent")
{
    struct process *process = user_process();
    REQUIRE(process != NULL);
    uint64_t size = PAGE_SIZE, first = reserved(process, ANYWHERE, size),
             second = reserved(process, ANYWHERE, size), wanted = 1ul << 40;
    CHECK_EQ(second - first, 2 * MEMORY_GRANULARITY);
    CHECK_EQ(reserved(process, wanted, size), wanted);
    CHECK_EQ(reserved(process, wanted - size, size), wanted - size);
    CHECK_EQ(reserved(process, wanted + size, size), wanted + size);
    object_release(&process->object);
}

TEST(memory, spare,
     "an allocation that would take the kernel's last pages is refused before any of it is made")
{
    struct process *process = user_process();
    REQUIRE(process != NULL);
    uint64_t base = reserved(process, ANYWHERE, LARGE), size = phys_free_pages() * PAGE_SIZE;
    mutex_acquire(&process->memory.mutex);
    uint64_t before = phys_free_pages();
    CHECK_STATUS(memory_commit_locked(process, base, base + size - 64 * PAGE_SIZE, FLAGS),
                 STATUS_NO_MEMORY);
    CHECK_EQ(phys_free_pages(), before);
    mutex_release(&process->memory.mutex);
    object_release(&process->object);
}

TEST(
    memory, last,
    "where page tables take what was left for pages, an allocation ends with STATUS_NO_MEMORY, and "
    "the kernel has its last pages still")
{
    SKIP_IF(phys_free_pages() > MOST, "there are more than 64 MB of memory");
    struct process *process = user_process();
    REQUIRE(process != NULL);
    uint64_t base = reserved(process, ANYWHERE, LARGE);
    mutex_acquire(&process->memory.mutex);
    uint64_t before = phys_free_pages(), size = (before - SPARE) * PAGE_SIZE;
    CHECK_STATUS(memory_commit_locked(process, base, base + size, FLAGS), STATUS_NO_MEMORY);
    uint64_t tables = size / PAGE_SIZE / 512 + 3; /* which stay */
    CHECK_RANGE(phys_free_pages(), before - tables, before);
    mutex_release(&process->memory.mutex);
    object_release(&process->object);
    CHECK(phys_free_pages() >= before);
}
