/* SPDX-License-Identifier: MIT */
/* What vpmu= names. */
#pragma once
#include <stdbool.h>
#include "pmu/virt/model.h"

/* Reads what vpmu= says: a model, then quirks. False after one line that says what is wrong. */
bool machine_choose(const char *text);
/* The model of this CPU; vpmu= as it is printed; the machine's name, or "". */
const struct model *machine_model(unsigned cpu);
const char *machine_text(void);
const char *machine_name(void);
