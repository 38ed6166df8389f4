/* SPDX-License-Identifier: MIT */
/* copy_in and copy_out. Page faults on the user's side end the copy through the fault table; SMAP
 * is open only around the accesses. */
#include "kernel/base/assert.h"
#include "kernel/base/cpu.h"
#include "kernel/base/sanitize/kasan.h"
#include "kernel/base/x86.h"
#include "kernel/ke/copy.h"
#include "kernel/ke/thread.h"
#include "kernel/mm/vm.h"

/* Returns false if an access faulted. */
static bool copy_words(void *to, const void *from, size_t size)
{
    uint64_t scratch = 0, left = size;
    asm volatile("jmp 4f\n"
                 "1: movq (%[from]),%[scratch]\n"
                 "2: movq %[scratch],(%[to])\n"
                 "add $8,%[from]\nadd $8,%[to]\nsub $8,%[left]\n"
                 "4: cmp $8,%[left]\njae 1b\n"
                 "test %[left],%[left]\njz 9f\n"
                 "5: movb (%[from]),%b[scratch]\n"
                 "6: movb %b[scratch],(%[to])\n"
                 "inc %[from]\ninc %[to]\ndec %[left]\njnz 5b\n"
                 "9:\n" FIXUP("1b", "9b") FIXUP("2b", "9b") FIXUP("5b", "9b") FIXUP("6b", "9b")
                 : [to] "+r"(to), [from] "+r"(from), [left] "+r"(left), [scratch] "+r"(scratch)
                 :
                 : "rax", "memory", "cc");
    return left == 0;
}

static NTSTATUS copy_user(void *to, const void *from, size_t size)
{
    uint64_t flags = read_flags();
    if (cpu_features.smap)
        write_flags(flags | RFLAGS_AC); /* STAC, but see entry.asm */
    bool done = copy_words(to, from, size);
    write_flags(flags);
    return done ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION;
}

/* A driver that calls a service passes kernel addresses. */
static bool allowed(const void *user, size_t size)
{
    return user_range(user, size) || thread_current()->trusted;
}

NTSTATUS copy_in(void *to, const void *user, size_t size)
{
    kasan_check(to, size, true);
    return allowed(user, size) ? copy_user(to, user, size) : STATUS_ACCESS_VIOLATION;
}

NTSTATUS copy_probe(void *user, size_t size)
{
    return allowed(user, size) ? copy_user(user, user, size) : STATUS_ACCESS_VIOLATION;
}

/* With FILLED=1, by gcc's pattern and clang's: what lies between fields of a local, or was never
 * written, is the kernel's own. */
static void check_written(const void *from, size_t size)
{
    const uint32_t *words = from;
    for (size_t i = 0; FILLED_ON && i < size / sizeof *words; i++)
        if (words[i] == 0xfefefefe || words[i] == 0xaaaaaaaa)
            panic("copy_out of %lu bytes: what is sent at +%lxh was never written", size,
                  i * sizeof *words);
}

NTSTATUS copy_out(void *user, const void *from, size_t size)
{
    kasan_check(from, size, false);
    check_written(from, size);
    return allowed(user, size) ? copy_user(user, from, size) : STATUS_ACCESS_VIOLATION;
}
