/* SPDX-License-Identifier: MIT */
/* Runs in ring 3 without a thread, for hal/measure_traps.c. They have their own page tables, with
 * one page of code, and their own IDT. Each CPU when it starts, with interrupts off. */
#include "kernel/base/boot_info.h"
#include "hal/machine/apic.h"
#include "hal/measure_traps.h"
#include "kernel/base/cpu.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "kernel/ring3_run.h"

#define CODE_AT 0x10000u
#define LEVEL 14u /* admits the counters' vector alone */

extern const uint8_t ring3_code[], ring3_code_end[], ring3_plain[], ring3_undefined[],
    ring3_page_fault[];
extern void ring3_enter(uint64_t rip, uint64_t rflags, uint64_t iterations, void *rsp0);
extern void ring3_on_int3(void), ring3_on_undefined(void), ring3_on_page_fault(void),
    ring3_on_interrupt(void), ring3_on_nmi(void);

static struct hal_ring3_run *current;

/* From ring3_run.asm. */
void ring3_interrupted(bool from_ring3, bool nmi);
void ring3_interrupted(bool from_ring3, bool nmi)
{
    if (from_ring3) {
        if (!current->taken++)
            current->value = rdpmc_exact(current->selector);
        current->nmis += nmi;
    }
    if (!nmi)
        apic_eoi();
}

static void run(struct hal_ring3_run *v)
{
    static const uint8_t *const entries[] = { [HAL_RING3_PLAIN] = ring3_plain,
                                              [HAL_RING3_UNDEFINED] = ring3_undefined,
                                              [HAL_RING3_PAGE_FAULT] = ring3_page_fault };
    struct tss *tss = &cpu_current()->tss;
    uint64_t before = tss->rsp0; /* of no alignment */
    current = v;
    v->taken = v->nmis = 0;
    ring3_enter(CODE_AT + (uint64_t)(entries[v->what] - ring3_code), v->interrupts ? RFLAGS_IF : 0,
                v->iterations, (char *)tss + offsetof(struct tss, rsp0));
    tss->rsp0 = before;
}

/* From ring3_run.asm: the kernel's handlers. */
extern uint64_t ring3_kernels_undefined, ring3_kernels_page_fault;
uint64_t ring3_kernels_undefined, ring3_kernels_page_fault;

void ring3_set_gates(struct gate *gates, const struct table_register *kernel)
{
    memcpy(gates, (const void *)kernel->base, 256 * sizeof *gates);
    ring3_kernels_undefined = gate_to(&gates[EXC_INVALID_OPCODE]);
    ring3_kernels_page_fault = gate_to(&gates[EXC_PAGE_FAULT]);
    gate_set(&gates[EXC_BREAKPOINT], (uint64_t)ring3_on_int3);
    gate_set(&gates[EXC_INVALID_OPCODE], (uint64_t)ring3_on_undefined);
    gate_set(&gates[EXC_PAGE_FAULT], (uint64_t)ring3_on_page_fault);
    gate_set(&gates[EXC_NMI], (uint64_t)ring3_on_nmi);
    gate_set(&gates[VECTOR_PMI], (uint64_t)ring3_on_interrupt);
}

static bool map_code(uint64_t *pml4)
{
    uint8_t *page = phys_alloc(1);
    if (!page)
        return false;
    memcpy(page, ring3_code, (size_t)(ring3_code_end - ring3_code));
    if (vm_map(pml4, CODE_AT, virt_to_phys(page), PTE_USER))
        return true;
    phys_free(page, 1);
    return false;
}

static void measure(const uint64_t *pml4)
{
    static struct gate gates[256];
    struct table_register kernel, mine = { sizeof gates - 1, (uint64_t)gates };
    uint64_t level = read_cr8();
    sidt(&kernel);
    ring3_set_gates(gates, &kernel);
    vm_switch(pml4);
    write_cr8(LEVEL);
    lidt(&mine);
    hal_measure(run, !boot_safe());
    lidt(&kernel);
    write_cr8(level);
    vm_switch(vm_kernel_pml4);
}

void ring3_measure_cpu(void)
{
    if (!hal_unmeasured())
        return;
    uint64_t *pml4 = vm_create();
    if (!pml4)
        return;
    if (map_code(pml4))
        measure(pml4);
    vm_destroy(pml4);
}
