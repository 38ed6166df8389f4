/* SPDX-License-Identifier: MIT */
/* Counted strings. `where` is who called. NT: a character of a narrow string is Latin-1's. Source:
 * the Windows driver documentation. */
#include "kernel/base/string.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"

#define TAG ('S' | 't' << 8 | 'r' << 16 | ' ' << 24)
#define LONGEST 0xfffcu /* bytes, with the NUL */

VOID driver_RtlInitAnsiString(uint64_t where, PANSI_STRING DestinationString, PCSTR SourceString)
{
    size_t length = SourceString ? strlen(SourceString) : 0;
    (void)where;
    if (length > LONGEST)
        length = LONGEST;
    *DestinationString = (ANSI_STRING){ (USHORT)length, (USHORT)(SourceString ? length + 1 : 0),
                                        (CHAR *)(uint64_t)SourceString };
}

/* As much as there is room for. */
VOID driver_RtlCopyUnicodeString(uint64_t where, PUNICODE_STRING DestinationString,
                                 const UNICODE_STRING *SourceString)
{
    USHORT length = SourceString ? SourceString->Length : 0;
    (void)where;
    if (length > DestinationString->MaximumLength)
        length = DestinationString->MaximumLength;
    if (length)
        memcpy(DestinationString->Buffer, SourceString->Buffer, length);
    DestinationString->Length = length;
}

/* STATUS_BUFFER_TOO_SMALL: nothing was appended. */
NTSTATUS driver_RtlAppendUnicodeStringToString(uint64_t where, PUNICODE_STRING Destination,
                                               const UNICODE_STRING *Source)
{
    (void)where;
    if (Source->Length > Destination->MaximumLength - Destination->Length)
        return STATUS_BUFFER_TOO_SMALL;
    memcpy((char *)Destination->Buffer + Destination->Length, Source->Buffer, Source->Length);
    Destination->Length = (USHORT)(Destination->Length + Source->Length);
    return STATUS_SUCCESS;
}

/* STATUS_BUFFER_OVERFLOW: it has no room for the text (and the NUL); STATUS_NO_MEMORY. */
NTSTATUS driver_RtlAnsiStringToUnicodeString(uint64_t where, PUNICODE_STRING DestinationString,
                                             const ANSI_STRING *SourceString,
                                             BOOLEAN AllocateDestinationString)
{
    const unsigned n = SourceString->Length, size = (n + 1) * sizeof(WCHAR);
    if (size > LONGEST)
        return STATUS_INVALID_PARAMETER;
    if (AllocateDestinationString) {
        DestinationString->Buffer = pool_allocate_for(where, size, TAG);
        DestinationString->MaximumLength = (USHORT)size;
    }
    if (!DestinationString->Buffer)
        return STATUS_NO_MEMORY;
    if (size > DestinationString->MaximumLength)
        return STATUS_BUFFER_OVERFLOW;
    for (unsigned i = 0; i < n; i++)
        DestinationString->Buffer[i] = (UCHAR)SourceString->Buffer[i];
    DestinationString->Buffer[n] = 0;
    DestinationString->Length = (USHORT)(n * sizeof(WCHAR));
    return STATUS_SUCCESS;
}

/* The same; a character that Latin-1 lacks becomes '?'. */
NTSTATUS driver_RtlUnicodeStringToAnsiString(uint64_t where, PANSI_STRING DestinationString,
                                             const UNICODE_STRING *SourceString,
                                             BOOLEAN AllocateDestinationString)
{
    const unsigned n = SourceString->Length / sizeof(WCHAR), size = n + 1;
    if (AllocateDestinationString) {
        DestinationString->Buffer = pool_allocate_for(where, size, TAG);
        DestinationString->MaximumLength = (USHORT)size;
    }
    if (!DestinationString->Buffer)
        return STATUS_NO_MEMORY;
    if (size > DestinationString->MaximumLength)
        return STATUS_BUFFER_OVERFLOW;
    for (unsigned i = 0; i < n; i++) {
        WCHAR c = SourceString->Buffer[i];
        DestinationString->Buffer[i] = c < 0x100 ? (CHAR)c : '?';
    }
    DestinationString->Buffer[n] = 0;
    DestinationString->Length = (USHORT)n;
    return STATUS_SUCCESS;
}

VOID driver_RtlFreeUnicodeString(uint64_t where, PUNICODE_STRING UnicodeString)
{
    if (UnicodeString->Buffer)
        pool_free_for(where, UnicodeString->Buffer, TAG);
    *UnicodeString = (UNICODE_STRING){ 0 };
}

VOID driver_RtlFreeAnsiString(uint64_t where, PANSI_STRING AnsiString)
{
    if (AnsiString->Buffer)
        pool_free_for(where, AnsiString->Buffer, TAG);
    *AnsiString = (ANSI_STRING){ 0 };
}
