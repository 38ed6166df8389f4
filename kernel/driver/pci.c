/* SPDX-License-Identifier: MIT */
/* PCI's configuration space by its two ports. Sources: PCI Local Bus Specification, "Configuration
 * mechanism"; the Windows driver documentation of HalGetBusDataByOffset. */
#include "kernel/base/irql.h"
#include "kernel/base/lock.h"
#include "kernel/base/x86.h"
#include "kernel/driver/driver.h"

#define PCI_ADDRESS 0xcf8
#define PCI_DATA 0xcfc
#define PCI_CONFIGURATION 4 /* BUS_DATA_TYPE */
#define PCI_SPACE 256u
#define PCI_BUSES 256u
#define NO_DEVICE 0xffffu
#define NO_DEVICE_SIZE 2u

static struct lock pci_lock = LOCK("PCI", HIGH_LEVEL); /* the two ports */

/* Slot: the device in bits 4:0, the function in 7:5. */
static uint32_t address_of(ULONG bus, ULONG slot, ULONG offset)
{
    return 0x80000000u | bus << 16 | (slot & 31) << 11 | (slot >> 5 & 7) << 8 | (offset & 0xfc);
}

static uint32_t access(ULONG bus, ULONG slot, ULONG offset, uint32_t value, uint32_t changed)
{
    KIRQL irql = lock_acquire(&pci_lock);
    out32(PCI_ADDRESS, address_of(bus, slot, offset));
    uint32_t was = in32(PCI_DATA);
    if (changed)
        out32(PCI_DATA, (was & ~changed) | value);
    lock_release(&pci_lock, irql);
    return was;
}

static bool is_there(ULONG bus, ULONG slot)
{
    return (access(bus, slot, 0, 0, 0) & 0xffff) != NO_DEVICE;
}

static ULONG part(ULONG offset, ULONG length)
{
    ULONG room = offset < PCI_SPACE ? PCI_SPACE - offset : 0;
    return length < room ? length : room;
}

/* Returns how many bytes were read; 2, and NO_DEVICE in the buffer: there is no such device; 0: no
 * such bus, or a bus of another kind. */
ULONG driver_HalGetBusDataByOffset(uint64_t where, ULONG BusDataType, ULONG BusNumber,
                                   ULONG SlotNumber, PVOID Buffer, ULONG Offset, ULONG Length)
{
    UCHAR *to = Buffer;
    const ULONG count = part(Offset, Length);
    (void)where;
    if (BusDataType != PCI_CONFIGURATION || BusNumber >= PCI_BUSES)
        return 0;
    if (!is_there(BusNumber, SlotNumber)) {
        for (ULONG i = 0; i < Length && i < NO_DEVICE_SIZE; i++)
            to[i] = 0xff;
        return NO_DEVICE_SIZE;
    }
    for (ULONG i = 0; i < count; i++)
        to[i] = (UCHAR)(access(BusNumber, SlotNumber, Offset + i, 0, 0) >> (Offset + i) % 4 * 8);
    return count;
}

/* Returns how many bytes were written, in words of 32 bits whose other bytes stay as they are. */
ULONG driver_HalSetBusDataByOffset(uint64_t where, ULONG BusDataType, ULONG BusNumber,
                                   ULONG SlotNumber, PVOID Buffer, ULONG Offset, ULONG Length)
{
    const UCHAR *from = Buffer;
    const ULONG end = Offset + part(Offset, Length);
    (void)where;
    if (BusDataType != PCI_CONFIGURATION || BusNumber >= PCI_BUSES ||
        !is_there(BusNumber, SlotNumber))
        return 0;
    for (ULONG at = Offset; at < end;) {
        uint32_t value = 0, changed = 0;
        ULONG word = at & ~3u;
        for (; at < end && at < word + 4; at++) {
            changed |= 0xffu << at % 4 * 8;
            value |= (uint32_t)*from++ << at % 4 * 8;
        }
        access(BusNumber, SlotNumber, word, value, changed);
    }
    return end - Offset;
}
