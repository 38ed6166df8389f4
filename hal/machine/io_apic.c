/* SPDX-License-Identifier: MIT */
/* Masks the lines that firmware left unmasked: a level-triggered line without a handler would
 * interrupt the boot CPU for ever. Lines that deliver an SMI or an NMI belong to the platform
 * and are not changed. Boot CPU; no lock. Source: Intel 82093AA data sheet; its successors have
 * more lines. */
#include "hal/machine/io_apic.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"

enum { INDEX = 0, DATA = 0x10, VERSION = 1, REDIRECTION = 0x10 };
#define LINES_MAX 240
#define LINE_MASKED (1u << 16)
#define DELIVERY 0x700u
#define DELIVER_SMI 0x200u
#define DELIVER_NMI 0x400u
#define VERSION_RESERVED 0xff007f00u

static volatile uint32_t *at(uint32_t base, unsigned reg)
{
    return (volatile uint32_t *)(DIRECT_MAP + base + reg);
}

static uint32_t read_pin(uint32_t base, unsigned index)
{
    *at(base, INDEX) = index;
    return *at(base, DATA);
}

static unsigned mask_lines(uint32_t base)
{
    uint32_t version = read_pin(base, VERSION);
    unsigned lines = (version >> 16 & 0xff) + 1, open = 0;
    if (version & VERSION_RESERVED || !(version & 0xff) || lines > LINES_MAX)
        return 0;
    for (unsigned i = 0; i < lines; i++) {
        uint32_t low = read_pin(base, REDIRECTION + 2 * i);
        if (low & LINE_MASKED || (low & DELIVERY) == DELIVER_SMI || (low & DELIVERY) == DELIVER_NMI)
            continue;
        *at(base, DATA) = low | LINE_MASKED;
        open++;
    }
    return open;
}

void io_apic_mask(const uint32_t *addresses, unsigned count)
{
    unsigned open = 0;
    while (count--)
        open += mask_lines(addresses[count]);
    if (open)
        print("# io apic: firmware had left %u lines open: masked\n", open);
}
