/* SPDX-License-Identifier: MIT */
/* What the BIOS says of memory to a foreign guest that goes back to real mode and asks it. Linux by
 * its 64-bit entry does not; Xen and boot loaders do. One CPU. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* From now on INT 15h reports no memory from `end` on, up to the end of that range: there we are.
 * Without a BIOS it does nothing. Before the guest starts. */
void bios_hide(uint64_t end);
/* Whether this exit by VMMCALL is one of the code that bios_hide left; then RIP is after it.
 */
bool bios_call(struct vcpu *v);
