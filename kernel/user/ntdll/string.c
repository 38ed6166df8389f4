/* SPDX-License-Identifier: MIT */
/* Counted strings. */
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

VOID NTAPI RtlInitAnsiString(PANSI_STRING DestinationString, PCSZ SourceString)
{
    SIZE_T n = SourceString ? strlen(SourceString) : 0;
    USHORT bytes = n < 0xfffe ? (USHORT)n : 0xfffe;
    *DestinationString =
        (ANSI_STRING){ bytes, SourceString ? (USHORT)(bytes + 1) : 0, (PCHAR)SourceString };
}
