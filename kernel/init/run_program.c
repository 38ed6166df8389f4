/* SPDX-License-Identifier: MIT */
/* A user's program and drivers: the command line says `program`, and the loader brought them. With
 * trace=EVENTS pmc=COUNTERS stacks=EVENTS branches=EVENTS a trace of their run is exported. */
#include "kernel/init/run_program.h"
#include "kernel/init/threads.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/exit.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/driver_export.h"
#include "kernel/etw/etw_export.h"
#include "kernel/image/image.h"
#include "kernel/ke/process.h"
#include "kernel/ke/thread.h"
#include "kernel/image/program.h"

BOOT_OPTIONS("program trace= pmc= stacks= branches=");

static const char *name_of_status(NTSTATUS status) { return code_name((uint32_t)status, "status"); }

static unsigned fail_program(const char *why)
{
    print("# FAIL %s\n", why);
    return EXIT_FAIL;
}

/* False: nothing was started, and the line that says why was printed. */
static bool start_trace(const char *events)
{
    char counters[BOOT_LINE_MAX] = "", stacks[BOOT_LINE_MAX] = "", branches[BOOT_LINE_MAX] = "";
    boot_option("pmc", counters, sizeof counters);
    boot_option("stacks", stacks, sizeof stacks);
    boot_option("branches", branches, sizeof branches);
    const char *wrong = trace_export_start(events, counters, stacks, branches);
    if (wrong)
        print("# FAIL trace: %s\n", wrong);
    return !wrong;
}

static void print_fault(const struct process *process, NTSTATUS status)
{
    char symbol[120];
    bool named = program_symbol(process, process->fault_rip, symbol, sizeof symbol);
    if (!process->fault_rip)
        named = print_to(symbol, sizeof symbol, "a call through NULL");
    print("# FAIL the program ended by %s 0x%08x at 0x%lx%s%s%s, %s 0x%lx\n",
          name_of_status(status), (unsigned)status, process->fault_rip, named ? " (" : "",
          named ? symbol : "", named ? ")" : "",
          status == STATUS_STACK_BUFFER_OVERRUN ? "code" : "address", process->fault_address);
}

static unsigned conclude_program(const struct process *process, NTSTATUS status)
{
    print_fresh_line();
    if (status == STATUS_SUCCESS)
        print("# PASS the program ended with 0\n");
    else if (NT_SUCCESS(status))
        print("# FAIL the program ended with %d\n", status);
    else if (process->faulted)
        print_fault(process, status);
    else
        print("# FAIL the program ended with %s 0x%08x\n", name_of_status(status),
              (unsigned)status);
    return status == STATUS_SUCCESS ? EXIT_PASS : EXIT_FAIL;
}

/* The module's line without the folders of its first word: the program's command line. */
static const char *command_line(unsigned module)
{
    const char *line = boot_info.modules[module].line, *start = line;
    for (const char *p = line; *p && *p != ' '; p++)
        if (*p == '/')
            start = p + 1;
    return start;
}

static unsigned run_image(unsigned module)
{
    struct image *image = image_module(module);
    struct process *process;
    const char *who, *wrong = program_start(image, command_line(module), &process, &who);
    if (wrong) {
        print("# FAIL %s %s\n", who, wrong);
        return EXIT_FAIL;
    }
    threads_wait(&process->object);
    return conclude_program(process, process->exit_status);
}

static bool is_library(const struct image *image)
{
    const size_t length = strlen(image->name);
    return length > 4 && !strcmp(image->name + length - 4, ".dll");
}

/* Whose libraries were brought, where their maker stands beside their name. */
static void print_libraries(void)
{
    const struct image *image;
    bool any = false;
    for (unsigned n = 0; (image = image_module(n)); n++) {
        const char *maker = boot_info.modules[n].line;
        while (*maker && *maker++ != ' ')
            ;
        if (!is_library(image) || !*maker)
            continue;
        if (!any)
            print("# libraries of %s:", maker);
        print(" %s", image->name);
        any = true;
    }
    if (any)
        print("\n");
}

