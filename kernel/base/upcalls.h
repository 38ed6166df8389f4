/* SPDX-License-Identifier: MIT */
/* Calls from lower files up into higher ones: pointers, NULL until somebody sets them. make check
 * proves that there are no others, and that the files named set them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct _KDPC;
struct etw_logger;
struct object;
struct process;
struct thread;
struct trap_frame;

/* Of ring-0 code that is not the kernel's: says whose an address is, or nothing; sees an exception
 * before it is a panic. Set by kernel/driver/load.c before the first driver runs. */
extern void (*panic_owner)(uint64_t address, char *text, size_t size);
extern void (*panic_first)(const struct trap_frame *frame, uint64_t fault_address);
/* Called in each tick with the interrupted IRQL. Set by kernel/driver/load.c, as these. */
extern void (*trap_tick)(const struct trap_frame *frame, uint64_t irql);

/* Re-arms those of these counters that sample. The NMI calls it. Set by
 * hal/profile_interrupt.c at boot. */
extern void (*pmi_rearm)(uint64_t counters);

/* Ends the current thread if it must end (thread_must_end). Called before a wait and after a mutex.
 * Set by kernel/main.c at boot. */
extern void (*wait_killed)(void);
/* Called by each thread that ends, and by the last one of a process, at PASSIVE_LEVEL. Set by
 * kernel/main.c at boot. */
extern void (*thread_ended)(struct thread *thread);
extern void (*process_ended)(const struct process *process);
/* Called when a thread begins, by the thread that made it, and when it ends, by itself; by the last
 * thread of a process when it ends. Set by kernel/driver/notify.c when a driver asks for it. */
extern void (*thread_notify)(struct thread *thread, bool create);
extern void (*process_notify_end)(struct process *process);

/* Called at DISPATCH_LEVEL when a timer with a DPC expires. Set by kernel/driver/dpc.c with the
 * first such timer. */
extern void (*timer_dpc)(struct _KDPC *dpc);

/* Called before a session stops. L: guard. Set by kernel/etw/log_file.c with the first log file. */
extern void (*etw_stopping)(struct etw_logger *logger);

/* Drivers' deferred calls. With interrupts off, at the vector's IRQL. Atomic. Set by
 * kernel/driver/dpc.c with the first. */
extern void (*trap_dpc)(void);
/* Drivers' NMI callbacks, in the NMI handler: whether one of them handled it. Atomic. Set by
 * kernel/driver/nmi.c with the first. */
extern bool (*trap_nmi_callbacks)(void);
/* Called from the tick after an NMI that nobody claims, not the line that says so. Atomic. Set by
 * kernel/init/threads.c before a program runs. */
extern void (*trap_stray_nmi)(void);
/* How driver_start and driver_stop wait for their thread; NULL: by sched_wait. Set by
 * kernel/init/threads.c before a program runs. */
extern void (*driver_wait)(struct object *object);
