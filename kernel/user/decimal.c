/* SPDX-License-Identifier: MIT */
/* A double is m * 2^e. With e < 0 that is m * 5^-e / 10^-e, so its digits are those of a whole
 * number. It is computed in words of nine digits. */
#include "kernel/user/decimal.h"
#include <stdint.h>
#include "kernel/base/string.h"

#define WORD 1000000000u
#define WORDS (DECIMAL_DIGITS_MAX / 9)

struct big {
    uint32_t word[WORDS]; /* least first */
    unsigned used;
};

static void multiply(struct big *b, uint32_t factor)
{
    uint64_t carry = 0;
    for (unsigned i = 0; i < b->used; i++) {
        carry += (uint64_t)b->word[i] * factor;
        b->word[i] = (uint32_t)(carry % WORD);
        carry /= WORD;
    }
    if (carry)
        b->word[b->used++] = (uint32_t)carry;
}

static void power(struct big *b, uint32_t base, unsigned exponent)
{
    for (; exponent; exponent--)
        multiply(b, base);
}

/* Multiplies by 2^28, or 5^12, at a time: a factor has 32 bits. */
static void scale(struct big *b, int e)
{
    unsigned n = (unsigned)(e < 0 ? -e : e), step = e < 0 ? 12 : 28;
    power(b, e < 0 ? 244140625 : 1u << 28, n / step);
    power(b, e < 0 ? 5 : 2, n % step);
}

static int write_digits(const struct big *b, char *digits)
{
    int n = 0;
    for (unsigned i = b->used; i-- > 0;)
        for (uint32_t unit = WORD / 10; unit; unit /= 10) {
            char c = (char)('0' + b->word[i] / unit % 10);
            if (n || c != '0')
                digits[n++] = c;
        }
    return n;
}

bool decimal_from(struct decimal *d, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int e = (int)(bits >> 52 & 0x7ff);
    uint64_t m = bits & ((1ull << 52) - 1);
    d->count = d->point = 0;
    d->special = e < 0x7ff ? NULL : m ? "nan\0NAN" : "inf\0INF";
    if (e)
        m |= 1ull << 52;
    else
        e = 1;
    e -= 1075;
    if (d->special || !m)
        return bits >> 63;

    struct big b;
    b.used = 0;
    for (; m; m /= WORD)
        b.word[b.used++] = (uint32_t)(m % WORD);
    scale(&b, e);
    d->count = write_digits(&b, d->digits);
    d->point = d->count + (e < 0 ? e : 0);
    return bits >> 63;
}

static bool rounds_up(const struct decimal *d, int count)
{
    if (d->digits[count] != '5')
        return d->digits[count] > '5';
    for (int i = count + 1; i < d->count; i++)
        if (d->digits[i] != '0')
            return true;
    return count && (d->digits[count - 1] & 1);
}

void decimal_round(struct decimal *d, int count)
{
    if (count >= d->count)
        return;
    bool up = count >= 0 && rounds_up(d, count);
    int n = count < 0 ? 0 : count;
    while (up && n && d->digits[n - 1] == '9')
        n--;
    if (up && n) {
        d->digits[n - 1]++;
    } else if (up) {
        d->digits[n++] = '1';
        d->point++;
    }
    d->count = n;
}
