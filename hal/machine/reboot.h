/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Where a byte resets the machine, by ACPI's "Generic Address Structure". */
enum { RESET_IN_MEMORY, RESET_IN_PORTS, RESET_IN_PCI };

struct reset_register {
    uint64_t address; /* of PCI: device << 32 | function << 16 | offset, on bus 0 */
    uint8_t space, value;
    bool known;
};

/* Once, when firmware's tables were read: how the machine is reset, and whether they deny a PS/2
 * keyboard. */
void machine_reset_by(const struct reset_register *reset, bool no_keyboard);
/* Ends the run: the host gets `code` (exit.h). Without a host a key resets the machine, or where no
 * keyboard is seen the end of a time that the screen counts down. */
__attribute__((noreturn)) void machine_exit(unsigned code);
