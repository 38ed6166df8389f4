/* SPDX-License-Identifier: MIT */
/* The end on a machine without a host that takes an exit code: the screen stays until a key is
 * pressed or a character comes by the serial line. Both are polled. USB keyboards work only where
 * firmware emulates a keyboard controller. Source: Intel 300 Series PCH data sheet, "Reset Control
 * Register"; IBM PC/AT, "8042 Keyboard Controller". */
#include "hal/reboot.h"
#include "kernel/base/exit.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"
#include "kernel/console/serial.h"

enum { KEYBOARD_DATA = 0x60, KEYBOARD_STATUS = 0x64, RESET_CONTROL = 0xcf9 };
enum { STATUS_FULL = 0x01, STATUS_MOUSE = 0x20, KEY_RELEASED = 0x80, PULSE_RESET = 0xfe };

/* Whether a key went down since the last call. A port that nobody decodes reads FFh. */
static bool key_pressed(void)
{
    uint8_t status = in8(KEYBOARD_STATUS);
    if (status == 0xff || !(status & STATUS_FULL))
        return false;
    uint8_t code = in8(KEYBOARD_DATA);
    return !(status & STATUS_MOUSE) && !(code & KEY_RELEASED);
}

static void reboot(void)
{
    struct table_register none = { 0, 0 };
    out8(RESET_CONTROL, 0x02);
    out8(RESET_CONTROL, 0x06);
    out8(KEYBOARD_STATUS, PULSE_RESET);
    for (unsigned i = 0; i < 1000000; i++)
        pause();
    lidt(&none);
    asm volatile("int3");
}

static void reboot_on_key(void)
{
    print_status(" The end. No disk was written to. Any key restarts the machine.");
    for (unsigned i = 0; i < 32; i++)
        key_pressed(); /* drops what was typed before */
    while (!key_pressed() && !serial_received())
        pause();
    reboot();
}

void machine_exit(unsigned code)
{
    exit_to_host(code);
    reboot_on_key();
    for (;;)
        cli_hlt();
}
