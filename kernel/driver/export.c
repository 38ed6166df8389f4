/* SPDX-License-Identifier: MIT */
/* Drivers use Microsoft's x64 calling convention, the kernel that of System V: each line of
 * export_list.h becomes one thunk between them. A thunk checks the IRQL first: a routine called
 * above its highest is bug check 0Ah, with the IRQL, the routine's highest and the caller. NT:
 * Windows notices that later or not at all; Driver Verifier does it here. */
#include "kernel/driver/export.h"
#include "kernel/base/bits.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/image.h"
#include "kernel/ke/thread.h"

#define P_0 void
#define P_1 uint64_t a
#define P_2 P_1, uint64_t b
#define P_3 P_2, uint64_t c
#define P_4 P_3, uint64_t d
#define P_5 P_4, uint64_t e
#define P_6 P_5, uint64_t f
#define P_7 P_6, uint64_t g
#define P_8 P_7, uint64_t h
#define P_9 P_8, uint64_t i
#define P_10 P_9, uint64_t j
#define P_11 P_10, uint64_t k
#define A_0
#define A_1 a
#define A_2 A_1, b
#define A_3 A_2, c
#define A_4 A_3, d
#define A_5 A_4, e
#define A_6 A_5, f
#define A_7 A_6, g
#define A_8 A_7, h
#define A_9 A_8, i
#define A_10 A_9, j
#define A_11 A_10, k

__attribute__((noinline, cold)) static void wrong_irql(const char *name, KIRQL highest,
                                                       uint64_t caller)
{
    char words[96];
    uint64_t irql = irql_current();
    print_to(words, sizeof words, "%s at IRQL %lu, its highest is %u", name, irql, highest);
    bug_check_at(caller, IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ caller, irql, 8, caller }, words);
}

/* Returns what export_end stores again: the outer call of a driver that this one interrupts, or is
 * part of. */
static inline uint64_t export_begin(const char *name, KIRQL highest, uint64_t caller)
{
    uint64_t outer = driver_caller();
    if (irql_current() > highest)
        wrong_irql(name, highest, caller);
    thread_current()->driver_caller = caller;
    return outer;
}

static inline void export_end(uint64_t outer) { thread_current()->driver_caller = outer; }

#define CALLER ((uint64_t)__builtin_return_address(0))

/* Arguments come untyped, so a routine is declared here without its type, by its symbol. */
#define THUNK(irql, name, n, symbol)                                                               \
    extern uint64_t untyped_##name(P_##n) __asm__(symbol);                                         \
    static NTAPI uint64_t thunk_##name(P_##n)                                                      \
    {                                                                                              \
        uint64_t outer = export_begin(#name, irql, CALLER);                                        \
        uint64_t result = untyped_##name(A_##n);                                                   \
        export_end(outer);                                                                         \
        return result;                                                                             \
    }
#define ROUTINE(irql, name, n) THUNK(irql, name, n, #name)
#define DRIVERS(irql, name, n) THUNK(irql, name, n, "driver_" #name)
#define AS_IS(name) extern char name[];
#include "kernel/driver/export_list.h"
#undef ROUTINE
#undef DRIVERS
#undef AS_IS

/* Services: a driver's pointers are trusted as the kernel's own, also in a thread of ring 3. */
#define NT_SERVICE(number, name, n)                                                                \
    extern uint64_t untyped_Nt##name(P_##n) __asm__("Nt" #name);                                   \
    static NTAPI uint64_t service_##name(P_##n)                                                    \
    {                                                                                              \
        uint64_t outer = export_begin("Zw" #name, PASSIVE_LEVEL, CALLER);                          \
        thread_current()->trusted++;                                                               \
        uint64_t result = untyped_Nt##name(A_##n);                                                 \
        thread_current()->trusted--;                                                               \
        export_end(outer);                                                                         \
        return result;                                                                             \
    }
#define OWN_SERVICE(number, stub, routine, n)
#include "kernel/nt/service_list.h"
#undef NT_SERVICE

static const struct exported {
    const char *name;
    void *address;
} exports[] = {
#define ROUTINE(irql, name, n) { #name, (void *)thunk_##name },
#define DRIVERS(irql, name, n) ROUTINE(irql, name, n)
#define AS_IS(name) { #name, name },
#include "kernel/driver/export_list.h"
#define NT_SERVICE(number, name, n)                                                                \
    { "Nt" #name, (void *)service_##name }, { "Zw" #name, (void *)service_##name },
#include "kernel/nt/service_list.h"
};

void *export_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(exports); i++)
        if (!strcmp(exports[i].name, name))
            return exports[i].address;
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
