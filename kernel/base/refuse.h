/* SPDX-License-Identifier: MIT */
/* For tests: one of the coming claims of one thread fails. A claim is what is refused for want of
 * something: pages, a block of pool, a counter, a handle, a place in a table. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct refusal {
    const void *thread; /* atomic; whose claims are counted; NULL: nobody's */
    unsigned at;        /* the claim to refuse: 1 is the next one; 0: none */
    unsigned claims;    /* made since `thread` was set; that thread writes it */
};
extern struct refusal refusal;

bool claim_fails_now(void);
/* Asked by each claim, before it takes anything. Any IRQL. */
static inline bool claim_fails(void)
{
    return __builtin_expect(__atomic_load_n(&refusal.thread, __ATOMIC_ACQUIRE) != NULL, 0) &&
           claim_fails_now();
}