/* The first module that is no driver and no library; -1: there is none. */
static int program_module(void)
{
    struct image *image;
    for (unsigned n = 0; (image = image_module(n)); n++)
        if (!driver_is(image) && !is_library(image))
            return (int)n;
    return -1;
}

/* What the host wants to know of the program beside the session. False: the port stopped. */
static bool stop_trace(void)
{
    static char facts[32 * (IMAGE_NAME_MAX + 60)];
    const struct image *image;
    size_t n = 0;
    int module = program_module();
    if (module >= 0)
        n += print_to(facts, sizeof facts, "program %s\n", command_line((unsigned)module));
    for (unsigned i = 0; (image = image_laid_out(i)); i++)
        n += print_to(facts + n, sizeof facts - n, "image %p %u %u %u %s\n", (void *)image->base,
                      image->pe.size, image->pe.checksum, image->pe.time, image->name);
    return trace_export_stop(facts);
}

static unsigned run_program(void)
{
    int module = program_module();
    print_libraries();
    return module >= 0 ? run_image((unsigned)module) : EXIT_PASS;
}

/* Of 40000000h to 4000FFFFh, which no processor implements; hypervisors use the first of them. */
#define MSR_NOWHERE 0x4000fff0u

/* A driver may look for what a processor has by #GP. */
static void report_lenient_msrs(void)
{
    uint64_t value;
    if (!rdmsr_fault(MSR_NOWHERE, &value))
        print("# machine: RDMSR of an MSR that does not exist succeeds here; a processor raises "
              "#GP\n");
}

struct started {
    struct driver *drivers[DRIVERS_MAX];
    bool entered[DRIVERS_MAX];
    unsigned count;
};

/* False: one cannot be loaded or started, and the line that says why was printed. */
static bool start_drivers(struct started *s)
{
    struct image *image;
    for (unsigned n = 0; (image = image_module(n)); n++) {
        if (!driver_is(image))
            continue;
        if (!s->count)
            report_lenient_msrs();
        const char *wrong = driver_load(image, &s->drivers[s->count]);
        if (wrong) {
            print("# FAIL %s %s\n", image->name, wrong);
            return false;
        }
        NTSTATUS status = driver_start(s->drivers[s->count++]);
        s->entered[s->count - 1] = NT_SUCCESS(status);
        if (!NT_SUCCESS(status)) {
            char call[160];
            export_failure(call, sizeof call);
            print_fresh_line();
            print("# FAIL %s: DriverEntry returned %s 0x%08x%s\n", image->name,
                  name_of_status(status), (unsigned)status, call);
            return false;
        }
    }
    return true;
}

/* The newest first. False: one left something behind. */
static bool stop_drivers(const struct started *s)
{
    bool clean = true;
    for (unsigned i = s->count; i-- > 0;)
        clean &= driver_stop(s->drivers[i], s->entered[i]);
    return clean;
}

static unsigned run_with_drivers(void)
{
    struct started s = { .count = 0 };
    bool started = start_drivers(&s);
    unsigned code = started ? run_program() : EXIT_FAIL;
    if (!stop_drivers(&s) && code == EXIT_PASS)
        code = fail_program("a driver left something behind");
    else if (code == EXIT_PASS && s.count && program_module() < 0)
        print("# PASS drivers came and went\n");
    return code;
}

unsigned run_program_and_drivers(void)
{
    char events[BOOT_LINE_MAX];
    bool traced = boot_option("trace", events, sizeof events);
    threads_watch();
    if (boot_info.modules_left_out) {
        print(
            "# FAIL the loader brought %u files, %u more than there can be: give fewer by DRIVER= "
            "and DLL=\n",
            BOOT_MODULES_MAX + boot_info.modules_left_out, boot_info.modules_left_out);
        return EXIT_FAIL;
    }
    if (!image_module(0))
        return fail_program("the loader brought no program");
    if (traced && !start_trace(events))
        return EXIT_FAIL;
    unsigned code = run_with_drivers();
    if (traced && !stop_trace())
        return fail_program("trace: the second serial port takes nothing more");
    return code;
}
