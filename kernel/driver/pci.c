/* SPDX-License-Identifier: MIT */
/* PCI's configuration space by its two ports. Sources: PCI Local Bus Specification, "Configuration
 * mechanism"; the Windows driver documentation of HalGetBusDataByOffset. */
#include "kernel/base/lock.h"
#include "kernel/base/string.h"
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

static uint32_t read_port(uint16_t port, ULONG size)
{
    return size == 4 ? in32(port) : size == 2 ? in16(port) : in8(port);
}

static void write_port(uint16_t port, ULONG size, uint32_t value)
{
    if (size == 4)
        out32(port, value);
    else if (size == 2)
        out16(port, (uint16_t)value);
    else
        out8(port, (uint8_t)value);
}

/* `offset` is a multiple of `size`: 1, 2 or 4 bytes. No byte beside them is written: in some
 * registers, as the status, a 1 that is written back clears a bit. */
static void transfer_piece(ULONG bus, ULONG slot, ULONG offset, UCHAR *bytes, ULONG size,
                           bool writes)
{
    const uint16_t port = (uint16_t)(PCI_DATA + offset % 4);
    uint32_t value = 0;
    if (writes)
        memcpy(&value, bytes, size);
    KIRQL irql = lock_acquire(&pci_lock);
    out32(PCI_ADDRESS, address_of(bus, slot, offset));
    if (writes)
        write_port(port, size, value);
    else
        value = read_port(port, size);
    lock_release(&pci_lock, irql);
    if (!writes)
        memcpy(bytes, &value, size);
}

/* Transfers in the largest pieces. Returns how many of the bytes the configuration space has. */
static ULONG transfer_pieces(ULONG bus, ULONG slot, UCHAR *bytes, ULONG offset, ULONG length,
                             bool writes)
{
    const ULONG space = offset < PCI_SPACE ? PCI_SPACE - offset : 0;
    const ULONG count = length < space ? length : space;
    for (ULONG done = 0, size; done < count; done += size) {
        for (size = 4; (offset + done) % size || size > count - done;)
            size /= 2;
        transfer_piece(bus, slot, offset + done, bytes + done, size, writes);
    }
    return count;
}

static bool device_exists(ULONG bus, ULONG slot)
{
    uint16_t vendor;
    transfer_pieces(bus, slot, (UCHAR *)&vendor, 0, sizeof vendor, false);
    return vendor != NO_DEVICE;
}

/* Returns how many bytes were read; 2, and NO_DEVICE in the buffer: there is no such device; 0: no
 * such bus, or a bus of another kind. */
ULONG HalGetBusDataByOffset(ULONG BusDataType, ULONG BusNumber, ULONG SlotNumber, PVOID Buffer,
                            ULONG Offset, ULONG Length)
{
    if (BusDataType != PCI_CONFIGURATION || BusNumber >= PCI_BUSES)
        return 0;
    if (device_exists(BusNumber, SlotNumber))
        return transfer_pieces(BusNumber, SlotNumber, Buffer, Offset, Length, false);
    memset(Buffer, 0xff, Length < NO_DEVICE_SIZE ? Length : NO_DEVICE_SIZE);
    return NO_DEVICE_SIZE;
}

/* Returns how many bytes were written; 0: as above, or no such device. */
ULONG HalSetBusDataByOffset(ULONG BusDataType, ULONG BusNumber, ULONG SlotNumber, PVOID Buffer,
                            ULONG Offset, ULONG Length)
{
    if (BusDataType != PCI_CONFIGURATION || BusNumber >= PCI_BUSES ||
        !device_exists(BusNumber, SlotNumber))
        return 0;
    return transfer_pieces(BusNumber, SlotNumber, Buffer, Offset, Length, true);
}
