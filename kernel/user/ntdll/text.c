/* SPDX-License-Identifier: MIT */
#include "ntdll.h"

void text_add(struct text *text, const char *what)
{
    while (*what && text->length < sizeof text->bytes - 1)
        text->bytes[text->length++] = *what++;
}

void text_print(struct text *text)
{
    text->bytes[text->length++] = '\n';
    write_console(text->bytes, text->length);
    text->length = 0;
}
