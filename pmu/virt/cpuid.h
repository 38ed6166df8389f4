/* SPDX-License-Identifier: MIT */
/* What CPUID answers: the model's leaves (cpuid.c), the virtual PMU's own (own_leaf.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

void virt_cpuid(struct vcpu *v);
/* One of the virtual PMU's own leaves; false: this is none of them. */
bool own_leaf(const struct vcpu *v, uint32_t leaf, uint32_t subleaf, uint32_t r[4]);
