/* SPDX-License-Identifier: MIT */
#include "pmu/virt/svm.h"
void baton_join(struct vcpu *v) { v->host_apic_id = host_apic_id(); }
bool baton_needed(void) { return false; }
void baton_pause(struct vcpu *v) { (void)v; }
void baton_halt(struct vcpu *v) { uint32_t n = svm_halt(); if (n) v->vmcb.event = n | EVENT_INTERRUPT | EVENT_VALID; }
bool baton_guest_nmi(struct vcpu *v, unsigned count) { (void)v; return count; }
