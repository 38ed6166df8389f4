/* SPDX-License-Identifier: MIT */
#include "kernel/base/cpu_set.h"
#include "kernel/base/cpu.h"

struct cpu_set cpu_running;

struct cpu_set cpu_set_group(unsigned group, uint64_t mask)
{
    struct cpu_set set = cpu_set_none();
    set.bits[group] = mask;
    return set;
}

struct cpu_set cpu_set_one(unsigned cpu)
{
    struct cpu_set set = cpu_set_none();
    cpu_set_add(&set, cpu);
    return set;
}

struct cpu_set cpu_set_and(struct cpu_set a, struct cpu_set b)
{
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        a.bits[i] &= b.bits[i];
    return a;
}

struct cpu_set cpu_set_or(struct cpu_set a, struct cpu_set b)
{
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        a.bits[i] |= b.bits[i];
    return a;
}

struct cpu_set cpu_set_minus(struct cpu_set a, struct cpu_set b)
{
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        a.bits[i] &= ~b.bits[i];
    return a;
}

bool cpu_set_empty(struct cpu_set set)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < CPU_GROUPS_MAX; i++)
        any |= set.bits[i];
    return !any;
}

bool cpu_set_meet(struct cpu_set a, struct cpu_set b) { return !cpu_set_empty(cpu_set_and(a, b)); }

bool cpu_set_subset(struct cpu_set a, struct cpu_set b)
{
    return cpu_set_empty(cpu_set_minus(a, b));
}

bool cpu_set_equal(struct cpu_set a, struct cpu_set b)
{
    return cpu_set_subset(a, b) && cpu_set_subset(b, a);
}

unsigned cpu_set_next(const struct cpu_set *set, unsigned cpu)
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

/* --- Processor groups. --- */

USHORT cpu_groups(void)
{
    USHORT n = 0;
    while (n < CPU_GROUPS_MAX && cpu_running.bits[n])
        n++;
    return n;
}

PROCESSOR_NUMBER cpu_group_number(unsigned cpu)
{
    return (PROCESSOR_NUMBER){ .Group = (USHORT)(cpu / CPU_GROUP_SIZE),
                               .Number = (UCHAR)(cpu % CPU_GROUP_SIZE) };
}

unsigned cpu_of_number(PROCESSOR_NUMBER number)
{
    unsigned cpu = number.Group * CPU_GROUP_SIZE + number.Number;
    bool exists = number.Group < CPU_GROUPS_MAX && number.Number < CPU_GROUP_SIZE &&
                  cpu_set_has(&cpu_running, cpu);
    return exists && !number.Reserved ? cpu : MAX_CPUS;
}

bool cpu_set_of_group(const GROUP_AFFINITY *affinity, struct cpu_set *set)
{
    if (affinity->Group >= CPU_GROUPS_MAX || !affinity->Mask || affinity->Reserved[0] ||
        affinity->Reserved[1] || affinity->Reserved[2])
        return false;
    *set = cpu_set_group(affinity->Group, affinity->Mask);
    return cpu_set_subset(*set, cpu_running);
}

GROUP_AFFINITY cpu_set_primary(struct cpu_set set)
{
    USHORT group = 0;
    while (group < CPU_GROUPS_MAX - 1 && !set.bits[group])
        group++;
    return (GROUP_AFFINITY){ .Mask = set.bits[group], .Group = group };
}
