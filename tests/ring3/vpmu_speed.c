/* SPDX-License-Identifier: MIT */
/* For tests/vpmu/vpmu_speed.c. */
#include "tests/ring3/helpers.h"

/* Two instructions an iteration. On a page of its own: another function there may have bytes like a
 * string instruction's, and the virtual PMU then executes the page in blocks. */
asm(".text\n.balign 4096\n.globl user_speed_loop\n"
    "user_speed_loop: dec %rcx\njnz user_speed_loop\nret\n.balign 4096");

void user_speed_string(uint64_t pages)
{
    void *to = ring3_pages((unsigned)pages);
    uint64_t count = pages * RING3_PAGE;
    asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
    CHECK_EQ(count, 0);
}
