/* SPDX-License-Identifier: MIT */
/* A foreign guest's control registers: what VMRUN would refuse is refused where it is written. */
#pragma once
#include <stdbool.h>

struct vcpu;

/* A MOV to CR0 or CR4, or LMSW, was intercepted: raises #GP, or has the guest execute it alone. */
void control_write(struct vcpu *v);
