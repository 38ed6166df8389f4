/* SPDX-License-Identifier: MIT */
/* What the virtual PMU says of itself, from CPUID leaf 4000_0000h up:
 *   +0    EAX last leaf; EBX ECX EDX "ntpmu-vpmu"
 *   +1.0  of this CPU since start: EAX RDPMCs, EBX reads, ECX writes of PMU MSRs, EDX PMIs sent
 *   +1.1  EAX exits, EBX steps, ECX alarms, EDX times that the CPU passed the token on
 *   +1.2  instructions really retired: EBX:EAX in ring 0, EDX:ECX in ring 3
 *   +1.3  EAX 1: no instruction clock, it steps what is counted; EDX:ECX iterations of string
 *         instructions that +1.2 does not have
 *   +2    EAX to EDX: the model's name
 *   +3.n  quirk n: EAX 1 if it is on; EBX ECX EDX its name; all 0 after the last
 *   +4.n  its values: EBX:EAX, EDX:ECX
 *   +5    EAX to EDX: the machine's name, zeros if it has none
 * A question changes nothing, whoever asks it.
 * With the quirks hyperv and kvm all this begins at 4000_0100h, after another hypervisor's leaves.
 * Source of its leaves: Hypervisor Top Level Functional Specification, "Feature and interface
 * discovery"; Linux, Documentation/virt/kvm/x86/cpuid.rst, and for leaf 4000_0010h QEMU. */
#include "kernel/base/bits.h"
#include "kernel/base/string.h"
#include "pmu/virt/cpuid.h"
#include "pmu/virt/machine.h"
#include "pmu/virt/quirk.h"
#include "pmu/virt/vcpu.h"

#define BASE 0x40000000u
#define LAST 5u
#define SECOND 0x100u /* where a second hypervisor's leaves are looked for */
#define HYPERV_LAST 6u
#define HYPERV_INTERFACE 0x31237648u /* "Hv#1" */
#define KVM_CLOCKS 0x10u             /* KVM's last: the rates of TSC and APIC timer in kHz */
#define APIC_KHZ 1000000u            /* QEMU's */
enum { A, B, C, D };

static void statistics_leaf(const struct vcpu *v, uint32_t subleaf, uint32_t r[4])
{
    const struct statistics *s = &v->statistics;
    const uint32_t words[4][4] = {
        { (uint32_t)s->rdpmc, (uint32_t)s->rdmsr, (uint32_t)s->wrmsr, (uint32_t)s->pmi },
        { (uint32_t)s->exits, (uint32_t)s->steps, (uint32_t)s->alarms, (uint32_t)s->passes },
        { (uint32_t)v->retired[0], (uint32_t)(v->retired[0] >> 32), (uint32_t)v->retired[1],
          (uint32_t)(v->retired[1] >> 32) },
        { virt_step, 0, (uint32_t)v->iterations, (uint32_t)(v->iterations >> 32) },
    };
    if (subleaf < ARRAY_SIZE(words))
        memcpy(r, words[subleaf], sizeof *words);
}

static void quirk_leaf(uint32_t leaf, uint32_t n, uint32_t r[4])
{
    bool on;
    char name[12];
    uint64_t value[2];
    if (!quirk_describe(n, &on, name, value))
        return;
    if (leaf == 4) {
        memcpy(r, value, sizeof value);
        return;
    }
    r[A] = on;
    memcpy(r + B, name, sizeof name);
}

static uint32_t front_last(void) { return virt_quirks.hyperv ? HYPERV_LAST : KVM_CLOCKS; }

/* Leaf n of the hypervisor that stands before us. Microsoft's leaf 3 is 0, and with it
 * PerformanceMonitorsAvailable, EDX bit 2. */
static void front_leaf(uint32_t n, uint32_t r[4])
{
    static const char hyperv[13] = "Microsoft Hv", kvm[13] = "KVMKVMKVM";
    if (n == 0) {
        r[A] = BASE + front_last();
        memcpy(r + B, virt_quirks.hyperv ? hyperv : kvm, sizeof kvm - 1);
    } else if (virt_quirks.hyperv && n == 1) {
        r[A] = HYPERV_INTERFACE;
    } else if (!virt_quirks.hyperv && n == KVM_CLOCKS) {
        r[A] = (uint32_t)clock_us * 1000;
        r[B] = APIC_KHZ;
    }
}

bool own_leaf(const struct vcpu *v, uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    static const char signature[12] = "ntpmu-vpmu";
    const char *model = v->pmu.model->name, *machine = machine_name();
    bool second = virt_quirks.hyperv || virt_quirks.kvm,
         in_front = second && leaf - BASE <= front_last();
    uint32_t base = BASE + (second ? SECOND : 0);
    if (!in_front && leaf - base > LAST)
        return false;
    memset(r, 0, 4 * sizeof *r);
    if (in_front) {
        front_leaf(leaf - BASE, r);
        return true;
    }
    switch (leaf - base) {
    case 0:
        r[A] = base + LAST;
        memcpy(r + B, signature, sizeof signature);
        break;
    case 1: statistics_leaf(v, subleaf, r); break;
    case 2: memcpy(r, model, strlen(model)); break;
    case 5: memcpy(r, machine, strlen(machine)); break;
    default: quirk_leaf(leaf - base, subleaf, r);
    }
    return true;
}
