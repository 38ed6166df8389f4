/* SPDX-License-Identifier: MIT */
/* Which hypervisor there is, by CPUID. Only for people to read: nothing depends on it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* CPUID, the real one or a test's. */
struct cpuid;
typedef struct cpuid hypervisor_cpuid(uint32_t leaf);

/* Writes its name, version and features, if CPUID reports them; any answers of CPUID are legal. */
void hypervisor_describe(hypervisor_cpuid *ask, char *text, size_t size);
/* Describes this machine's hypervisor; "none" if CPUID says that there is none. */
void hypervisor_name(char *text, size_t size);
