/* SPDX-License-Identifier: MIT */
#pragma once

/* STAR, LSTAR, SFMASK of this CPU. */
void syscall_init_cpu(void);
