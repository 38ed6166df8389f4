/* SPDX-License-Identifier: MIT */
/* The local APIC. Each CPU touches its own; no lock. Any IRQL; ICR writes with interrupts off.
 * Source: Intel SDM vol. 3 "Advanced Programmable Interrupt Controller". */
#include "hal/machine/apic.h"
#include "hal/machine/acpi.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/msr.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"

/* clang-format off */
enum {
    ID = 0x20, TPR = 0x80, SPURIOUS = 0xf0, ICR = 0x300, ICR_HIGH = 0x310, LVT_TIMER = 0x320,
    LVT_CMCI = 0x2f0, LVT_LINT0 = 0x350, LVT_LINT1 = 0x360, LVT_ERROR = 0x370,
    TIMER_INITIAL = 0x380, TIMER_CURRENT = 0x390, TIMER_DIVIDE = 0x3e0, VERSION = 0x30, IN_SERVICE = 0x100, REQUESTED = 0x200,
    EXTENDED_FEATURE = 0x400, EXTENDED_LVT = 0x500
};
/* clang-format on */
#define ICR_BUSY (1u << 12)
#define ICR_ASSERT (1u << 14) /* the level: 1, except to end an INIT */
#define ICR_NMI (ICR_ASSERT | 4u << 8)
#define ICR_INIT (ICR_ASSERT | 5u << 8)
#define ICR_STARTUP (ICR_ASSERT | 6u << 8)
#define ICR_SELF (ICR_ASSERT | 1u << 18)
#define VERSION_EXTENDED (1u << 31) /* AMD: the registers from 400h on are there */
#define EXTENDED_LVTS_MAX 4u
#define TIMER_PERIODIC (1u << 17)
#define SPURIOUS_VECTOR 0xff
#define APIC_ENABLE (1u << 8)
#define MEMORY_ID_LAST 0xfeu /* that the registers in memory reach */
#define BUSY_LIMIT 100000    /* PAUSEs */

uint64_t apic_timer_hz;
bool apic_x2;

static uint32_t read_register(unsigned reg)
{
    return apic_x2 ? (uint32_t)rdmsr(MSR_X2APIC + (reg >> 4)) : *apic_mmio(reg);
}

__attribute__((noinline)) static void write_icr(uint32_t id, uint32_t low)
{
    uint64_t flags = read_flags();
    cli();
    if (apic_x2) {
        fence(); /* this WRMSR is not serializing: the IPI might arrive before earlier stores are
                    visible */
        wrmsr(MSR_X2APIC + (ICR >> 4), (uint64_t)id << 32 | low);
    } else {
        for (unsigned i = 0; (*apic_mmio(ICR) & ICR_BUSY) && i < BUSY_LIMIT; i++)
            pause();
        *apic_mmio(ICR_HIGH) = id << 24;
        *apic_mmio(ICR) = low;
    }
    if (flags & RFLAGS_IF)
        sti();
}

/* An interrupt that firmware took without an EOI blocks its priority class and all below. */
static void end_left_over(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint32_t in_service = 0;
        for (unsigned word = 0; word < 8; word++)
            in_service |= read_register(IN_SERVICE + 16 * word);
        if (!in_service)
            return;
        apic_eoi();
    }
}

/* AMD's further LVT entries, such as that of IBS, which firmware may have left on. */
static void mask_extended(void)
{
    if (!(read_register(VERSION) & VERSION_EXTENDED))
        return;
    unsigned count = read_register(EXTENDED_FEATURE) >> 16 & 0xff;
    for (unsigned i = 0; i < count && i < EXTENDED_LVTS_MAX; i++)
        apic_write(EXTENDED_LVT + 16 * i, read_register(EXTENDED_LVT + 16 * i) | APIC_LVT_MASKED);
}

/* QEMU's TCG has an x2APIC from 9.0 on. With -icount it ends where RDMSR reads its timer: "Bad
 * icount read". It is left alone, but for x2apic=on or where firmware has turned it on. */
static bool is_tcg(void)
{
    return cpu_features.hypervisor && cpuid(0x40000000, 0).ebx == 0x54474354; /* "TCGT" */
}

BOOT_OPTIONS("x2apic=");
static bool prefers_x2; /* written at boot, before the first APIC is on */

void apic_choose(const struct acpi_info *info)
{
    prefers_x2 = cpu_features.hypervisor;
    for (unsigned i = 0; i < info->apic_count; i++)
        prefers_x2 |= info->apic_ids[i] > MEMORY_ID_LAST;
    prefers_x2 &= !is_tcg();
    char word[8];
    if (!boot_option("x2apic", word, sizeof word))
        return;
    if (strcmp(word, "on") && strcmp(word, "off"))
        print("# x2apic=%s is ignored: it can be on or off\n", word);
    else
        prefers_x2 = !strcmp(word, "on");
}

