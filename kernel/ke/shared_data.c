/* SPDX-License-Identifier: MIT */
/* KUSER_SHARED_DATA. The first CPU writes the times in its tick, nobody writes the rest after
 * shared_data_init. NT: fields that no program here has asked for are 0. */
#include "kernel/ke/shared_data.h"
#include "hal/machine/clock.h"
#include "kernel/base/assert.h"
#include "kernel/base/bits.h"
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/ke/fpu.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "kernel/nt/nt_process.h"
#include "kernel/nt/nt_shared.h"
#include "kernel/nt/nt_time.h"

#define PRODUCT_WORKSTATION 1
#define MACHINE_AMD64 0x8664
#define LEGACY_XSTATE 3u /* x87 and SSE, at fixed places */

static struct shared_data *data; /* in the direct map; NULL: not yet */

/* PF_... of winnt.h. */
static const struct {
    uint8_t feature, reg, bit; /* EAX 0 to EDX 3 */
    uint32_t leaf;
} features[] = {
    { 2, 3, 8, 1 },            /* COMPARE_EXCHANGE_DOUBLE */
    { 3, 3, 23, 1 },           /* MMX_INSTRUCTIONS_AVAILABLE */
    { 6, 3, 25, 1 },           /* XMMI_INSTRUCTIONS_AVAILABLE */
    { 8, 3, 4, 1 },            /* RDTSC_INSTRUCTION_AVAILABLE */
    { 9, 3, 6, 1 },            /* PAE_ENABLED */
    { 10, 3, 26, 1 },          /* XMMI64_INSTRUCTIONS_AVAILABLE */
    { 12, 3, 20, 0x80000001 }, /* NX_ENABLED */
    { 13, 2, 0, 1 },           /* SSE3_INSTRUCTIONS_AVAILABLE */
    { 14, 2, 13, 1 },          /* COMPARE_EXCHANGE128 */
    { 17, 2, 27, 1 },          /* XSAVE_ENABLED: OSXSAVE */
    { 36, 2, 9, 1 },           /* SSSE3_INSTRUCTIONS_AVAILABLE */
    { 37, 2, 19, 1 },          /* SSE4_1_INSTRUCTIONS_AVAILABLE */
    { 38, 2, 20, 1 },          /* SSE4_2_INSTRUCTIONS_AVAILABLE */
};
#define PF_FASTFAIL_AVAILABLE 23
#define PF_AVX_INSTRUCTIONS_AVAILABLE 39
#define PF_AVX2_INSTRUCTIONS_AVAILABLE 40
#define PF_AVX512F_INSTRUCTIONS_AVAILABLE 41

static bool cpuid_bit(uint32_t leaf, unsigned reg, unsigned bit)
{
    const struct cpuid r = cpuid_leaf(leaf);
    const uint32_t values[] = { r.eax, r.ebx, r.ecx, r.edx };
    return values[reg] >> bit & 1;
}

static void fill_features(void)
{
    uint8_t *has = data->processor_features;
    for_each_in(f, features)
        has[f->feature] = cpuid_bit(f->leaf, f->reg, f->bit);
    has[PF_FASTFAIL_AVAILABLE] = true;
    has[PF_AVX_INSTRUCTIONS_AVAILABLE] = fpu_facts.xcr0 >> 2 & 1;
    has[PF_AVX2_INSTRUCTIONS_AVAILABLE] = fpu_facts.xcr0 >> 2 & 1 && cpuid_bit(7, 1, 5);
    has[PF_AVX512F_INSTRUCTIONS_AVAILABLE] = fpu_facts.xcr0 >> 5 & 1 && cpuid_bit(7, 1, 16);
}

static void fill_xstate(void)
{
    data->enabled_features = fpu_facts.xcr0 ? fpu_facts.xcr0 : LEGACY_XSTATE;
    data->volatile_features = data->enabled_features;
    data->xstate_size = fpu_facts.size;
    data->xstate_control = fpu_facts.optimized;
    data->xstate_features[0].size = data->xstate_features[1].offset = 160;
    data->xstate_features[1].size = 256;
    for (unsigned i = 2; i < 63; i++)
        if (fpu_facts.xcr0 >> i & 1) {
            const struct cpuid r = cpuid(0xd, i);
            data->xstate_features[i].size = r.eax;
            data->xstate_features[i].offset = r.ebx;
        }
}

static void write_time(struct system_time *time, uint64_t value)
{
    __atomic_store_n(&time->high2, (uint32_t)(value >> 32), __ATOMIC_RELEASE);
    __builtin_memcpy(time, &value, sizeof value); /* one store: drivers read 64 bits, too */
}

void shared_data_tick(void)
{
    if (cpu_number() || !data)
        return;
    const uint64_t ns = clock_ns(), ticks = ns / sched_tick_ns();
    write_time(&data->interrupt_time, ns / 100);
    write_time(&data->system_time, SYSTEM_TIME_AT_BOOT + ns / 100);
    write_time(&data->tick_count, ticks);
    data->tick_count_low = (uint32_t)ticks;
}

void shared_data_init(void)
{
    static const uint16_t root[] = u"C:\\Windows";
    data = phys_alloc(1);
    if (!data || !vm_map(vm_kernel_pml4, SHARED_DATA_KERNEL, virt_to_phys(data), PTE_NX))
        panic("no memory for the shared data");
    data->tick_count_multiplier = (uint32_t)((sched_tick_ns() << 24) / 1000000);
    data->image_number_low = data->image_number_high = MACHINE_AMD64;
    memcpy(data->system_root, root, sizeof root);
    data->build = WINDOWS_BUILD;
    data->product_type = PRODUCT_WORKSTATION;
    data->product_type_valid = true;
    data->major = WINDOWS_MAJOR;
    data->physical_pages = (uint32_t)phys_total_pages();
    data->qpc_frequency = 10000000;
    data->cookie = (uint32_t)(rdtsc() * 0x9e3779b97f4a7c15 >> 32);
    data->active_processors = cpu_count;
    data->active_groups = (uint16_t)cpu_groups();
    fill_features();
    fill_xstate();
    shared_data_tick();
}

bool shared_data_map(struct process *process)
{
    uint64_t at = SHARED_DATA_USER;
    if (!NT_SUCCESS(memory_reserve(process, &at, PAGE_SIZE, REGION_SYSTEM, PAGE_READONLY)))
        return false;
    phys_hold(virt_to_phys(data));
    if (vm_put(process->pml4, at,
               virt_to_phys(data) | PTE_PRESENT | PTE_USER | PTE_SHARED | PTE_NX))
        return true;
    phys_free(data, 1);
    return false;
}
