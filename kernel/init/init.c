/* SPDX-License-Identifier: MIT */
/* The first thread: what runs once the kernel does, and then the machine's end. */
#include "kernel/init/init.h"
#include "hal/interrupt.h"
#include "hal/machine/reboot.h"
#include "hal/sources.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/exit.h"
#include "kernel/base/print.h"
#include "kernel/init/run_program.h"
#include "kernel/ke/sched.h"
#include "kernel/ke/thread.h"

BOOT_OPTIONS("pmcsources");

/* Before anything counts: a CPU whose counters' interrupt does not come is named. */
static void prove_interrupts(void)
{
    struct thread *self = thread_current();
    for_all_cpus(cpu) {
        sched_set_affinity(self, cpu_set_one(cpu));
        while (cpu_number() != cpu)
            sched_switch(WrYieldExecution);
        hal_pmi_prove_kind();
    }
    sched_set_affinity(self, cpu_all());
}

static unsigned run_nothing(void)
{
    print("# NONE this image has no tests: run it with a program\n");
    return EXIT_NOTHING;
}

void init_thread(void *)
{
    unsigned code;
    /* Nothing that it starts keeps it from looking. */
    sched_set_priority(thread_current(), SCHED_PRIORITIES - 1);
    prove_interrupts();
    if (boot_flag("pmcsources")) {
        hal_sources_print();
        machine_exit(EXIT_PASS);
    }
    if (!init_tests || !init_tests(&code))
        code = boot_flag("program") ? run_program_and_drivers() : run_nothing();
    machine_exit(code);
}
