/* SPDX-License-Identifier: MIT */
#include "tests/harness/choose.h"
#include "tests/harness/kernel.h"

#define SELF "selfcheck" /* groups that begin so fail on purpose */
#define SLOW "slow"

static bool glob(const char *pattern, const char *end, const char *text)
{
    while (pattern < end && *pattern != '*') {
        if (!*text || (*pattern != '?' && *pattern != *text))
            return false;
        pattern++, text++;
    }
    if (pattern == end)
        return !*text;
    for (;; text++)
        if (glob(pattern + 1, end, text))
            return true;
        else if (!*text)
            return false;
}

/* A test of what every PMU must do is chosen by that too: VP-49 in brackets is vpmu.VP-49. */
static bool names_id(const char *meaning, const char *pattern, const char *end)
{
    for (char id[24] = "vpmu."; *meaning; meaning += *meaning != 0) {
        unsigned n = 5;
        while (*meaning > ' ' && *meaning != '[' && *meaning != ']' && n < sizeof id - 1)
            id[n++] = *meaning++;
        id[n] = 0;
        if (memcmp(id + 5, "VP-", 3) == 0 && glob(pattern, end, id))
            return true;
    }
    return false;
}

/* Whether the pattern matches its name, or is the word SLOW, with which its meaning ends. */
static bool is_named(const struct test *test, const char *name, const char *pattern,
                     const char *end)
{
    static const char mark[] = SLOW "]";
    size_t length = strlen(test->meaning), size = sizeof mark - 1;
    bool is_slow = length > size && memcmp(test->meaning + length - size, mark, size) == 0;
    bool asks = (size_t)(end - pattern) == size - 1 && memcmp(pattern, SLOW, size - 1) == 0;
    return glob(pattern, end, name) || (is_slow && asks);
}

bool test_chosen(const struct test *test, const char *patterns)
{
    char name[96];
    bool on_purpose = memcmp(test->group, SELF, sizeof SELF - 1) == 0;
    if (!*patterns)
        return !on_purpose;
    if (on_purpose && memcmp(patterns, SELF, sizeof SELF - 1) != 0)
        return false;
    print_to(name, sizeof name, "%s.%s", test->group, test->name);
    bool matched = false;
    for (const char *p = patterns, *end;; p = end + 1) {
        for (end = p; *end && *end != ',';)
            end++;
        if (*p == '-' && is_named(test, name, p + 1, end))
            return false;
        matched |= *p != '-' && (is_named(test, name, p, end) || names_id(test->meaning, p, end));
        if (!*end)
            return matched;
    }
}
