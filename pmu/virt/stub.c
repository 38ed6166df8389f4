/* SPDX-License-Identifier: MIT */
#include "pmu/virt/virt.h"
#include "kernel/print.h"
void virt_boot(const char *model) { print("# vpmu %s\n", model); }
void virt_ap(void) {}
