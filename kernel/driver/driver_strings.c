/* SPDX-License-Identifier: MIT */
/* Counted strings, and what DbgPrint prints. Source: the Windows driver documentation. */
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/driver/driver.h"

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

/* For handlers.sys. */
VOID debug_print_line(const char *text) { print("%s", text); }
