/* SPDX-License-Identifier: MIT */
/* The guest's memory and code. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/insn.h"

struct vcpu;

/* Whether the bits that are unused, and the one below them, are the same; by the guest's CR4. */
static inline bool is_canonical(uint64_t address, unsigned unused)
{
    return (uint64_t)((int64_t)(address << unused) >> unused) == address;
}
bool guest_is_canonical(const struct vcpu *v, uint64_t address);
/* Copies from the guest's address space; how many bytes could be read. */
unsigned guest_read(const struct vcpu *v, uint64_t address, void *to, unsigned size);
/* As ring 0; false: nothing is written. Up to a page. */
bool guest_write(const struct vcpu *v, uint64_t address, const void *from, unsigned size);
bool guest_write64(const struct vcpu *v, uint64_t address, uint64_t value);
/* The physical address; UINT64_MAX: not mapped, or out of reach. */
uint64_t guest_physical(const struct vcpu *v, uint64_t address);
bool guest_in_long_mode(const struct vcpu *v);
/* The host's address of a page of RAM below 4 GB, by the loader's map, without what lies between
 * 640 KB and 1 MB; NULL: none. */
uint8_t *guest_ram_page(uint64_t page);
/* Takes the instruction at RIP apart; zeros stand for what cannot be read. */
void guest_insn(const struct vcpu *v, struct insn *i);
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, NO_REGISTER = INSN_NONE };
uint64_t guest_register(const struct vcpu *v, unsigned number);
/* The host's address of a page of RAM that the guest may access in this way at its CPL, in 64-bit
 * mode, if the access changes nothing of the page tables. NULL: the processor must do it. */
enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_EXECUTE, ACCESSES };
uint8_t *guest_page(const struct vcpu *v, uint64_t address, enum access access);
