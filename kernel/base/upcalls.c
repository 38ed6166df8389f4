/* SPDX-License-Identifier: MIT */
/* kernel/base/upcalls.h. */
#include "kernel/base/upcalls.h"

void (*panic_owner)(uint64_t address, char *text, size_t size);
void (*panic_first)(const struct trap_frame *frame, uint64_t fault_address);
void (*trap_tick)(const struct trap_frame *frame, uint64_t irql);
void (*pmi_rearm)(uint64_t counters);
void (*wait_killed)(void);
void (*thread_ended)(struct thread *thread);
void (*process_ended)(const struct process *process);
void (*thread_notify)(struct thread *thread, bool create);
void (*process_notify_end)(struct process *process);
void (*timer_dpc)(struct _KDPC *dpc);
void (*etw_stopping)(struct etw_logger *logger);
void (*trap_dpc)(void);
bool (*trap_nmi_callbacks)(void);
void (*trap_stray_nmi)(void);
void (*driver_wait)(struct object *object);
