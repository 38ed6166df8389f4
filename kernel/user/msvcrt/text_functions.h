/* SPDX-License-Identifier: MIT */
/* Functions of strings, for a file that defines of its characters: TYPE; UNIT, the same without a
 * sign; PARAMETER, what they are passed as; FUNCTION(name), the function. */
size_t FUNCTION(nlen)(const TYPE *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n])
        n++;
    return n;
}

TYPE *FUNCTION(cpy)(TYPE *to, const TYPE *from)
{
    memcpy(to, from, (FUNCTION(len)(from) + 1) * sizeof *to);
    return to;
}

TYPE *FUNCTION(ncpy)(TYPE *to, const TYPE *from, size_t size)
{
    size_t n = FUNCTION(nlen)(from, size);
    memcpy(to, from, n * sizeof *to);
    memset(to + n, 0, (size - n) * sizeof *to);
    return to;
}

TYPE *FUNCTION(cat)(TYPE *to, const TYPE *from)
{
    FUNCTION(cpy)(to + FUNCTION(len)(to), from);
    return to;
}

TYPE *FUNCTION(ncat)(TYPE *to, const TYPE *from, size_t size)
{
    size_t n = FUNCTION(nlen)(from, size);
    TYPE *end = to + FUNCTION(len)(to);
    memcpy(end, from, n * sizeof *to);
    end[n] = 0;
    return to;
}

int FUNCTION(ncmp)(const TYPE *a, const TYPE *b, size_t size)
{
    for (; size && *a && *a == *b; size--)
        a++, b++;
    return size ? (UNIT)*a - (UNIT)*b : 0;
}

TYPE *FUNCTION(chr)(const TYPE *text, PARAMETER c)
{
    for (;; text++)
        if (*text == (TYPE)c)
            return (TYPE *)text;
        else if (!*text)
            return NULL;
}

TYPE *FUNCTION(rchr)(const TYPE *text, PARAMETER c)
{
    const TYPE *found = NULL;
    for (;; text++) {
        if (*text == (TYPE)c)
            found = text;
        if (!*text)
            return (TYPE *)found;
    }
}

TYPE *FUNCTION(str)(const TYPE *text, const TYPE *part)
{
    size_t n = FUNCTION(len)(part);
    for (; n; text++) {
        text = FUNCTION(chr)(text, *part);
        if (!text || FUNCTION(ncmp)(text, part, n) == 0)
            break;
    }
    return (TYPE *)text;
}
