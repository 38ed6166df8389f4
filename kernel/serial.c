/* SPDX-License-Identifier: MIT */
/* COM1, 115200 8N1, set by us. Polled with a bound; where no UART answers, nothing is written.
 * Callers hold print's lock. Source: PC16550D data sheet, "Line Status Register", "Scratchpad Register". */
#include "kernel/print.h"
#include "kernel/x86.h"

#define COM1 0x3f8
enum { DATA = 0, IER = 1, FCR = 2, LCR = 3, MCR = 4, LSR = 5, SCRATCH = 7 };
#define LSR_RECEIVED 0x01
#define LSR_EMPTY 0x20
#define POLL_LIMIT 100000 /* port reads, far more than the 87 us of one byte */

static bool present;
static unsigned fifo; /* bytes that fit at once */
static unsigned room; /* of these, free for sure */

void serial_init(void)
{
    /* Both PICs masked first: nothing of ours uses them, and firmware may have left them open. */
    out8(0x21, 0xff);
    out8(0xa1, 0xff);
    out8(COM1 + SCRATCH, 0x5a);
    if (in8(COM1 + SCRATCH) != 0x5a)
        return;
    out8(COM1 + IER, 0);
    out8(COM1 + LCR, 0x80); /* divisor latch */
    out8(COM1 + DATA, 1);   /* 115200 */
    out8(COM1 + IER, 0);
    out8(COM1 + LCR, 0x03); /* 8N1 */
    out8(COM1 + FCR, 0x07);
    out8(COM1 + MCR, 0x03);
    fifo = (in8(COM1 + FCR) & 0xc0) == 0xc0 ? 16 : 1; /* as the interrupt identification says */
    present = true;
}

void serial_put(char c)
{
    if (!present)
        return;
    unsigned polls = 0;
    while (!room && !(in8(COM1 + LSR) & LSR_EMPTY))
        if (++polls == POLL_LIMIT) {
            present = false;
            return;
        }
    room = (room ? room : fifo) - 1;
    out8(COM1 + DATA, (uint8_t)c);
}

bool serial_received(void)
{
    if (!present || !(in8(COM1 + LSR) & LSR_RECEIVED))
        return false;
    in8(COM1 + DATA);
    return true;
}
