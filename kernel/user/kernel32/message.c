/* SPDX-License-Identifier: MIT */
/* FormatMessage: texts of the errors that this system returns, or the caller's own text. Inserts
 * are strings, integers and characters. NT: one language, no message tables of modules. */
#include "kernel32.h"

#define LONGEST 1024u

static const struct {
    DWORD error;
    const char *text;
} messages[] = {
    { ERROR_SUCCESS, "The operation completed successfully." },
    { ERROR_INVALID_FUNCTION, "Incorrect function." },
    { ERROR_FILE_NOT_FOUND, "The system cannot find the file specified." },
    { ERROR_PATH_NOT_FOUND, "The system cannot find the path specified." },
    { ERROR_ACCESS_DENIED, "Access is denied." },
    { ERROR_INVALID_HANDLE, "The handle is invalid." },
    { ERROR_NOT_ENOUGH_MEMORY,
      "Not enough memory resources are available to process this command." },
    { ERROR_BAD_LENGTH, "The program issued a command but the command length is incorrect." },
    { ERROR_GEN_FAILURE, "A device attached to the system is not functioning." },
    { ERROR_NOT_SUPPORTED, "The request is not supported." },
    { ERROR_INVALID_PARAMETER, "The parameter is incorrect." },
    { ERROR_INSUFFICIENT_BUFFER, "The data area passed to a system call is too small." },
    { ERROR_INVALID_NAME, "The filename, directory name, or volume label syntax is incorrect." },
    { ERROR_MOD_NOT_FOUND, "The specified module could not be found." },
    { ERROR_PROC_NOT_FOUND, "The specified procedure could not be found." },
    { ERROR_BUSY, "The requested resource is in use." },
    { ERROR_ALREADY_EXISTS, "Cannot create a file when that file already exists." },
    { ERROR_BAD_EXE_FORMAT, "%1 is not a valid Win32 application." },
    { ERROR_ENVVAR_NOT_FOUND,
      "The system could not find the environment option that was entered." },
    { ERROR_MORE_DATA, "More data is available." },
    { WAIT_TIMEOUT, "The wait operation timed out." },
    { ERROR_NO_MORE_ITEMS, "No more data is available." },
    { ERROR_NOT_OWNER, "Attempt to release mutex not owned by caller." },
    { ERROR_TOO_MANY_POSTS, "Too many posts were made to a semaphore." },
    { ERROR_INVALID_ADDRESS, "Attempt to access invalid address." },
    { ERROR_NOACCESS, "Invalid access to memory location." },
    { ERROR_NOT_ALL_ASSIGNED,
      "Not all privileges or groups referenced are assigned to the caller." },
    { ERROR_NO_SUCH_PRIVILEGE, "A specified privilege does not exist." },
    { ERROR_PRIVILEGE_NOT_HELD, "A required privilege is not held by the client." },
    { ERROR_NO_SYSTEM_RESOURCES,
      "Insufficient system resources exist to complete the requested service." },
    { ERROR_TIMEOUT, "This operation returned because the timeout period expired." },
    { ERROR_WMI_INSTANCE_NOT_FOUND,
      "The instance name passed was not recognized as valid by a WMI data provider." },
};

static const char *text_of(DWORD error)
{
    for (unsigned i = 0; i < ARRAYSIZE(messages); i++)
        if (messages[i].error == error)
            return messages[i].text;
    return NULL;
}

struct output {
    WCHAR text[LONGEST];
    DWORD length;
};

static void put_char(struct output *out, WCHAR c)
{
    if (out->length < LONGEST)
        out->text[out->length++] = c;
}

static void put_insert(struct output *out, const void *string, bool wide)
{
    const WCHAR *w = string;
    const char *n = string;
    while (string && (wide ? *w : (WCHAR)*n))
        put_char(out, wide ? *w++ : (UCHAR)*n++);
}

/* At least `width` characters, with zeros or spaces in front. */
static void put_integer(struct output *out, uint64_t value, bool minus, bool hexadecimal,
                        unsigned width, bool zeros)
{
    const unsigned base = hexadecimal ? 16 : 10;
    WCHAR digits[20];
    unsigned n = 0;
    do
        digits[n++] = (WCHAR) "0123456789abcdef"[value % base];
    while (value /= base);
    if (minus && zeros)
        put_char(out, '-');
    for (unsigned i = n + minus; i < width; i++)
        put_char(out, zeros ? '0' : ' ');
    if (minus && !zeros)
        put_char(out, '-');
    while (n)
        put_char(out, digits[--n]);
}

/* An insert with printf's format between exclamation marks, as "%1!08lx!": `at` points to the first
 * one, then after the second. False: there is no second one. NT: d, i, u, x, X in small letters, c;
 * all else is a string, of its own length; nothing is moved to the left, and h has no effect. */