void apic_init_cpu(void)
{
    uint64_t base = rdmsr(MSR_APIC_BASE);

    apic_x2 = cpu_features.x2apic && (base & APIC_BASE_X2APIC || prefers_x2);
    wrmsr(MSR_APIC_BASE, base | APIC_BASE_ENABLE);
    if (apic_x2)
        wrmsr(MSR_APIC_BASE, base | APIC_BASE_ENABLE | APIC_BASE_X2APIC);
    apic_write(SPURIOUS, APIC_ENABLE | SPURIOUS_VECTOR);
    apic_write(TPR, 0);
    unsigned lvt_last = read_register(VERSION) >> 16 & 0xff;
    apic_write(LVT_TIMER, APIC_LVT_MASKED);
    apic_write(LVT_LINT0, APIC_LVT_MASKED);
    apic_write(LVT_LINT1, APIC_LVT_NMI);
    apic_write(LVT_ERROR, APIC_LVT_MASKED);
    if (lvt_last >= 4)
        apic_write(APIC_LVT_PMI, APIC_LVT_MASKED);
    /* LVT_THERMAL stays as it is: where it is an SMI, firmware cools the processor. */
    if (lvt_last >= 6)
        apic_write(LVT_CMCI, APIC_LVT_MASKED);
    mask_extended();
    end_left_over();
}

const char *apic_mode(void) { return apic_x2 ? "x2APIC" : "xAPIC"; }
uint32_t apic_id(void) { return apic_x2 ? read_register(ID) : read_register(ID) >> 24; }

void apic_finish_interrupts(void)
{
    for (unsigned reg = IN_SERVICE; reg < IN_SERVICE + 8 * 16; reg += 16)
        while (read_register(reg)) /* an EOI ends one bit */
            apic_eoi();
}

uint32_t apic_read_pmi_lvt(void) { return read_register(APIC_LVT_PMI); }
void apic_send(uint32_t id, uint8_t vector) { write_icr(id, ICR_ASSERT | vector); }
void apic_send_self(uint8_t vector)
{
    if (apic_x2) {
        wrmsr(MSR_X2APIC + (ICR >> 4), ICR_SELF | vector);
        return;
    }
    for (unsigned i = 0; (*apic_mmio(ICR) & ICR_BUSY) && i < BUSY_LIMIT; i++)
        pause();
    *apic_mmio(ICR) =
        ICR_SELF | vector; /* ICR_HIGH stays: an interrupted write_icr may have set it */
}

bool apic_reaches(uint32_t id) { return apic_x2 ? id != 0xffffffff : id <= MEMORY_ID_LAST; }

/* One bit of the 256 of a register. */
static bool bit_of(uint32_t reg, uint8_t vector)
{
    return read_register(reg + vector / 32 * 0x10) >> vector % 32 & 1;
}

bool apic_is_pending(uint8_t vector) { return bit_of(REQUESTED, vector); }
bool apic_is_in_service(uint8_t vector) { return bit_of(IN_SERVICE, vector); }

void apic_send_nmi(uint32_t id) { write_icr(id, ICR_NMI); }

/* By id: "all but self" would wake CPUs that were never started, in firmware's code. */
void apic_nmi_others(void)
{
    for_all_cpus(cpu)
        if (cpu != cpu_number())
            apic_send_nmi(cpus[cpu]->apic_id);
}

void apic_send_init(uint32_t id) { write_icr(id, ICR_INIT); }
void apic_send_startup(uint32_t id, uint8_t page) { write_icr(id, ICR_STARTUP | page); }

void apic_timer_count(void)
{
    apic_write(TIMER_DIVIDE, 0xb); /* by 1 */
    apic_write(LVT_TIMER, APIC_LVT_MASKED);
    apic_write(TIMER_INITIAL, 0xffffffff);
}

uint64_t apic_timer_elapsed(void) { return 0xffffffff - read_register(TIMER_CURRENT); }

static struct {
    uint8_t vector;
    uint64_t period_ns;
} timer; /* the same on every CPU */

uint64_t apic_timer_period(void) { return timer.period_ns; }

void apic_timer_change(uint64_t period_ns)
{
    uint64_t ticks = apic_timer_hz / 1000 * period_ns / 1000000;
    apic_write(TIMER_DIVIDE, 0xb);
    apic_write(LVT_TIMER, TIMER_PERIODIC | timer.vector);
    apic_write(TIMER_INITIAL, ticks > 0xffffffff ? 0xffffffff : ticks ? (uint32_t)ticks : 1);
}

void apic_timer_start(uint8_t vector, uint64_t period_ns)
{
    timer.vector = vector;
    timer.period_ns = period_ns;
    apic_timer_change(period_ns);
}
