/* SPDX-License-Identifier: MIT */
/* Any IRQL, no lock. Sources: bugcodes.h; "Bug Check Code Reference" for the parameters. */
#include "kernel/driver/bugcheck.h"
#include "kernel/base/assert.h"
#include "kernel/base/panic.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"
#include "kernel/driver/driver.h"
#include "kernel/ke/thread.h"
#include "kernel/nt/nt.h"
#include "kernel/trap.h"

/* Made by the Makefile from the headers: a number of 32 bits, then its name with a NUL. */
extern const char code_names[], code_names_end[];

const char *code_name(uint32_t code, const char *otherwise)
{
    uint32_t number;
    for (const char *s = code_names; s < code_names_end;
         s += sizeof number + strlen(s + sizeof number) + 1) {
        memcpy(&number, s, sizeof number);
        if (number == code)
            return s + sizeof number;
    }
    return otherwise;
}

void bug_check_at(uint64_t where, unsigned code, const uint64_t p[4], const char *words)
{
    char place[96];
    driver_place(where, place, sizeof place);
    (*place ? panic_fail : panic)("bug check 0x%08x %s (0x%lx, 0x%lx, 0x%lx, 0x%lx)%s%s%s%s", code,
                                  code_name(code, "a driver's own"), p[0], p[1], p[2], p[3],
                                  *place ? " in " : "", place, *words ? ": " : "", words);
}

void bug_check(unsigned code, const uint64_t parameters[4], const char *words)
{
    bug_check_at(driver_caller(), code, parameters, words);
}

uint64_t bug_check_place(const struct trap_frame *f, uint64_t address)
{
    return f->vector == EXC_PAGE_FAULT && f->rip == address ? *(const uint64_t *)f->rsp : f->rip;
}

void bug_check_exception(uint64_t status, const struct trap_frame *f, uint64_t address)
{
    char words[96];
    const uint64_t where = bug_check_place(f, address);
    if (f->vector || f->rsp)
        print_to(words, sizeof words, "exception %lu, address 0x%lx, IRQL %lu", f->vector, address,
                 read_cr8());
    else
        print_to(words, sizeof words, "raised, IRQL %lu", read_cr8());
    if (thread_current()->process)
        bug_check_at(where, KMODE_EXCEPTION_NOT_HANDLED,
                     (uint64_t[]){ status, f->rip, f->error, address }, words);
    bug_check_at(where, SYSTEM_THREAD_EXCEPTION_NOT_HANDLED,
                 (uint64_t[]){ status, f->rip, (uint64_t)f, 0 }, words);
}
