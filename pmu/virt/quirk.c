/* SPDX-License-Identifier: MIT */
/* Reads the words of vpmu= that switch quirks on. Boot CPU, before the guest starts. */
#include "pmu/virt/quirk.h"
#include "kernel/base/bits.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"

/* BITS: numbers of bits with + between, stored as a mask. CHOICE: the n-th of the words after = is
 * stored as n. SPREAD and PAIR have a second value, which follows the first in the struct. */
enum kind { FLAG, NUMBER, SIGNED, BITS, CHOICE, SPREAD, PAIR };
enum { BOTH = 0, INTEL = 'G', AMD = 'A' };

/* The name ends at = or [; least and most bound the value; a word without a value gets standard. */
static const struct quirk {
    const char *form;
    uint64_t most;
    uint16_t at;
    uint8_t kind; /* enum kind */
    char vendor;
    uint8_t least, standard;
} table[] = {
#define MODEL(...)
#define MACHINE(...)
#define QUIRK(form, meaning, field, kind, vendor, least, most, standard)                           \
    { form, most, offsetof(struct quirks, field), kind, vendor, least, standard },
#define SECOND(...)
#include "pmu/virt/names.def"
};

struct quirks virt_quirks = { .ipc = 1, .ref = 1 };
static bool given[ARRAY_SIZE(table)];

static uint64_t *quirk_value(const struct quirk *q)
{
    return (uint64_t *)(void *)((char *)&virt_quirks + q->at);
}

size_t quirk_name_length(const char *text)
{
    size_t n = 0;
    while (text[n] && text[n] != '=' && text[n] != '[' && text[n] != ',')
        n++;
    return n;
}

bool quirk_same_name(const char *one, const char *other)
{
    size_t n = quirk_name_length(one);
    return quirk_name_length(other) == n && !memcmp(one, other, n);
}

/* A decimal or hexadecimal number; where it ends, or NULL. */
static const char *read_number(const char *text, uint64_t *value)
{
    unsigned base = text[0] == '0' && text[1] == 'x' ? 16 : 10;
    const char *from = base == 16 ? text + 2 : text, *at = from;
    for (*value = 0;; at++) {
        unsigned lower = (unsigned char)*at | 0x20u;
        unsigned digit = *at >= '0' && *at <= '9' ? (unsigned)(*at - '0')
                         : lower - 'a' < 6        ? lower - 'a' + 10
                                                  : 16;
        if (digit >= base)
            return at > from ? at : NULL;
        if (__builtin_mul_overflow(*value, base, value) ||
            __builtin_add_overflow(*value, digit, value))
            return NULL;
    }
}

static const char *read_signed(const char *text, uint64_t *value)
{
    bool minus = *text == '-';
    const char *end = read_number(text + (minus || *text == '+'), value);
    *value = minus ? -*value : *value;
    return end;
}

static const char *read_bits(const char *text, uint64_t *value)
{
    uint64_t bit;
    for (*value = 0;; text++) {
        text = read_number(text, &bit);
        if (!text || bit > 63)
            return NULL;
        *value |= 1ul << bit;
        if (*text != '+')
            return text;
    }
}

/* Which of the words "one|two" the text begins with, from 1; where that ends, or NULL. */
static const char *read_choice(const char *words, const char *text, uint64_t *value)
{
    for (*value = 1;; ++*value) {
        size_t n = 0;
        while (words[n] && words[n] != '|' && words[n] == text[n])
            n++;
        if (!words[n] || words[n] == '|')
            return text + n;
        while (words[n] && words[n] != '|')
            n++;
        if (!words[n])
            return NULL;
        words += n + 1;
    }
}

/* N+-M, where M may be missing, or T:L. */
static const char *read_two(enum kind kind, const char *text, uint64_t value[2])
{
    const char *end = read_number(text, value);
    value[1] = 0;
    if (kind == PAIR)
        return end && *end == ':' ? read_number(end + 1, &value[1]) : NULL;
    return end && end[0] == '+' && end[1] == '-' ? read_number(end + 2, &value[1]) : end;
}

/* Where the value ends; NULL: it is not valid. */
static const char *read_value(const struct quirk *q, const char *text)
{
    uint64_t *value = quirk_value(q);
    const char *end = NULL;
    switch (q->kind) {
    case FLAG: return NULL;
    case NUMBER: end = read_number(text, value); break;
    case SIGNED:
        end = read_signed(text, value);
        return end && *value + q->most <= 2 * q->most ? end : NULL;
    case BITS: return read_bits(text, value);
    case CHOICE: end = read_choice(q->form + quirk_name_length(q->form) + 1, text, value); break;
    case SPREAD:
    case PAIR:
        end = read_two(q->kind, text, value);
        if (end && value[1] > q->most)
            return NULL;
        break;
    }
    return end && *value >= q->least && *value <= q->most ? end : NULL;
}

static const struct quirk *find_quirk(const char *word)
{
    for_each_in(q, table)
        if (quirk_same_name(q->form, word))
            return q;
    return NULL;
}

/* One word; where it ends, or NULL. */
static const char *read_word(const struct quirk *q, const char *word)
{
    const char *end = word + quirk_name_length(word);
    if (*end == '=')
        end = read_value(q, end + 1);
    else if (q->standard)
        *quirk_value(q) = q->standard;
    else
        end = NULL;
    return end && (*end == ',' || !*end) ? end : NULL;
}

static void print_forms(const char *wrong)
{
    print("# vpmu: no quirk \"%s\"; there are", wrong);
    for_each_in(q, table)
        print(" %s", q->form);
    print("\n");
}

bool quirk_parse(const char *words, const char *vendor)
{
    for (const char *word = words; *word; word += *word == ',') {
        const struct quirk *q = find_quirk(word);
        if (!q) {
            print_forms(word);
            return false;
        }
        if (q->vendor && q->vendor != vendor[0]) {
            print("# vpmu: %s is no quirk of %s\n", q->form, vendor);
            return false;
        }
        const char *end = read_word(q, word);
        if (!end) {
            print("# vpmu: \"%s\" does not begin with %s", word, q->form);
            if (q->most > 1 && q->kind != BITS && q->kind != CHOICE)
                print(" from %u to %lu", q->least, q->most);
            print("\n");
            return false;
        }
        given[q - table] = true;
        word = end;
    }
    return true;
}

bool quirk_describe(unsigned n, bool *on, char name[12], uint64_t value[2])
{
    if (n >= ARRAY_SIZE(table))
        return false;
    memset(name, 0, 12);
    memcpy(name, table[n].form, quirk_name_length(table[n].form));
    *on = given[n];
    value[0] = *quirk_value(&table[n]);
    value[1] = table[n].kind >= SPREAD ? quirk_value(&table[n])[1] : 0;
    return true;
}
