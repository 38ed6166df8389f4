/* SPDX-License-Identifier: MIT */
/* The order of initialisation. */
#include "kernel/main.h"
#include "kernel/base/upcalls.h"
#include "kernel/profiling/profiling_enable.h"
#include "hal/interrupt.h"
#include "hal/machine/acpi.h"
#include "hal/machine/apic.h"
#include "hal/machine/clock.h"
#include "hal/machine/identity.h"
#include "hal/machine/io_apic.h"
#include "hal/machine/reboot.h"
#include "hal/machine/smp.h"
#include "hal/owners.h"
#include "hal/sources.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/sanitize/kasan.h"
#include "kernel/base/sanitize/kcsan.h"
#include "kernel/base/panic.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/console/screen.h"
#include "kernel/image/image.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/fpu.h"
#include "kernel/ke/process.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/shared_data.h"
#include "kernel/ke/thread.h"
#include "kernel/counting/switch_counters.h"
#include "kernel/counting/thread_profiling.h"
#include "kernel/mm/phys.h"
#include "kernel/mm/vm.h"
#include "kernel/profiling/counter_config.h"
#include "kernel/profiling/profiling_enable.h"
#include "kernel/ring3_run.h"
#include "kernel/syscall.h"
#include "kernel/trap.h"
#include "pmu/pmu.h"

BOOT_OPTIONS("counters= rdpmc= hal= pmi= tick= cpus=");

/* Each CPU, once it has its block and can take exceptions. */
static void init_cpu(void)
{
    apic_init_cpu();
    cpu_init_idle();
    fpu_probe_cpu();
    cpu_current()->apic_id = apic_id();
    syscall_init_cpu();
    pmu_init_cpu();
    hal_pmi_init_cpu();
    ring3_measure_cpu();
}

/* The boot CPU has its block before memory can be allocated, because locks record their CPU. */
static void boot_cpu(void)
{
    static struct cpu cpu;
    static uint8_t fault_stacks[3 * PAGE_SIZE] __attribute__((aligned(16)));
    cpu.fault_stacks = fault_stacks;
    cpu_init(&cpu, 0);
    cpu_joins();
}

static void choose_pmi(void)
{
    if (!boot_flag("pmi=nmi"))
        return;
    if (boot_safe())
        print("# safe: no NMI: pmi=nmi is ignored\n");
    else
        hal_pmi_use_nmi();
}

/* Whether the option is given; it has this one value. */
static bool is_chosen(const char *option, const char *only)
{
    char value[16];
    bool given = boot_option(option, value, sizeof value), known = given && !strcmp(value, only);
    if (given && !known)
        print("# %s=%s is ignored: it can be %s\n", option, value, only);
    return known;
}

static void choose_policy(void)
{
    char policy[16] = "accumulate";
    boot_option("counters", policy, sizeof policy);
    if (!thread_profiling_policy(policy))
        print("# counters=%s is no policy: accumulate or isolate\n", policy);
    thread_profiling_pce = is_chosen("rdpmc", "off") ? 0 : thread_profiling_pce;
    hal_counters_1809 = is_chosen("hal", "1809");
    counter_config_generation = boot_wraps() ? UINT32_MAX - 1 : 0;
}

/* The decimal number at *text, which is moved to after it; false if there is none, or if it has
 * more than six digits. */
static bool number(const char **text, unsigned *value)
{
    const char *start = *text;
    for (*value = 0; **text >= '0' && **text <= '9' && *text - start < 7; (*text)++)
        *value = *value * 10 + (unsigned)(**text - '0');
    return *text > start && *text - start < 7;
}

#define TICK_US_MIN 100u
#define TICK_US_MAX 100000u

/* The timer's period that was asked for, in nanoseconds; 0: the usual one. */
static uint64_t choose_tick(void)
{
    char value[16];
    const char *text = value;
    unsigned us;
    if (!boot_option("tick", value, sizeof value))
        return 0;
    if (number(&text, &us) && !*text && us >= TICK_US_MIN && us <= TICK_US_MAX)
        return us * 1000ul;
    print("# tick=%s is no period: %u to %u microseconds\n", value, TICK_US_MIN, TICK_US_MAX);
    return 0;
}

/* FIRST-LAST of the list that firmware has, or how many may run. */
static bool choose_cpus(const char *text, unsigned *first, unsigned *last, unsigned *most)
{
    unsigned n, end;
    if (!number(&text, &n))
        return false;
    if (!*text && n) {
        *most = n < MAX_CPUS ? n : MAX_CPUS;
        return true;
    }
    if (*text++ != '-' || !number(&text, &end) || *text || n > end)
        return false;
    *first = n;
    *last = end;
    return true;
}

static void start_cpus(const struct acpi_info *acpi)
{
    static struct smp_plan plan = { thread_create_idle, init_cpu, sched_idle, MAX_CPUS };
    char value[32];
    unsigned first = 0, last = ~0u;
    if (boot_safe()) {
        print("# safe: one CPU only, no NMI\n");
        return;
    }
    if (boot_option("cpus", value, sizeof value) && !choose_cpus(value, &first, &last, &plan.most))
        print("# cpus=%s is neither a number nor a range FIRST-LAST of firmware's list\n", value);
    smp_start(acpi, first, last, &plan);
}

void kernel_main(void (*first_thread)(void *))
{
    static struct acpi_info acpi;

    panic_init(apic_nmi_others, machine_exit);
    cpu_detect();
    boot_cpu();
    trap_init();
    kasan_init(&boot_info);
    phys_init(&boot_info);
    vm_init();
    image_init(&boot_info);
    identity_print(&boot_info);
    acpi_read(&boot_info, &acpi);
    machine_reset_by(&acpi.reset, acpi.no_8042);
    apic_choose(&acpi);
    apic_init_cpu();
    clock_init(&acpi.clocks, boot_wraps() ? BOOT_WRAPS_NS : 0);
    sched_init();
    thread_create_idle(cpu_current()); /* its stack stays unused: the boot stack is this thread's */
    choose_pmi();
    hal_sources_init();
    init_cpu();
    io_apic_mask(acpi.io_apics, acpi.io_apic_count);
    sti();
    vm_call_by(smp_call);
    smp_call_ended(etw_ipi);
    wait_killed = thread_check_killed;
    thread_ended = thread_profiling_end;
    process_ended = counter_driver_end;
    start_cpus(&acpi);
    kcsan_init();
    smp_call(SMP_ALL, fpu_init_cpu, NULL);
    fpu_report();
    pmu_report();
    sched_start_timers(choose_tick());
    shared_data_init();
    choose_policy();
    screen_print(&boot_info.screen, boot_info.no_screen);
    print("# running: %u CPU%s, %s, %lu MB, tick %lu us\n", cpu_count, cpu_count > 1 ? "s" : "",
          apic_mode(), phys_total_pages() * PAGE_SIZE >> 20, sched_tick_ns() / 1000);
    object_release(&thread_create("init", first_thread, NULL, SMP_ALL)->object);
    sched_idle();
}
