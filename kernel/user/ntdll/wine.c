/* SPDX-License-Identifier: MIT */
/* What Wine's libraries call beside what Windows has: messages about themselves, of which none is
 * wanted. They format the first one all the same. */
#include <stdarg.h>
#include "kernel/base/print.h"
#include "ntdll.h"

/* Of channel, the first byte is the kinds of messages that are wanted. */
UCHAR __cdecl __wine_dbg_get_channel_flags(UCHAR *channel);
UCHAR __cdecl __wine_dbg_get_channel_flags(UCHAR *channel) { return *channel = 0; }

int __cdecl __wine_dbg_header(int kind, UCHAR *channel, const char *function);
int __cdecl __wine_dbg_header(int kind, UCHAR *channel, const char *function)
{
    *channel = 0;
    return -1;
}

int __cdecl __wine_dbg_output(const char *text);
int __cdecl __wine_dbg_output(const char *text) { return (int)strlen(text); }

const char *__cdecl __wine_dbg_strdup(const char *text);
const char *__cdecl __wine_dbg_strdup(const char *text) { return *text ? "" : text; }

/* NT: of conversions only print_to's. */
int __cdecl _vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    return (int)print_to_va(text, size, format, args);
}
