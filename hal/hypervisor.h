/* SPDX-License-Identifier: MIT */
/* Which hypervisor there is, by what CPUID tells. For people: nothing depends on it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* CPUID, the real one or a test's. */
struct cpuid;
typedef struct cpuid hypervisor_cpuid(uint32_t leaf);

/* Writes its name, version and features as far as they can be seen; any answers of CPUID are legal.
 */
void hypervisor_describe(hypervisor_cpuid *ask, char *text, size_t size);
/* The same of this machine, where CPUID says that there is one; else "none". */
void hypervisor_name(char *text, size_t size);
