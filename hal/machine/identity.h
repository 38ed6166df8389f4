/* SPDX-License-Identifier: MIT */
/* What machine this is, for people to read: nothing depends on it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct boot_info;

/* Prints a line each on the machine's maker, its processor and its hypervisor. Boot CPU, once, when
 * it can take exceptions and before there are processes. */
void identity_print(const struct boot_info *boot);
/* Describes this machine's hypervisor; "none" if CPUID says that there is none. */
void hypervisor_name(char *text, size_t size);
/* CPUID, the real one or a test's. */
struct cpuid;
typedef struct cpuid hypervisor_cpuid(uint32_t leaf);
/* Writes its name, version and features, if CPUID reports them; any answers of CPUID are legal. */
void hypervisor_describe(hypervisor_cpuid *ask, char *text, size_t size);
