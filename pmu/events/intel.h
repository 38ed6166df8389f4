/* SPDX-License-Identifier: MIT */
/* The rows that every Intel processor since Core may have; CPUID 0Ah.EBX says which are missing.
 * Source: Intel SDM vol. 3 "Pre-defined architectural performance events",
 * "Fixed-function performance counters". */
#pragma once
#include "pmu/pmu.h"

#define INTEL_ARCHITECTURAL                                                                              \
    [PMU_CYCLES] = { 0x3c, 0x00, "UnHalted Core Cycles", PMU_ANY_GP | PMU_FIX(1), 0, false },            \
    [PMU_INSTRUCTIONS] = { 0xc0, 0x00, "Instruction Retired", PMU_ANY_GP | PMU_FIX(0), 0, false },       \
    [PMU_BUS_CYCLES] = { 0x3c, 0x01, "UnHalted Reference Cycles", PMU_ANY_GP, 0, false },                \
    [PMU_LLC_REFERENCES] = { 0x2e, 0x4f, "LLC Reference", PMU_ANY_GP, 0, false },                        \
    [PMU_LLC_MISSES] = { 0x2e, 0x41, "LLC Misses", PMU_ANY_GP, 0, false },                               \
    [PMU_BRANCHES] = { 0xc4, 0x00, "Branch Instruction Retired", PMU_ANY_GP, 0, false },                 \
    [PMU_BRANCH_MISSES] = { 0xc5, 0x00, "Branch Misses Retired", PMU_ANY_GP, 0, false },                 \
    [PMU_SLOTS] = { 0xa4, 0x01, "Topdown Slots", PMU_ANY_GP | PMU_FIX(3), 0, false },                    \
    /* 00/03 is no code of a general-purpose counter: fixed counter 2 only. */                           \
    [PMU_REF_CYCLES] = { 0x00, 0x03, "CPU_CLK_UNHALTED.REF_TSC", PMU_FIX(2), 0, false }
