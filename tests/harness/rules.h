/* SPDX-License-Identifier: MIT */
/* Whose rules the PMU here follows. Manuals write silicon's; KVM has rules of its own where it
 * differs, and a test that meets a difference says so and judges by the rule that it faces. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* A KVM is among the hypervisors that CPUID names, from leaf 4000_0000h on. */
bool rules_kvm(void);
/* Bits above 31 of an event select that this processor may have a use for: transactions, PEBS, and
 * what version 6 brought. */
bool rules_may_have_a_use(unsigned bit);
/* No RDMSR and no WRMSR of an absent register faults: kvm.ignore_msrs=Y. Asked once, of a register
 * that no processor has. */
bool rules_absent_ignored(void);
/* What so many accesses to PMU registers cost more under a hypervisor, which may intercept each: in
 * ns, by this CPU's own time for one. 0 on silicon. */
uint64_t rules_access_ns(unsigned accesses);
