/* SPDX-License-Identifier: MIT */
/* Classes of ASCII characters, for drivers, too. NT: no other character is a letter. */
#include "msvcrt.h"
#include <ctype.h>
#include <wctype.h>

static int character_class(int c)
{
    if (c >= 'A' && c <= 'Z')
        return _UPPER | (c <= 'F' ? _HEX : 0) | 0x100;
    if (c >= 'a' && c <= 'z')
        return _LOWER | (c <= 'f' ? _HEX : 0) | 0x100;
    if (c >= '0' && c <= '9')
        return _DIGIT | _HEX;
    if (c == ' ')
        return _SPACE | _BLANK;
    if (c >= '\t' && c <= '\r')
        return _SPACE | _CONTROL;
    if (c >= 0 && c < 0x80)
        return c < ' ' || c == 0x7f ? _CONTROL : _PUNCT;
    return 0;
}

#define IS(name, mask)                                                                             \
    int is##name(int c) { return character_class(c) & (mask); }
IS(alpha, _UPPER | _LOWER)
IS(upper, _UPPER)
IS(lower, _LOWER)
IS(digit, _DIGIT)
IS(xdigit, _HEX)
IS(space, _SPACE)
IS(punct, _PUNCT)
IS(alnum, _UPPER | _LOWER | _DIGIT)
IS(print, _UPPER | _LOWER | _DIGIT | _PUNCT | _BLANK)
IS(graph, _UPPER | _LOWER | _DIGIT | _PUNCT)
IS(cntrl, _CONTROL)

int tolower(int c) { return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c; }
int toupper(int c) { return c >= 'a' && c <= 'z' ? c + 'A' - 'a' : c; }
wint_t towlower(wint_t c) { return (wint_t)tolower(c); }
wint_t towupper(wint_t c) { return (wint_t)toupper(c); }
