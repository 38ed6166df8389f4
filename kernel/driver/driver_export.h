/* SPDX-License-Identifier: MIT */
/* The table of what drivers import. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "kernel/driver/nt_driver.h"

/* The address that an import by this name is bound to; NULL: there is none. NT: names of
 * ntoskrnl.exe and hal.dll are one table, as hal.dll's forward to the kernel since Windows 10 2004.
 */
void *export_find(const char *name);
/* Whether it is a library that drivers import from, in any case. */
bool export_library(const char *name);
/* From here on this thread's calls that fail are kept; export_failure then says which was the last,
 * or nothing. PASSIVE_LEVEL. */
void export_watch(void);
void export_failure(char *text, size_t capacity);
/* Of ntoskrnl.exe and hal.dll, by name; NULL: there is none. PASSIVE_LEVEL. */
PVOID MmGetSystemRoutineAddress(PUNICODE_STRING SystemRoutineName);
