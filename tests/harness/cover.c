/* SPDX-License-Identifier: MIT */
/* gcc's -fsanitize-coverage=trace-pc puts a call at each branch. */
#include "tests/harness/cover.h"
#include <stdint.h>
#include "kernel/base/print.h"

#define PLACES (1u << 20) /* bytes of text */
#define MANY 30

extern char text_start[]; /* linker.ld */
static union {
    uint8_t at[PLACES];
    uint64_t words[PLACES / 8];
} reached;
static uint8_t told[PLACES];

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    uint64_t at = (uint64_t)__builtin_return_address(0) - (uint64_t)text_start;
    if (at < PLACES)
        reached.at[at] = 1;
}

static void tell(unsigned at)
{
    bool new = reached.at[at] && told[at] < MANY;
    reached.at[at] = 0;
    told[at] += new;
    if (new)
        print(" %x", at);
}

void cover_tell(const char *group, const char *name)
{
    print("# reached by %s.%s:", group, name);
    for (unsigned i = 0; i < PLACES; i += 8)
        for (unsigned at = i; reached.words[i / 8] && at < i + 8; at++)
            tell(at);
    print("\n");
}
