/* SPDX-License-Identifier: MIT */
/* The end on a machine without a host that takes an exit code: the screen stays until a key is
 * pressed or a character comes by the serial line. Both are polled. USB keyboards work only where
 * firmware emulates a keyboard controller; where none answers, the screen stays for a time. Source:
 * ACPI 6.4 "Reset Register"; Intel 300 Series PCH data sheet, "Reset Control Register"; IBM PC/AT,
 * "8042 Keyboard Controller", "Keyboard". */
#include "hal/machine/reboot.h"
#include "hal/machine/clock.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/exit.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/console/serial.h"
#include "kernel/mm/phys.h"

BOOT_OPTIONS("restart=");

enum { KEYBOARD_DATA = 0x60, KEYBOARD_STATUS = 0x64, RESET_CONTROL = 0xcf9 };
enum { STATUS_FULL = 0x01, STATUS_BUSY = 0x02, STATUS_MOUSE = 0x20, KEY_RELEASED = 0x80 };
enum { PULSE_RESET = 0xfe, ENABLE_KEYBOARD = 0xae, ECHO = 0xee };
enum { PCI_ADDRESS = 0xcf8, PCI_DATA = 0xcfc, PCI_ENABLE = 1u << 31 };
#define POLLS 50000u /* of a port, at least 1 us each; a keyboard answers within 20 ms */
#define RESTART_SECONDS 300u
#define GUESSED_HZ 3000000000u /* of the TSC, before the clock is known */

static struct reset_register firmwares; /* written at boot */
static bool keyboard_denied;            /* written at boot */

void machine_reset_by(const struct reset_register *reset, bool no_keyboard)
{
    firmwares = *reset;
    keyboard_denied = no_keyboard;
}

/* Whether a key went down since the last call. A port that nobody decodes reads FFh. */
static bool key_pressed(void)
{
    uint8_t status = in8(KEYBOARD_STATUS);
    if (status == 0xff || !(status & STATUS_FULL))
        return false;
    uint8_t code = in8(KEYBOARD_DATA);
    return !(status & STATUS_MOUSE) && !(code & KEY_RELEASED);
}

/* Whether a keyboard, or firmware in its place, answers to "Echo". */
static bool keyboard_answers(void)
{
    if (keyboard_denied || in8(KEYBOARD_STATUS) == 0xff)
        return false;
    out8(KEYBOARD_STATUS, ENABLE_KEYBOARD);
    for (unsigned i = 0; i < POLLS && in8(KEYBOARD_STATUS) & STATUS_BUSY; i++)
        ;
    for (unsigned i = 0; i < 32; i++)
        key_pressed(); /* drops what was typed before */
    out8(KEYBOARD_DATA, ECHO);
    for (unsigned i = 0; i < POLLS; i++)
        if (in8(KEYBOARD_STATUS) & STATUS_FULL && in8(KEYBOARD_DATA) == ECHO)
            return true;
    return false;
}

static void write_firmwares(const struct reset_register *r)
{
    uint64_t at = r->address;
    if (r->space == RESET_IN_PORTS) {
        out8((uint16_t)at, r->value);
    } else if (r->space == RESET_IN_MEMORY) {
        *(volatile uint8_t *)phys_to_virt(at) = r->value;
    } else {
        out32(PCI_ADDRESS,
              (uint32_t)(PCI_ENABLE | (at >> 32) << 11 | (at >> 16 & 7) << 8 | (at & 0xfc)));
        out8((uint16_t)(PCI_DATA + (at & 3)), r->value);
    }
}

static void reboot(void)
{
    struct table_register none = { 0, 0 };
    if (firmwares.known) {
        write_firmwares(&firmwares);
        for (unsigned i = 0; i < 1000000; i++)
            pause();
    }
    out8(RESET_CONTROL, 0x02);
    out8(RESET_CONTROL, 0x06);
    out8(KEYBOARD_STATUS, PULSE_RESET);
    for (unsigned i = 0; i < 1000000; i++)
        pause();
    lidt(&none);
    asm volatile("int3");
}

static uint64_t seconds(void)
{
    return clock_tsc_hz ? clock_ns() / 1000000000 : rdtsc() / GUESSED_HZ;
}

/* The option restart=N: so many seconds; 0: for ever. */
static unsigned restart_seconds(void)
{
    char value[8];
    unsigned n = 0;
    if (!boot_option("restart", value, sizeof value))
        return RESTART_SECONDS;
    for (const char *digit = value; *digit >= '0' && *digit <= '9'; digit++)
        n = n * 10 + (unsigned)(*digit - '0');
    return n;
}

#define THE_END " The end. No disk was written to. "

/* Until that second, or for ever. */
static void wait_for_key(uint64_t end)
{
    uint64_t now = seconds(), shown = end;
    do {
        if (end && now != shown)
            print_status(THE_END "No keyboard is seen: a restart in %lu s.", end - now);
        shown = now;
        pause();
        now = seconds();
    } while ((!end || now < end) && !key_pressed() && !serial_received());
}

static void reboot_on_key(void)
{
    unsigned after = restart_seconds();
    bool answers = keyboard_answers();
    if (answers || !after)
        print_status(THE_END "%s", answers ? "Any key restarts the machine."
                                           : "No keyboard is seen: turn it off.");
    wait_for_key(answers || !after ? 0 : seconds() + after);
    reboot();
}

void machine_exit(unsigned code)
{
    exit_to_host(code);
    reboot_on_key();
    for (;;)
        cli_hlt();
}
