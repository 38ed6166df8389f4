/* SPDX-License-Identifier: MIT */
#pragma once

struct trap_frame;

/* The service that RAX names, with the caller's registers; its result in RAX. Interrupts on. */
void syscall_dispatch(struct trap_frame *frame);
/* STAR, LSTAR, SFMASK of this CPU. */
void syscall_init_cpu(void);
