/* SPDX-License-Identifier: MIT */
/* How the tables here are written: a family says what it counts otherwise than its base. Columns of a row: event, code, unit
 * mask, flags, counters (0: those of the table), NEAR or EXACT, the vendor's name.
 *
 * An event that the vendor's list for a family does not have is absent, never guessed. */
#pragma once
#include "pmu/pmu.h"

#define ROWS(...) .rows = (const struct pmu_event_row[]){ __VA_ARGS__, { .event = PMU_EVENT_COUNT } }
#define NO_ROWS .rows = (const struct pmu_event_row[]){ { .event = PMU_EVENT_COUNT } }
#define NEAR true
#define EXACT false
#define LACKS(which) { .event = (which) } /* what the base has */
/* Cycles in which at least so many were issued. */
#define AT_LEAST(n, code, umask, name) { PMU_ISSUE_##n, code, umask, PMU_THRESHOLD(n), 0, NEAR, name }
#define NONE PMU_THRESHOLD(1) | PMU_INVERT /* cycles with less than one */
