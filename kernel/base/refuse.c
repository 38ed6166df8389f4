/* SPDX-License-Identifier: MIT */
#include "kernel/base/refuse.h"
#include "kernel/base/cpu.h"

struct refusal refusal;

bool claim_fails_now(void)
{
    return refusal.thread == CPU_FIELD(thread) && ++refusal.claims == refusal.at;
}
