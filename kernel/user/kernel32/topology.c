/* SPDX-License-Identifier: MIT */
/* Which processors the machine has: cores, caches by CPUID, one node, one package, groups. NT: each
 * processor is a core of its own; caches that only CPUID 80000005h tells of are left out. */
#include "kernel32.h"
#include <cpuid.h>

#define GROUP_SIZE 64u
#define GROUPS_MOST 64u
#define LEAF_INTEL 4
#define LEAF_AMD 0x8000001du
#define CACHES_MOST 8u

struct cache {
    CACHE_DESCRIPTOR is;
    unsigned shared; /* by as many processors that follow each other */
};

/* What is written, or would be: `used` goes on beyond `room`. */
struct output {
    BYTE *buffer;
    DWORD room, used;
};

static DWORD processors(void) { return teb()->peb->processors; }
static WORD groups(void) { return (WORD)((processors() + GROUP_SIZE - 1) / GROUP_SIZE); }

/* Processors `first` to first + count - 1, as far as they are of the group and there are any. */
static GROUP_AFFINITY part(WORD group, DWORD first, DWORD count)
{
    GROUP_AFFINITY a = { .Group = group };
    for (DWORD i = first; i < first + count && i < processors(); i++)
        if (i / GROUP_SIZE == group)
            a.Mask |= 1ull << i % GROUP_SIZE;
    return a;
}

static GROUP_AFFINITY whole(WORD group) { return part(group, group * GROUP_SIZE, GROUP_SIZE); }

static void emit(struct output *o, const void *item, DWORD size)
{
    if (o->used + size <= o->room)
        memcpy(o->buffer + o->used, item, size);
    o->used += size;
}

/* --- Caches. --- */