static bool put_formatted(struct output *out, const WCHAR **at, ULONG_PTR value, bool wide)
{
    const WCHAR *p = *at + 1 + ((*at)[1] == '-');
    bool zeros = *p == '0', big = false;
    unsigned width = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        width = width * 10 + *p - '0';
    for (; *p == 'h' || *p == 'l' || *p == 'w' || *p == 'I' || *p == '6' || *p == '4'; p++)
        big |= *p == 'I' || (*p == 'l' && p[1] == 'l');
    const WCHAR type = *p ? *p++ : 0, character[] = { (WCHAR)value, 0 };
    while (*p && *p != '!')
        p++;
    if (!*p)
        return false;
    *at = p + 1;
    const LONGLONG number = big ? (LONGLONG)value : (LONG)value;
    const uint64_t bits = big ? value : (ULONG)value;
    switch (type) {
    case 'd':
    case 'i':
        put_integer(out, number < 0 ? 0 - (uint64_t)number : bits, number < 0, false, width, zeros);
        break;
    case 'u': put_integer(out, bits, false, false, width, zeros); break;
    case 'x':
    case 'X': put_integer(out, bits, false, true, width, zeros); break;
    case 'c': put_insert(out, character, true); break;
    default: put_insert(out, (const void *)value, wide); break;
    }
    return true;
}

/* Expands %1 to %99, %n, %%, %0 and the like. `at` points after the percent sign, then after the
 * sequence. False: the text ends here. */
static bool expand(struct output *out, const WCHAR **at, const ULONG_PTR *arguments, bool wide)
{
    unsigned n = 0;
    const WCHAR *p = *at;
    if (*p == '0')
        return false;
    for (int digits = 0; digits < 2 && *p >= '0' && *p <= '9'; digits++)
        n = n * 10 + *p++ - '0';
    if (n) {
        if (*p != '!' || !put_formatted(out, &p, arguments[n - 1], wide))
            put_insert(out, (const void *)arguments[n - 1], wide);
    } else if (*p == 'n') {
        put_char(out, '\r'), put_char(out, '\n');
    } else if (*p) {
        put_char(out, *p);
    }
    *at = n || !*p ? p : p + 1;
    return true;
}

static void format(struct output *out, const WCHAR *text, const ULONG_PTR *arguments, bool wide)
{
    while (*text) {
        WCHAR c = *text++;
        if (c != '%' || !arguments)
            put_char(out, c);
        else if (!expand(out, &text, arguments, wide))
            return;
    }
}

/* False with the last error: ERROR_MR_MID_NOT_FOUND: no such text; ERROR_NOT_SUPPORTED. */
static bool make_message(struct output *out, DWORD flags, LPCVOID source, DWORD id,
                         va_list *arguments, bool wide)
{
    const ULONG_PTR *inserts = flags & FORMAT_MESSAGE_IGNORE_INSERTS ? NULL
                               : flags & FORMAT_MESSAGE_ARGUMENT_ARRAY
                                   ? (const ULONG_PTR *)arguments
                               : arguments ? (const ULONG_PTR *)*arguments
                                           : NULL;
    static const WCHAR end[] = L"\r\n";
    WCHAR copy[LONGEST];
    const char *narrow = flags & FORMAT_MESSAGE_FROM_STRING ? source : text_of(id);
    DWORD n = 0;
    if (flags & FORMAT_MESSAGE_FROM_STRING && wide) {
        format(out, source, inserts, true);
        return true;
    }
    if (!(flags & (FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_FROM_SYSTEM)))
        return fail(ERROR_NOT_SUPPORTED);
    if (!narrow)
        return fail(ERROR_MR_MID_NOT_FOUND);
    for (; n + 1 < LONGEST && narrow[n]; n++)
        copy[n] = (UCHAR)narrow[n];
    copy[n] = 0;
    format(out, copy, inserts, wide);
    if (!(flags & FORMAT_MESSAGE_FROM_STRING))
        format(out, end, NULL, true);
    return true;
}

static DWORD give_message(DWORD flags, LPCVOID source, DWORD id, void *buffer, DWORD size,
                          va_list *arguments, bool wide)
{
    struct output out = { .length = 0 };
    size_t character = wide ? sizeof(WCHAR) : sizeof(char);
    DWORD room = size;
    uint8_t *to = buffer;
    if (!make_message(&out, flags, source, id, arguments, wide))
        return 0;
    if (flags & FORMAT_MESSAGE_ALLOCATE_BUFFER) {
        room = out.length + 1 > size ? out.length + 1 : size;
        to = *(void **)buffer = RtlAllocateHeap(NULL, 0, room * character);
        if (!to)
            return (DWORD)fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    if (out.length >= room)
        return (DWORD)fail(ERROR_INSUFFICIENT_BUFFER);
    for (DWORD i = 0; i <= out.length; i++)
        memcpy(to + i * character, i < out.length ? &out.text[i] : L"", character);
    return out.length;
}

DWORD WINAPI FormatMessageW(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                            LPWSTR lpBuffer, DWORD nSize, va_list *Arguments)
{
    (void)dwLanguageId;
    return give_message(dwFlags, lpSource, dwMessageId, lpBuffer, nSize, Arguments, true);
}

DWORD WINAPI FormatMessageA(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                            LPSTR lpBuffer, DWORD nSize, va_list *Arguments)
{
    (void)dwLanguageId;
    return give_message(dwFlags, lpSource, dwMessageId, lpBuffer, nSize, Arguments, false);
}
