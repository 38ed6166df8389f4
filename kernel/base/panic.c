/* SPDX-License-Identifier: MIT */
/* The end: what is known is printed once, by the CPU that fell first; NMIs stop the others. */
#include "kernel/base/panic.h"
#include "kernel/base/upcalls.h"
#include "kernel/base/assert.h"
#include "kernel/base/cpu.h"
#include "kernel/base/exit.h"
#include "kernel/base/machine_check.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/vectors.h"
#include "kernel/base/x86.h"

static uint32_t dying;
static void (*stop_others)(void); /* written at boot, as the next */
static void (*end_machine)(unsigned exit_code) = exit_to_host;

extern char text_start[], text_end[];

/* Whether a frame pointer can be followed: all our stacks are in the direct map or the image. */
static bool plausible(uint64_t rbp)
{
    return (rbp & 7) == 0 &&
           ((rbp >= DIRECT_MAP && rbp < DIRECT_MAP + (1ul << 32) - 16) || rbp >= KERNEL_VMA);
}

/* Made by the Makefile, sorted: the low 32 bits of an address, then a name with its NUL. */
extern const char symbols_start[], symbols_end[];

const char *symbol_of(uint64_t address, uint32_t *offset)
{
    const char *name = "?";
    uint32_t start = (uint32_t)address, low;
    for (const char *s = symbols_start; s < symbols_end;
         s += sizeof low + strlen(s + sizeof low) + 1) {
        memcpy(&low, s, sizeof low);
        if (low > (uint32_t)address)
            break;
        name = s + sizeof low;
        start = low;
    }
    *offset = (uint32_t)address - start;
    return name;
}

/* back: 1 where a call returns to, which is the next function if the call is the last instruction.
 */
static void print_place(uint64_t address, unsigned back)
{
    uint32_t offset;
    const char *name = symbol_of(address - back, &offset);
    print("#   %lx %s+0x%x\n", address, name, offset + back);
}

static void print_owner(uint64_t address)
{
    char text[96] = "";
    if (panic_owner)
        panic_owner(address, text, sizeof text);
    if (*text)
        print("#   %lx %s\n", address, text);
}

static void backtrace(uint64_t rbp)
{
    print("# backtrace:\n");
    for (unsigned depth = 0; depth < 16 && plausible(rbp); depth++) {
        const uint64_t *frame = (const uint64_t *)rbp;
        if (frame[1] < (uint64_t)text_start || frame[1] >= (uint64_t)text_end) {
            print_owner(frame[1]); /* it keeps no frame pointer */
            break;
        }
        print_place(frame[1], 1);
        rbp = frame[0];
    }
}

void panic_init(void (*stop)(void), void (*end)(unsigned exit_code))
{
    stop_others = stop;
    end_machine = end;
}

__attribute__((noreturn)) static void end_panic(unsigned exit_code)
{
    end_machine(exit_code);
    for (;;)
        cli_hlt();
}

/* A CPU that panics in its own panic, on a damaged stack, ends the machine as the first one would
 * have. */
static void begin_panic(unsigned exit_code)
{
    static unsigned first_code;
    uint32_t me = cpu_count ? cpu_number() + 1 : 1, before = 0;
    cli();
    if (!__atomic_compare_exchange_n(&dying, &before, me, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        if (before == me)
            end_panic(first_code);
        for (;;)
            cli_hlt();
    }
    first_code = exit_code;
    print_break_lock();
    if (cpu_count > 1 && stop_others)
        stop_others();
}

void panic_stop_if_dying(void)
{
    if (__atomic_load_n(&dying, __ATOMIC_ACQUIRE))
        for (;;)
            cli_hlt();
}

__attribute__((noreturn)) static void end_by(unsigned exit_code, uint64_t frame)
{
    print("\n# rsp %lx rflags %lx cr0 %lx cr2 %lx cr3 %lx cr4 %lx cr8 %lx\n", frame, read_flags(),
          read_cr0(), read_cr2(), read_cr3(), read_cr4(), read_cr8());
    backtrace(frame);
    end_panic(exit_code);
}

void panic(const char *format, ...)
{
    va_list args;
    begin_panic(EXIT_PANIC);
    print("\n# PANIC on CPU %u: ", cpu_count ? cpu_number() : 0);
    va_start(args, format);
    print_va(format, args);
    va_end(args);
    end_by(EXIT_PANIC, (uint64_t)__builtin_frame_address(0));
}

void panic_fail(const char *format, ...)
{
    va_list args;
    begin_panic(EXIT_FAIL);
    print("\n# FAIL ");
    va_start(args, format);
    print_va(format, args);
    va_end(args);
    end_by(EXIT_FAIL, (uint64_t)__builtin_frame_address(0));
}

void panic_trap(const struct trap_frame *f, uint64_t fault_address)
{
    if (panic_first)
        panic_first(f, fault_address);
    begin_panic(EXIT_PANIC);
    print("\n# PANIC on CPU %u: exception %lu, error %lx, address %lx\n",
          cpu_count ? cpu_number() : 0, f->vector, f->error, fault_address);
    machine_check_print();
    print("# rip %lx cs %lx rflags %lx rsp %lx cr3 %lx cr8 %lx\n", f->rip, f->cs, f->rflags, f->rsp,
          read_cr3(), read_cr8());
    print("# rax %lx rbx %lx rcx %lx rdx %lx rsi %lx rdi %lx rbp %lx\n", f->rax, f->rbx, f->rcx,
          f->rdx, f->rsi, f->rdi, f->rbp);
    print("# r8 %lx r9 %lx r10 %lx r11 %lx r12 %lx r13 %lx r14 %lx r15 %lx\n", f->r8, f->r9, f->r10,
          f->r11, f->r12, f->r13, f->r14, f->r15);
    if (f->rip >= (uint64_t)text_start && f->rip < (uint64_t)text_end)
        print_place(f->rip, 0);
    else
        print_owner(f->rip);
    backtrace(f->rbp);
    end_panic(EXIT_PANIC);
}
