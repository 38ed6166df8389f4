/* SPDX-License-Identifier: MIT */
/* UARTs, set by us; and one as a console, whose callers hold print's lock.
 * Source: PC16550D data sheet, "Line Status Register", "Scratchpad Register". */
#include "kernel/console/serial.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"

enum { DATA = 0, IER = 1, FCR = 2, LCR = 3, MCR = 4, LSR = 5, SCRATCH = 7 };
#define LSR_RECEIVED 0x01
#define LSR_EMPTY 0x20
#define LSR_SENT 0x40
#define POLL_LIMIT                                                                                 \
    1000000 /* port reads: far longer than the 1.4 ms of 16 bytes, even if reads are quick */

static struct serial console;

bool serial_open(struct serial *serial, uint16_t port)
{
    *serial = (struct serial){ .port = port };
    out8(port + SCRATCH, 0x5a);
    if (in8(port + SCRATCH) != 0x5a)
        return false;
    out8(port + IER, 0);
    out8(port + LCR, 0x80); /* divisor latch */
    out8(port + DATA, 1);   /* 115200 */
    out8(port + IER, 0);
    out8(port + LCR, 0x03); /* 8N1 */
    out8(port + FCR, 0x07);
    out8(port + MCR, 0x03);
    /* Bits 7:6 of the interrupt identification: the FIFOs are on. */
    serial->fifo = (in8(port + FCR) & 0xc0) == 0xc0 ? 16 : 1;
    return serial->present = true;
}

static bool wait_for_space(struct serial *serial)
{
    for (unsigned polls = 0; !(in8(serial->port + LSR) & LSR_EMPTY); polls++) {
        if (polls == POLL_LIMIT)
            return serial->present = false;
        pause();
    }
    serial->space = serial->fifo;
    return true;
}

bool serial_write(struct serial *serial, const void *bytes, size_t count)
{
    const uint8_t *next = bytes;
    while (count && serial->present && (serial->space || wait_for_space(serial))) {
        /* No OUTS: the virtual PMU would step its page wherever instructions are counted. */
        for (; count && serial->space; count--, serial->space--)
            out8(serial->port + DATA, *next++);
    }
    return serial->present;
}

static void put_on_serial(char c)
{
    serial_write(&console, c == '\n' ? "\r\n" : &c, c == '\n' ? 2 : 1);
}

static void drain(void)
{
    for (unsigned polls = 0;
         console.present && polls < POLL_LIMIT && !(in8(console.port + LSR) & LSR_SENT); polls++)
        pause();
}

bool serial_init(uint16_t port)
{
    static const struct console uart = { .put = put_on_serial, .drain = drain };
    const bool found = serial_open(&console, port);
    if (!found)
        serial_open(&console, COM1);
    print_add_console(&uart);
    return found;
}

bool serial_received(void)
{
    if (!console.present || !(in8(console.port + LSR) & LSR_RECEIVED))
        return false;
    in8(console.port + DATA);
    return true;
}
