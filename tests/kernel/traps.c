/* SPDX-License-Identifier: MIT */
/* Exceptions, NMI, page protection and copies, from ring 0. Ring 3's exceptions are in
 * exceptions.c. */
#include "kernel/base/panic.h"
#include "kernel/ke/copy.h"
#include "kernel/ring3_run.h"
#include "tests/harness/kernel.h"

extern char text_start[], text_end[], rodata_end[], image_end[];

#define NON_CANONICAL 0x8000000000000000ul

static void check_symbol(uint64_t address, const char *name, uint32_t offset)
{
    uint32_t at = 1;
    bool named = CHECK(!strcmp(symbol_of(address, &at), name));
    if (!CHECK_EQ(at, offset) || !named)
        test_note("%lx is %s + %x", address, symbol_of(address, &at), at);
}

TEST(traps, symbols,
     "an address is named by the function that begins there or last before it, below all by none")
{
    uint64_t begin = (uint64_t)symbol_of;
    check_symbol(begin, "symbol_of", 0);
    check_symbol(begin + 1, "symbol_of", 1);
    uint32_t offset = 0;
    CHECK(strcmp(symbol_of(begin - 1, &offset), "symbol_of"));
    check_symbol(begin - 1 - offset, symbol_of(begin - 1, &offset), 0);
    check_symbol(0, "?", 0);
}

/* Of two bytes each, by which ring 0 raises an exception; its vector, 0: it went on after it. */
static uint64_t undefined(void)
{
    uint64_t vector = 0;
    asm volatile("1: ud2\n2:\n" FIXUP("1b", "2b") : "+a"(vector));
    return vector;
}

static uint64_t unmapped(void)
{
    uint64_t vector = 0;
    asm volatile("1: movb (%[at]),%%al\n2:\n" FIXUP("1b", "2b") : "+a"(vector) : [at] "S"(NULL));
    return vector;
}

TEST(traps, measured_alone,
     "the handlers that measure what ring 3's exceptions add to counts skip no exception of ring 0")
{
    static struct gate gates[256];
    struct table_register kernel, mine = { sizeof gates - 1, (uint64_t)gates };
    KIRQL old = irql_raise(IPI_LEVEL);
    sidt(&kernel);
    ring3_set_gates(gates, &kernel);
    lidt(&mine);
    uint64_t found[] = { undefined(), unmapped() };
    lidt(&kernel);
    irql_lower(old);
    CHECK_EQ(found[0], EXC_INVALID_OPCODE);
    CHECK_EQ(found[1], EXC_PAGE_FAULT);
}

TEST(vm, write_xor_execute,
     "no kernel page is both writable and executable, in the image and its direct map")
{
    SKIP_IF(!cpu_features.nx, "the CPU has no NX");
    unsigned wrong = 0, executable = 0;
    for (uint64_t a = (uint64_t)text_start; a < (uint64_t)image_end; a += PAGE_SIZE) {
        uint64_t image = vm_entry(vm_kernel_pml4, a),
                 direct = vm_entry(vm_kernel_pml4, a - KERNEL_VMA + DIRECT_MAP);
        bool is_text = a < (uint64_t)text_end;
        wrong += !image || !direct || !(direct & PTE_NX) || !!(image & PTE_NX) == is_text;
        wrong += (a < (uint64_t)rodata_end) == !!((image | direct) & PTE_WRITE);
        executable += !(image & PTE_NX);
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(executable, (uint64_t)(text_end - text_start) / PAGE_SIZE);
}

/* Of each large page from 3 GB on that is all memory by the loader's map. */
TEST(vm, memory_cached,
     "memory is cached between 3 and 4 GB too, and what is not memory there is not; no page of a "
     "large page that is partly memory is handed out")
{
    for (uint64_t p = VM_DEVICES; p < 1ul << 32; p += 2ul << 20) {
        const uint64_t *table = vm_kernel_pml4;
        for (unsigned shift = 39; shift > 21; shift -= 9)
            table = phys_to_virt(table[(DIRECT_MAP + p) >> shift & 511] & PTE_ADDRESS);
        uint64_t entry = table[(DIRECT_MAP + p) >> 21 & 511];
        if (entry & PTE_LARGE && !CHECK_EQ(!(entry & PTE_UNCACHED), phys_is_memory(p, 2ul << 20)))
            break;
    }
    void *page = phys_alloc(1);
    REQUIRE(page != NULL);
    CHECK(virt_to_phys(page) < VM_DEVICES ||
          phys_is_memory(virt_to_phys(page) & ~((2ul << 20) - 1), 2ul << 20));
    phys_free(page, 1);
}

TEST(traps, stray_nmi, "an NMI that nobody claims is counted by the CPU that takes it")
{
    SKIP_IF(boot_safe(), "safe: no NMI");
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        cli(); /* no tick: what this NMI adds is taken back before a line speaks of it */
        struct cpu *self = cpu_current();
        uint64_t before = self->stray_nmis;
        apic_send_nmi(self->apic_id);
        for (unsigned i = 0;
             i < 1000000 && __atomic_load_n(&self->stray_nmis, __ATOMIC_RELAXED) == before; i++)
            pause();
        uint64_t counted = self->stray_nmis - before;
        self->stray_nmis = before;
        sti();
        CHECK(counted > 0);
    }
}

