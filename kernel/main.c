/* SPDX-License-Identifier: MIT */
/* The init order, one call a line. */
#include "kernel/main.h"
#include "boot/multiboot.h"
#include "hal/apic.h"
#include "hal/hal.h"
#include "kernel/acpi.h"
#include "kernel/cpu.h"
#include "kernel/irql.h"
#include "kernel/phys.h"
#include "kernel/print.h"
#include "kernel/sched.h"
#include "kernel/screen.h"
#include "kernel/smp.h"
#include "kernel/syscall.h"
#include "kernel/thread.h"
#include "kernel/thread_profiling.h"
#include "kernel/trap.h"
#include "kernel/vm.h"
#include "kernel/x86.h"
#include "pmu/pmu.h"

const struct boot_info *kernel_boot_info;

bool kernel_safe(void) { return boot_word(kernel_boot_info, "safe"); }

/* Bochs ends when it is told so, without a status. Elsewhere that port may be a device's: ask for Bochs' own first. */
static void bochs_exit(void)
{
    if (in8(0xe9) != 0xe9)
        return;
    serial_drain();
    for (const char *s = "Shutdown"; *s; s++)
        out8(0x8900, (uint8_t)*s);
}

void machine_exit(unsigned code)
{
    out32(0xf4, code);
    bochs_exit();
    reboot_on_key();
    for (;;)
        cli_hlt();
}

void kernel_init_cpu(void)
{
    apic_init_cpu();
    cpu_current()->apic_id = apic_id();
    syscall_init_cpu();
    pmu_init_cpu();
    hal_pmi_init_cpu();
}

static void start_time(void)
{
    uint64_t tsc_hz, timer_hz = apic_timer_calibrate(&tsc_hz);
    sched_init(tsc_hz, timer_hz);
}

/* The boot CPU has its block before there is memory to allocate: locks want to know who takes them. */
static void boot_cpu(void)
{
    static struct cpu cpu;
    static uint8_t fault_stacks[2 * PAGE_SIZE] __attribute__((aligned(16)));
    cpu.fault_stacks = fault_stacks;
    cpu_init(&cpu, 0);
    cpu_count = 1;
}

static void choose_pmi(const struct boot_info *info)
{
    if (!boot_word(info, "pmi=nmi"))
        return;
    if (kernel_safe())
        print("# safe: no NMI: pmi=nmi is ignored\n");
    else
        hal_pmi_use_nmi();
}

static void choose_policy(const struct boot_info *info)
{
    char policy[16] = "accumulate";
    boot_option(info, "counters", policy, sizeof policy);
    if (!thread_profiling_policy(policy))
        print("# counters=%s is no policy: accumulate or isolate\n", policy);
}

void kernel_main(const struct boot_info *info)
{
    struct acpi_info acpi;

    kernel_boot_info = info;
    cpu_detect();
    boot_cpu();
    trap_init();
    phys_init(info);
    vm_init();
    screen_map();
    apic_init_cpu();
    start_time();
    pmu_init();
    choose_pmi(info);
    kernel_init_cpu();
    sti();
    acpi_read(info, &acpi);
    if (kernel_safe())
        print("# safe: one CPU only, no NMI\n");
    else
        smp_start(&acpi);
    sched_start_timers();
    choose_policy(info);
    print("# cpu: %s %s, %u running; memory: %lu MB; tick %lu us\n", cpu_features.vendor, cpu_features.name,
          cpu_count, phys_total_pages() * PAGE_SIZE >> 20, sched_tick_ns() / 1000);
    object_release(&thread_create("init", init_thread, NULL, SMP_ALL)->object);
    sched_idle();
}
