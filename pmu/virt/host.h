/* SPDX-License-Identifier: MIT */
/* The loop of entries and exits, for those who start a guest. */
#pragma once
#include "pmu/virt/vcpu.h"

/* Starts the virtual PMU; returns the first CPU, or NULL after one line: unknown model, no SVM. */
struct vcpu *virt_start(const char *text);
/* Runs the guest whose whole state is in the VMCB. */
__attribute__((noreturn)) void virt_enter(struct vcpu *v);
