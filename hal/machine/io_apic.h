/* SPDX-License-Identifier: MIT */
/* The interrupt controllers that devices are wired to. No device interrupts us. */
#pragma once
#include <stdint.h>

/* Boot CPU, before interrupts are on: masks every line of the controllers at these physical
 * addresses, which the direct map reaches. An address without a controller is ignored. Returns
 * how many lines firmware had left unmasked. */
void io_apic_mask(const uint32_t *addresses, unsigned count);
