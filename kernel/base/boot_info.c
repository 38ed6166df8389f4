/* SPDX-License-Identifier: MIT */
#include "kernel/base/boot_info.h"
#include "kernel/base/layout.h"
#include "kernel/base/string.h"

BOOT_OPTIONS("safe wrap");

struct boot_info boot_info;

void boot_put_ap(uint8_t *page, uint64_t stack, void *pages)
{
    memcpy(page, boot_info.ap_code, boot_info.ap_size);
    *(uint32_t *)(void *)(page + AP_TABLES) = boot_info.ap_tables;
    *(uint64_t *)(void *)(page + AP_STACK) = stack;
    *(void **)(void *)(page + AP_PAGES) = pages;
}

const char *boot_word_at(const char *line, unsigned n, unsigned *length)
{
    for (;;) {
        while (*line == ' ')
            line++;
        if (!*line)
            return NULL;
        unsigned len = 0;
        while (line[len] && line[len] != ' ')
            len++;
        *length = len;
        if (n-- == 0)
            return line;
        line += len;
    }
}

bool boot_option(const char *name, char *value, unsigned size)
{
    const char *word;
    unsigned length, found = 0;
    for (unsigned n = 0; (word = boot_word_at(boot_info.line, n, &length)); n++) {
        unsigned i = 0;
        while (i < length && name[i] && word[i] == name[i])
            i++;
        if (name[i] || i == length || word[i] != '=')
            continue;
        unsigned out = 0;
        for (i++; i < length && out < size - 1; i++)
            value[out++] = word[i];
        value[out] = 0;
        found++;
    }
    return found > 0;
}

bool boot_flag(const char *wanted)
{
    const char *word;
    unsigned length;
    for (unsigned n = 0; (word = boot_word_at(boot_info.line, n, &length)); n++) {
        unsigned i = 0;
        while (i < length && wanted[i] == word[i])
            i++;
        if (i == length && !wanted[i])
            return true;
    }
    return false;
}

bool boot_safe(void) { return boot_flag("safe"); }

bool boot_wraps(void) { return boot_flag("wrap"); }