TEST(traps, nmi_others, "an NMI to all other CPUs reaches each")
{
    SKIP_WITH_ONE_CPU(); /* they are also CPUs that firmware left halted in real mode */
    SKIP_IF(boot_safe(), "safe: no NMI");
    for (unsigned cpu = 0; test_run_on_each(cpu); cpu++) {
        uint64_t wanted = __atomic_load_n(&trap_counts[EXC_NMI], __ATOMIC_RELAXED) + cpu_count - 1;
        apic_nmi_others();
        for (unsigned i = 0;
             i < 1000000 && __atomic_load_n(&trap_counts[EXC_NMI], __ATOMIC_RELAXED) < wanted; i++)
            pause();
        CHECK_EQ(trap_counts[EXC_NMI], wanted);
    }
}

TEST(copy, refuses,
     "copy_in and copy_out refuse memory that does not belong to ring 3, and close it again")
{
    static const uint64_t bad[] = {
        0,          8,          0x1000,        USER_END - 8, USER_END, USER_END + 8,
        DIRECT_MAP, KERNEL_VMA, NON_CANONICAL, ~0ul,         ~0ul - 7, 0x7fffffffffff
    };
    uint64_t word = 0x1234;
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK_STATUS(copy_in(&word, (const void *)bad[i], sizeof word), STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(copy_out((void *)bad[i], &word, sizeof word), STATUS_ACCESS_VIOLATION);
        CHECK_STATUS(copy_in(&word, (const void *)bad[i], 3), STATUS_ACCESS_VIOLATION);
        CHECK_EQ(read_flags() & RFLAGS_AC, 0);
    }
    CHECK_STATUS(copy_in(&word, &word, sizeof word), STATUS_ACCESS_VIOLATION);
    CHECK_EQ(word, 0x1234);
    CHECK(!user_range((const void *)(USER_END - 8), 9));
    CHECK(user_range((const void *)(USER_END - 8), 8));
    CHECK(!user_range((const void *)8, ~0ul));
}

static bool is_ours(unsigned vector)
{
    return vector == VECTOR_TIMER || vector == VECTOR_CALL || vector == VECTOR_RESCHEDULE ||
           vector == VECTOR_PMI || vector == VECTOR_PMI_NOTED || vector == VECTOR_SPURIOUS;
}

static uint64_t strays(void)
{
    uint64_t sum = 0;
    for (unsigned vector = 0x20; vector < 256; vector++)
        sum += is_ours(vector) ? 0 : trap_counts[vector];
    return sum;
}

TEST(traps, no_strays, "no device interrupts, because lines that firmware left open are masked")
{
    uint64_t before = strays(); /* those that were pending when their line was masked */
    sched_wait(NULL, clock_ns() + 10 * sched_tick_ns(), DelayExecution);
    CHECK_EQ(strays(), before);
}

TEST(traps, stray_fast_fail,
     "a device's interrupt by the vector of INT 29h is let pass, and lets others of its class come")
{
    test_run_on(0);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t before = __atomic_load_n(&trap_counts[EXC_FAST_FAIL], __ATOMIC_RELAXED);
        apic_send_self(INT_FAST_FAIL);
        for (unsigned n = 0; n < 1000 && trap_counts[EXC_FAST_FAIL] == before; n++)
            pause();
        CHECK_EQ(trap_counts[EXC_FAST_FAIL], before + 1);
        CHECK(!apic_is_in_service(INT_FAST_FAIL));
    }
}
