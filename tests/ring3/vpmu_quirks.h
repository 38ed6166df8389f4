/* SPDX-License-Identifier: MIT */
/* Ring-3 half of tests/vpmu/vpmu_quirks_count.c and vpmu_questions.c, as ring 0 knows it. The
 * argument is an RDPMC selector. */
#pragma once
#include <stdint.h>

#define USER_QUIRK_TRIES 20u
/* Of work_10 and a CALL: plain, with TF set; the least of the tries. */
extern uint64_t user_quirk_counts[2];
extern void user_quirk_traps(void);
/* High half of the argument: how many instructions RDPMC may lack. */
extern void user_questions(void);