static unsigned power_above(unsigned n)
{
    unsigned p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static unsigned leaf_of_caches(void)
{
    unsigned a, b, c, d;
    if (__get_cpuid_count(LEAF_AMD, 0, &a, &b, &c, &d) && a & 31)
        return LEAF_AMD;
    return __get_cpuid_count(LEAF_INTEL, 0, &a, &b, &c, &d) && a & 31 ? LEAF_INTEL : 0;
}

/* 0: CPUID does not tell. */
static unsigned read_caches(struct cache *caches)
{
    static const PROCESSOR_CACHE_TYPE types[] = { 0, CacheData, CacheInstruction, CacheUnified };
    unsigned leaf = leaf_of_caches(), a, b, c, d, n = 0;
    while (leaf && n < CACHES_MOST && __get_cpuid_count(leaf, n, &a, &b, &c, &d) && (a & 31) &&
           (a & 31) < ARRAYSIZE(types)) {
        unsigned ways = (b >> 22) + 1, partitions = (b >> 12 & 0x3ff) + 1, line = (b & 0xfff) + 1;
        caches[n++] = (struct cache){ { .Level = a >> 5 & 7,
                                        .Associativity = (BYTE)(a >> 9 & 1 ? 0xff : ways),
                                        .LineSize = (WORD)line,
                                        .Size = ways * partitions * line * (c + 1),
                                        .Type = types[a & 31] },
                                      power_above((a >> 14 & 0xfff) + 1) };
    }
    return n;
}

/* --- By relations. --- */

static SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *begin_item(void *item, int relation, DWORD size)
{
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *x = item;
    memset(x, 0, size);
    x->Relationship = (LOGICAL_PROCESSOR_RELATIONSHIP)relation;
    x->Size = size;
    return x;
}

#define SIZE(member) (DWORD) FIELD_OFFSET(SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, member)

static void emit_cores(struct output *o)
{
    const DWORD size = SIZE(Processor.GroupMask[1]);
    ULONG64 item[16];
    for (DWORD i = 0; i < processors(); i++) {
        SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *x = begin_item(item, RelationProcessorCore, size);
        x->Processor.GroupCount = 1;
        x->Processor.GroupMask[0] = part((WORD)(i / GROUP_SIZE), i, 1);
        emit(o, x, size);
    }
}

static void emit_package(struct output *o)
{
    ULONG64 item[16 + 2 * GROUPS_MOST];
    const DWORD size = SIZE(Processor.GroupMask) + groups() * (DWORD)sizeof(GROUP_AFFINITY);
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *x = begin_item(item, RelationProcessorPackage, size);
    x->Processor.GroupCount = groups();
    for (WORD g = 0; g < groups(); g++)
        x->Processor.GroupMask[g] = whole(g);
    emit(o, x, size);
}

/* NT: its primary group only, as before Windows Server 2022. */
static void emit_node(struct output *o)
{
    const DWORD size = SIZE(NumaNode) + sizeof(NUMA_NODE_RELATIONSHIP);
    ULONG64 item[16];
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *x = begin_item(item, RelationNumaNode, size);
    x->NumaNode.GroupMask = whole(0);
    emit(o, x, size);
}

static void emit_caches(struct output *o)
{
    const DWORD size = SIZE(Cache) + sizeof(CACHE_RELATIONSHIP);
    struct cache caches[CACHES_MOST];
    ULONG64 item[16];
    unsigned count = read_caches(caches);
    for (unsigned n = 0; n < count; n++)
        for (DWORD i = 0; i < processors(); i += caches[n].shared < 64 ? caches[n].shared : 64) {
            SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *x = begin_item(item, RelationCache, size);
            x->Cache.Level = caches[n].is.Level;
            x->Cache.Associativity = caches[n].is.Associativity;
            x->Cache.LineSize = caches[n].is.LineSize;
            x->Cache.CacheSize = caches[n].is.Size;
            x->Cache.Type = caches[n].is.Type;
            x->Cache.GroupMask = part((WORD)(i / GROUP_SIZE), i, caches[n].shared);
            emit(o, x, size);
        }
}

static void emit_groups(struct output *o)
{
    ULONG64 item[16 + 8 * GROUPS_MOST];
    const DWORD size = SIZE(Group) + (DWORD)FIELD_OFFSET(GROUP_RELATIONSHIP, GroupInfo) +
                       groups() * (DWORD)sizeof(PROCESSOR_GROUP_INFO);
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *x = begin_item(item, RelationGroup, size);
    x->Group.MaximumGroupCount = x->Group.ActiveGroupCount = groups();
    for (WORD g = 0; g < groups(); g++) {
        GROUP_AFFINITY a = whole(g);
        PROCESSOR_GROUP_INFO *info = &x->Group.GroupInfo[g];
        info->ActiveProcessorMask = a.Mask;
        info->ActiveProcessorCount = info->MaximumProcessorCount =
            (BYTE)__builtin_popcountll(a.Mask);
    }
    emit(o, x, size);
}

static BOOL report_size(const struct output *o, PDWORD length)
{
    *length = o->used;
    return o->used <= o->room || fail(ERROR_INSUFFICIENT_BUFFER);
}

/* FALSE, ERROR_INSUFFICIENT_BUFFER: *ReturnedLength is what is needed; ERROR_INVALID_PARAMETER: a
 * relation that there is not. */
WINBOOL WINAPI GetLogicalProcessorInformationEx(LOGICAL_PROCESSOR_RELATIONSHIP RelationshipType,
                                                PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Buffer,
                                                PDWORD ReturnedLength)
{
    static void (*const emits[])(struct output *) = { emit_cores, emit_node, emit_caches,
                                                      emit_package, emit_groups };
    struct output o = { (BYTE *)Buffer, Buffer ? *ReturnedLength : 0, 0 };
    const unsigned type = (unsigned)RelationshipType;
    if (type != RelationAll && type >= ARRAYSIZE(emits))
        return fail(ERROR_INVALID_PARAMETER);
    for (unsigned i = 0; i < ARRAYSIZE(emits); i++)
        if (type == RelationAll || type == i)
            emits[i](&o);
    return report_size(&o, ReturnedLength);
}

/* --- Without groups: the caller's own. --- */

static void emit_plain(struct output *o, DWORD_PTR mask, int relation,
                       const CACHE_DESCRIPTOR *cache)
{
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION x = { 0 };
    x.ProcessorMask = mask;
    x.Relationship = (LOGICAL_PROCESSOR_RELATIONSHIP)relation;
    if (cache)
        x.Cache = *cache;
    emit(o, &x, sizeof x);
}

WINBOOL WINAPI GetLogicalProcessorInformation(PSYSTEM_LOGICAL_PROCESSOR_INFORMATION Buffer,
                                              PDWORD ReturnedLength)
{
    struct output o = { (BYTE *)Buffer, Buffer ? *ReturnedLength : 0, 0 };
    struct cache caches[CACHES_MOST];
    GROUP_AFFINITY own;
    if (!GetThreadGroupAffinity(CURRENT_THREAD, &own))
        return FALSE;
    const GROUP_AFFINITY all = whole(own.Group);
    const DWORD count = (DWORD)__builtin_popcountll(all.Mask), first = own.Group * GROUP_SIZE;
    unsigned cache_count = read_caches(caches);
    for (DWORD i = 0; i < count; i++)
        emit_plain(&o, 1ull << i, RelationProcessorCore, NULL);
    for (unsigned n = 0; n < cache_count; n++)
        for (DWORD i = 0; i < count; i += caches[n].shared)
            emit_plain(&o, part(own.Group, first + i, caches[n].shared).Mask, RelationCache,
                       &caches[n].is);
    emit_plain(&o, all.Mask, RelationNumaNode, NULL);
    emit_plain(&o, all.Mask, RelationProcessorPackage, NULL);
    return report_size(&o, ReturnedLength);
}

WINBOOL WINAPI GetNumaHighestNodeNumber(PULONG HighestNodeNumber)
{
    *HighestNodeNumber = 0;
    return TRUE;
}
