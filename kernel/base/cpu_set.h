/* SPDX-License-Identifier: MIT */
/* Sets of CPUs, by their numbers. Windows' processor groups, with 64 CPUs each in the order of
 * their numbers, are the words of such a set: a KAFFINITY and its group are at the API's edges
 * only. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/layout.h"

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
static inline struct cpu_set cpu_set_group(unsigned group, uint64_t mask)
{
    struct cpu_set set = cpu_set_none();
    set.bits[group] = mask;
    return set;
}

static inline void cpu_set_add(struct cpu_set *set, unsigned cpu)
{
    set->bits[cpu / CPU_GROUP_SIZE] |= UINT64_C(1) << cpu % CPU_GROUP_SIZE;
}

static inline void cpu_set_remove(struct cpu_set *set, unsigned cpu)
{
    set->bits[cpu / CPU_GROUP_SIZE] &= ~(UINT64_C(1) << cpu % CPU_GROUP_SIZE);
}

static inline struct cpu_set cpu_set_one(unsigned cpu)
{
    struct cpu_set set = cpu_set_none();
    cpu_set_add(&set, cpu);
    return set;
}

/* The scheduler and the profile interrupt ask this: BT finds the word by itself. */
static inline bool cpu_set_has(const struct cpu_set *set, unsigned cpu)
{
    bool has;
    asm("btq %2,%1" : "=@ccc"(has) : "m"(*set), "r"((uint64_t)cpu));
    return has;
}

static inline struct cpu_set cpu_set_and(struct cpu_set a, struct cpu_set b)
{
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        a.bits[i] &= b.bits[i];
    return a;
}

static inline struct cpu_set cpu_set_or(struct cpu_set a, struct cpu_set b)
{
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        a.bits[i] |= b.bits[i];
    return a;
}

static inline struct cpu_set cpu_set_minus(struct cpu_set a, struct cpu_set b)
{
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        a.bits[i] &= ~b.bits[i];
    return a;
}

static inline bool cpu_set_empty(struct cpu_set set)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        any |= set.bits[i];
    return !any;
}

static inline bool cpu_set_meet(struct cpu_set a, struct cpu_set b)
{
    return !cpu_set_empty(cpu_set_and(a, b));
}

/* Whether all of a are in b. */
static inline bool cpu_set_subset(struct cpu_set a, struct cpu_set b)
{
    return cpu_set_empty(cpu_set_minus(a, b));
}

static inline bool cpu_set_equal(struct cpu_set a, struct cpu_set b)
{
    return cpu_set_subset(a, b) && cpu_set_subset(b, a);
}

/* The first CPU of the set from `cpu` on; MAX_CPUS: none. */
static inline unsigned cpu_set_next(const struct cpu_set *set, unsigned cpu)
{
    unsigned i = cpu / CPU_GROUP_SIZE;
    uint64_t rest = i < CPU_GROUPS_MAX ? set->bits[i] >> cpu % CPU_GROUP_SIZE : 0;
    if (rest)
        return cpu + (unsigned)__builtin_ctzll(rest);
    for (i++; i < CPU_GROUPS_MAX; i++)
        if (set->bits[i])
            return i * CPU_GROUP_SIZE + (unsigned)__builtin_ctzll(set->bits[i]);
    return MAX_CPUS;
}

/* A loop over the CPUs of *set, in order. */
#define for_each_cpu(cpu, set)                                                                     \
    for (unsigned cpu = cpu_set_next((set), 0); cpu < MAX_CPUS; cpu = cpu_set_next((set), cpu + 1))
