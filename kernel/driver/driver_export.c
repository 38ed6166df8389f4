/* SPDX-License-Identifier: MIT */
/* What drivers import. Drivers use Microsoft's x64 calling convention, the kernel that of System V:
 * each line of export_list.h has a thunk between them (thunk.asm). export_begin checks the IRQL: a
 * routine called above its highest is bug check 0Ah, with the IRQL, the routine's highest and the
 * caller. NT: Windows notices that later or not at all; Driver Verifier does it here. */
#include "kernel/driver/driver_export.h"
#include "kernel/base/bits.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/image/image.h"
#include "kernel/ke/thread.h"

/* A routine, or data. */
struct exported {
    const char *name;
    void *address;
    KIRQL irql; /* the highest that it may be called at */
    uint8_t arguments;
    bool service; /* of service_list.h: without Nt or Zw in `name` */
    bool as_is;   /* bound without a thunk */
};
_Static_assert(offsetof(struct exported, address) == EXPORTED_ADDRESS, "layout.h");
_Static_assert(offsetof(struct exported, arguments) == EXPORTED_ARGUMENTS, "layout.h");

#define ROUTINE(irql, name, n) extern char name##_symbol[] __asm__(#name);
#define DRIVERS(irql, name, n) extern char name##_symbol[] __asm__("driver_" #name);
#define AS_IS(name) extern char name##_symbol[] __asm__(#name);
#define NT_SERVICE(number, name, n) extern char Nt##name##_symbol[] __asm__("Nt" #name);
#define OWN_SERVICE(number, stub, routine, n)
#include "kernel/driver/export_list.h"
#include "kernel/nt/service_list.h"
#undef ROUTINE
#undef DRIVERS
#undef AS_IS
#undef NT_SERVICE

static const struct exported exports[] = {
#define ROUTINE(irql, name, n) { #name, name##_symbol, irql, n, false, false },
#define DRIVERS(irql, name, n) ROUTINE(irql, name, n)
#define AS_IS(name) { #name, name##_symbol, HIGH_LEVEL, 0, false, true },
#define NT_SERVICE(number, name, n) { #name, Nt##name##_symbol, PASSIVE_LEVEL, n, true, false },
#include "kernel/driver/export_list.h"
#include "kernel/nt/service_list.h"
};
_Static_assert(ARRAY_SIZE(exports) <= EXPORTS_MAX, "a thunk for each");

/* For thunk.asm, before and after a routine. *outer: the outer call of a driver that this one
 * interrupts, or is part of; export_end stores it again. */
const struct exported *export_begin(unsigned n, uint64_t caller, uint64_t *outer);
const struct exported *export_begin(unsigned n, uint64_t caller, uint64_t *outer)
{
    const struct exported *e = &exports[n];
    uint64_t irql = irql_current();
    if (irql > e->irql) {
        char words[96];
        print_to(words, sizeof words, "%s%s at IRQL %lu, its highest is %u", e->service ? "Zw" : "",
                 e->name, irql, e->irql);
        bug_check_at(caller, IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ caller, irql, 8, caller },
                     words);
    }
    if (irql < DISPATCH_LEVEL)
        exception_stack_check((uint64_t)__builtin_frame_address(0), caller);
    *outer = driver_caller();
    thread_current()->driver_caller = caller;
    /* A driver's pointers are trusted as the kernel's own, also in a thread of ring 3. */
    thread_current()->trusted += e->service;
    return e;
}

/* The last call of an exported routine that returned an error; written by the thread that calls
 * DriverEntry. What routines return that return no status may look like one only by chance. */
static struct {
    const struct thread *thread;
    const struct exported *routine;
    uint64_t caller;
    uint32_t status;
} failure;

void export_watch(void)
{
    failure.thread = thread_current();
    failure.routine = NULL;
}

void export_failure(char *text, size_t capacity)
{
    char place[96];
    *text = 0;
    if (!failure.routine)
        return;
    driver_place(failure.caller, place, sizeof place);
    print_to(text, capacity, "; the last call that failed: %s%s, %s 0x%08x, in %s",
             failure.routine->service ? "Zw" : "", failure.routine->name,
             code_name(failure.status, "status"), failure.status, place);
}

void export_end(const struct exported *e, uint64_t outer, uint64_t result);
void export_end(const struct exported *e, uint64_t outer, uint64_t result)
{
    if (result >> 16 == 0xc000 && thread_current() == failure.thread) {
        failure.routine = e;
        failure.caller = driver_caller();
        failure.status = (uint32_t)result;
    }
    thread_current()->trusted -= e->service;
    thread_current()->driver_caller = outer;
}

void *export_find(const char *name)
{
    extern uint8_t export_thunks[][EXPORT_THUNK_SIZE];
    bool service = (name[0] == 'N' && name[1] == 't') || (name[0] == 'Z' && name[1] == 'w');
    for (unsigned i = 0; i < ARRAY_SIZE(exports); i++)
        if (exports[i].service ? service && !strcmp(exports[i].name, name + 2)
                               : !strcmp(exports[i].name, name))
            return exports[i].as_is ? exports[i].address : export_thunks[i];
    return exceptions_export(name);
}

bool export_library(const char *name)
{
    return string_same(name, "ntoskrnl.exe") || string_same(name, "hal.dll");
}

PVOID MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName)
{
    char name[80];
    unsigned n = SystemRoutineName->Length / 2u;
    if (n >= sizeof name)
        return NULL;
    for (unsigned i = 0; i < n; i++)
        name[i] = (char)SystemRoutineName->Buffer[i];
    name[n] = 0;
    return export_find(name);
}
