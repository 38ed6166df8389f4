/* SPDX-License-Identifier: MIT */
#include "kernel/base/print.h"
#include "ntdll.h"

void text_add(struct text *text, const char *what)
{
    while (*what && text->length < sizeof text->bytes - 1)
        text->bytes[text->length++] = *what++;
}

void text_print(struct text *text)
{
    char more[32] = "\n";
    if (text->omitted)
        print_to(more, sizeof more, " and %u more\n", text->omitted);
    write_console(text->bytes, text->length);
    write_console(more, (ULONG)strlen(more));
    text->length = text->omitted = 0;
}
