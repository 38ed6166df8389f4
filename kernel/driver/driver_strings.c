/* SPDX-License-Identifier: MIT */
/* Counted strings, and what DbgPrint prints. NT: a character of a narrow string is Latin-1's.
 * Source: the Windows driver documentation. */
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/driver.h"
#include "kernel/driver/pool.h"

#define TAG ('S' | 't' << 8 | 'r' << 16 | ' ' << 24)
#define LONGEST 0xfffcu /* bytes, with the NUL */

VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PWSTR SourceString)
{
    size_t n = 0;
    while (SourceString && SourceString[n] && n < 0x7ffe)
        n++;
    *DestinationString =
        (UNICODE_STRING){ (USHORT)(2 * n), (USHORT)(SourceString ? 2 * n + 2 : 0), SourceString };
}

static WCHAR upper_char(WCHAR c) { return c >= 'a' && c <= 'z' ? (WCHAR)(c - 0x20) : c; }

bool text_equal(const UNICODE_STRING *a, const UNICODE_STRING *b, bool any_case)
{
    bool same = a->Length == b->Length;
    for (unsigned i = 0; same && i < a->Length / 2u; i++)
        same = any_case ? upper_char(a->Buffer[i]) == upper_char(b->Buffer[i])
                        : a->Buffer[i] == b->Buffer[i];
    return same;
}

BOOLEAN RtlEqualUnicodeString(PUNICODE_STRING String1, PUNICODE_STRING String2,
                              BOOLEAN CaseInSensitive)
{
    return text_equal(String1, String2, CaseInSensitive);
}

VOID RtlInitAnsiString(PANSI_STRING DestinationString, PCSTR SourceString)
{
    size_t length = SourceString ? strlen(SourceString) : 0;
    if (length > LONGEST)
        length = LONGEST;
    *DestinationString = (ANSI_STRING){ (USHORT)length, (USHORT)(SourceString ? length + 1 : 0),
                                        (CHAR *)(uint64_t)SourceString };
}

/* Copies as much as fits. */
VOID RtlCopyUnicodeString(PUNICODE_STRING DestinationString, const UNICODE_STRING *SourceString)
{
    USHORT length = SourceString ? SourceString->Length : 0;
    if (length > DestinationString->MaximumLength)
        length = DestinationString->MaximumLength;
    if (length)
        memcpy(DestinationString->Buffer, SourceString->Buffer, length);
    DestinationString->Length = length;
}

/* STATUS_BUFFER_TOO_SMALL: nothing was appended. */
NTSTATUS RtlAppendUnicodeStringToString(PUNICODE_STRING Destination, const UNICODE_STRING *Source)
{
    if (Source->Length > Destination->MaximumLength - Destination->Length)
        return STATUS_BUFFER_TOO_SMALL;
    memcpy((char *)Destination->Buffer + Destination->Length, Source->Buffer, Source->Length);
    Destination->Length = (USHORT)(Destination->Length + Source->Length);
    return STATUS_SUCCESS;
}

_Static_assert(sizeof(ANSI_STRING) == sizeof(UNICODE_STRING) &&
                   offsetof(ANSI_STRING, Buffer) == offsetof(UNICODE_STRING, Buffer),
               "one layout");

/* Makes a string of either kind hold `size` bytes: allocates them, or checks what it has. */
static NTSTATUS make_capacity(PUNICODE_STRING to, unsigned size, BOOLEAN allocate)
{
    if (size > LONGEST)
        return STATUS_INVALID_PARAMETER_2;
    if (allocate) {
        to->Buffer = pool_allocate_for(size, TAG);
        to->MaximumLength = (USHORT)size;
    }
    if (!to->Buffer)
        return STATUS_NO_MEMORY;
    return size > to->MaximumLength ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;
}

/* STATUS_INVALID_PARAMETER_2: it becomes longer than a string may be; STATUS_BUFFER_OVERFLOW: there
 * is no space for the text and a NUL; STATUS_NO_MEMORY. */
NTSTATUS RtlAnsiStringToUnicodeString(PUNICODE_STRING DestinationString,
                                      const ANSI_STRING *SourceString,
                                      BOOLEAN AllocateDestinationString)
{
    const unsigned n = SourceString->Length;
    NTSTATUS status =
        make_capacity(DestinationString, (n + 1) * sizeof(WCHAR), AllocateDestinationString);
    if (!NT_SUCCESS(status))
        return status;
    for (unsigned i = 0; i < n; i++)
        DestinationString->Buffer[i] = (UCHAR)SourceString->Buffer[i];
    DestinationString->Buffer[n] = 0;
    DestinationString->Length = (USHORT)(n * sizeof(WCHAR));
    return STATUS_SUCCESS;
}

/* Statuses as RtlAnsiStringToUnicodeString's; a character that Latin-1 lacks becomes '?'. */
NTSTATUS RtlUnicodeStringToAnsiString(PANSI_STRING DestinationString,
                                      const UNICODE_STRING *SourceString,
                                      BOOLEAN AllocateDestinationString)
{
    const unsigned n = SourceString->Length / sizeof(WCHAR);
    NTSTATUS status =
        make_capacity((PUNICODE_STRING)DestinationString, n + 1, AllocateDestinationString);
    if (!NT_SUCCESS(status))
        return status;
    for (unsigned i = 0; i < n; i++) {
        WCHAR c = SourceString->Buffer[i];
        DestinationString->Buffer[i] = c < 0x100 ? (CHAR)c : '?';
    }
    DestinationString->Buffer[n] = 0;
    DestinationString->Length = (USHORT)n;
    return STATUS_SUCCESS;
}

VOID RtlFreeUnicodeString(PUNICODE_STRING UnicodeString)
{
    if (UnicodeString->Buffer)
        pool_free_for(UnicodeString->Buffer, TAG);
    *UnicodeString = (UNICODE_STRING){ 0 };
}

VOID RtlFreeAnsiString(PANSI_STRING AnsiString)
{
    RtlFreeUnicodeString((PUNICODE_STRING)AnsiString);
}

/* For handlers.sys. */
VOID debug_print_line(const char *text) { print("%s", text); }
