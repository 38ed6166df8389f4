/* SPDX-License-Identifier: MIT */
/* Counted strings and bitmaps. */
#include "ntdll.h"

VOID NTAPI RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    SIZE_T n = 0;
    while (SourceString && SourceString[n])
        n++;
    USHORT bytes = n < 0x7ffe ? (USHORT)(2 * n) : 0xfffc;
    *DestinationString =
        (UNICODE_STRING){ bytes, SourceString ? (USHORT)(bytes + 2) : 0, (PWSTR)SourceString };
}

typedef struct _RTL_BITMAP {
    ULONG SizeOfBitMap;
    PULONG Buffer;
} RTL_BITMAP, *PRTL_BITMAP;

VOID NTAPI RtlInitializeBitMap(PRTL_BITMAP BitMapHeader, PULONG BitMapBuffer, ULONG SizeOfBitMap)
{
    *BitMapHeader = (RTL_BITMAP){ SizeOfBitMap, BitMapBuffer };
}

VOID NTAPI RtlSetBits(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG NumberToSet)
{
    for (ULONG i = StartingIndex; NumberToSet; NumberToSet--, i++)
        BitMapHeader->Buffer[i / 32] |= 1u << i % 32;
}

static BOOLEAN are_bits(const RTL_BITMAP *map, ULONG start, ULONG length, ULONG wanted)
{
    bool within = length && (ULONG64)start + length <= map->SizeOfBitMap;
    for (ULONG i = start; within && length; length--, i++)
        within = (map->Buffer[i / 32] >> i % 32 & 1) == wanted;
    return within;
}
BOOLEAN NTAPI RtlAreBitsSet(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length)
{
    return are_bits(BitMapHeader, StartingIndex, Length, 1);
}
BOOLEAN NTAPI RtlAreBitsClear(PRTL_BITMAP BitMapHeader, ULONG StartingIndex, ULONG Length)
{
    return are_bits(BitMapHeader, StartingIndex, Length, 0);
}
