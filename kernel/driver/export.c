/* SPDX-License-Identifier: MIT */
/* Drivers use Microsoft's x64 calling convention, the kernel that of System V: each line of
 * export_list.h becomes one thunk between them. A thunk checks the IRQL first: a routine called
 * above its highest is bug check 0Ah, with the IRQL, the routine's highest and the caller. NT:
 * Windows notices that later or not at all; Driver Verifier does it here. */
#include "kernel/driver/export.h"
#include "hal/hal.h"
#include "kernel/base/bits.h"
#include "kernel/base/irql.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/bugcheck.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/io.h"
#include "kernel/driver/nt_driver.h"
#include "kernel/image.h"
#include "kernel/ke/dispatcher.h"
#include "kernel/ke/etw.h"
#include "kernel/ke/exception.h"
#include "kernel/ke/process.h"
#include "kernel/ke/suspend.h"
#include "kernel/ke/thread_context.h"
#include "kernel/ke/synchronization.h"
#include "kernel/ke/thread.h"
#include "kernel/ke/thread_profiling.h"
#include "kernel/profiling/counter_config.h"
#include "kernel/profiling/profile.h"
#include "kernel/services.h"

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
/* These arguments after another one: the address of the caller. */
#define C_0
#define C_1 , A_1
#define C_2 , A_2
#define C_3 , A_3
#define C_4 , A_4
#define C_5 , A_5
#define C_6 , A_6
#define C_7 , A_7
#define C_8 , A_8
#define C_9 , A_9
#define T_0 uint64_t
#define T_1 T_0, uint64_t
#define T_2 T_1, uint64_t
#define T_3 T_2, uint64_t
#define T_4 T_3, uint64_t
#define T_5 T_4, uint64_t
#define T_6 T_5, uint64_t
#define T_7 T_6, uint64_t
#define T_8 T_7, uint64_t
#define T_9 T_8, uint64_t

#define WHERE ((uint64_t)__builtin_return_address(0))

__attribute__((noinline, cold)) static void wrong_irql(const char *name, KIRQL highest,
                                                       uint64_t where)
{
    char words[96];
    uint64_t irql = irql_current();
    print_to(words, sizeof words, "%s at IRQL %lu, its highest is %u", name, irql, highest);
    bug_check(IRQL_NOT_LESS_OR_EQUAL, (uint64_t[]){ where, irql, 8, where }, where, words);
}

static inline void check_irql(const char *name, KIRQL highest, uint64_t where)
{
    if (irql_current() > highest)
        wrong_irql(name, highest, where);
}

/* A routine by a pointer without its type, as arguments come untyped. */
typedef void (*untyped)(void);

static inline untyped hide(untyped f)
{
    asm("" : "+r"(f));
    return f;
}

#define ROUTINE(irql, name, n)                                                                     \
    static NTAPI uint64_t thunk_##name(P_##n)                                                      \
    {                                                                                              \
        check_irql(#name, irql, WHERE);                                                            \
        return ((uint64_t(*)(P_##n))hide((untyped)name))(A_##n);                                   \
    }
#define CALLED(irql, name, n)                                                                      \
    void driver_##name(void);                                                                      \
    static NTAPI uint64_t thunk_##name(P_##n)                                                      \
    {                                                                                              \
        check_irql(#name, irql, WHERE);                                                            \
        return ((uint64_t(*)(T_##n))hide(driver_##name))(WHERE C_##n);                             \
    }
#define AS_IS(name) extern char name[];
#include "kernel/driver/export_list.h"
#undef ROUTINE
#undef CALLED
#undef AS_IS

/* Services: a driver's pointers are the kernel's own, whoever's thread it is in. */
#define NT_SERVICE(number, name, n)                                                                \
    static NTAPI uint64_t service_##name(P_##n)                                                    \
    {                                                                                              \
        check_irql("Zw" #name, PASSIVE_LEVEL, WHERE);                                              \
        struct thread *me = thread_current();                                                      \
        me->trusted++;                                                                             \
        uint64_t result = ((uint64_t(*)(P_##n))hide((untyped)Nt##name))(A_##n);                    \
        me->trusted--;                                                                             \
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
#define CALLED(irql, name, n) { #name, (void *)thunk_##name },
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
