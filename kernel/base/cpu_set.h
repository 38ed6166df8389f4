/* SPDX-License-Identifier: MIT */
/* Sets of CPUs, by their numbers. Windows' processor groups, with 64 CPUs each in the order of
 * their numbers, are the words of such a set: a KAFFINITY and its group are at the API's edges
 * only. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/layout.h"
#include "kernel/nt/nt.h"

#define CPU_GROUP_SIZE 64u
#define CPU_GROUPS_MAX (MAX_CPUS / CPU_GROUP_SIZE)

struct cpu_set {
    uint64_t bits[CPU_GROUPS_MAX];
};

/* CPUs that run: the first cpu_count numbers. */
extern struct cpu_set cpu_running;

static inline struct cpu_set cpu_set_none(void) { return (struct cpu_set){ .bits = { 0 } }; }
static inline struct cpu_set cpu_all(void) { return cpu_running; }

/* The CPUs of a group whose bits are set; the group is below CPU_GROUPS_MAX. */
struct cpu_set cpu_set_group(unsigned group, uint64_t mask);

static inline void cpu_set_add(struct cpu_set *set, unsigned cpu)
{
    set->bits[cpu / CPU_GROUP_SIZE] |= UINT64_C(1) << cpu % CPU_GROUP_SIZE;
}

static inline void cpu_set_remove(struct cpu_set *set, unsigned cpu)
{
    set->bits[cpu / CPU_GROUP_SIZE] &= ~(UINT64_C(1) << cpu % CPU_GROUP_SIZE);
}

struct cpu_set cpu_set_one(unsigned cpu);

/* The scheduler and the profile interrupt ask this: BT finds the word by itself. */
static inline bool cpu_set_has(const struct cpu_set *set, unsigned cpu)
{
    bool has;
    asm("btl %2,%1" : "=@ccc"(has) : "m"(*set), "r"(cpu));
    return has;
}

struct cpu_set cpu_set_and(struct cpu_set a, struct cpu_set b);
struct cpu_set cpu_set_or(struct cpu_set a, struct cpu_set b);
struct cpu_set cpu_set_minus(struct cpu_set a, struct cpu_set b);
bool cpu_set_empty(struct cpu_set set);
bool cpu_set_meet(struct cpu_set a, struct cpu_set b);

/* Whether all of a are in b. */
bool cpu_set_subset(struct cpu_set a, struct cpu_set b);

bool cpu_set_equal(struct cpu_set a, struct cpu_set b);

/* The first CPU of the set from `cpu` on; MAX_CPUS: none. */
unsigned cpu_set_next(const struct cpu_set *set, unsigned cpu);

/* --- As the API has them. --- */

/* Processor groups of this machine. Each but the last is full. */
USHORT cpu_groups(void);
PROCESSOR_NUMBER cpu_group_number(unsigned cpu);
/* The CPU; MAX_CPUS: there is none, or Reserved is not 0. */
unsigned cpu_of_number(PROCESSOR_NUMBER number);
/* False: no CPU is named, one that does not run, a group that there is not, or reserved fields are
 * not 0. */
bool cpu_set_of_group(const GROUP_AFFINITY *affinity, struct cpu_set *set);
/* The part of a thread's set that one GROUP_AFFINITY can express: the CPUs of its primary
 * group, the lowest that it has. As in Windows 11, a thread may run on all groups until somebody
 * sets its affinity. */
GROUP_AFFINITY cpu_set_primary(struct cpu_set set);

/* A loop over the CPUs of *set, in order. */
#define for_each_cpu(cpu, set)                                                                     \
    for (unsigned cpu = cpu_set_next((set), 0); cpu < MAX_CPUS; cpu = cpu_set_next((set), cpu + 1))
