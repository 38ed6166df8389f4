/* SPDX-License-Identifier: MIT */
/* The service fuzz: memory. One region is reserved; what is committed in it, and how protected, the
 * model knows by page. Others come and go whole. */
#include "tests/ring3/fuzz.h"

NTSTATUS ZwQueryVirtualMemory(HANDLE ProcessHandle, PVOID BaseAddress, ULONG MemoryInformationClass,
                              PVOID MemoryInformation, SIZE_T MemoryInformationLength,
                              PSIZE_T ReturnLength);

#define PAGES 32u
#define MORE 4u /* regions */

static const ULONG kinds[] = { PAGE_NOACCESS,          PAGE_READONLY,
                               PAGE_READWRITE,         PAGE_EXECUTE_READ,
                               PAGE_EXECUTE_READWRITE, PAGE_READWRITE | PAGE_GUARD };
static uint8_t *arena;
static ULONG pages[PAGES]; /* protection; 0: not committed */
static struct {
    uint64_t base, size;
} more[MORE];

static bool there(void)
{
    PVOID base = NULL;
    SIZE_T size = PAGES * RING3_PAGE;
    if (!arena && CHECK_STATUS(ZwAllocateVirtualMemory(NtCurrentProcess(), &base, 0, &size,
                                                       MEM_RESERVE, PAGE_READWRITE),
                               STATUS_SUCCESS))
        arena = base;
    return arena != NULL;
}

/* The process, mostly. */
static HANDLE process(void)
{
    HANDLE h = NtCurrentProcess();
    if (fuzz_one_in(8))
        fuzz_handle(FUZZ_PROCESS, 0, &h);
    return h;
}

/* Some pages of the arena; base and size as the call takes them. False: there are none. */
struct span {
    unsigned from, end; /* pages */
    PVOID *base;
    SIZE_T *size;
};

static bool some_pages(struct span *s)
{
    if (!there())
        return false;
    s->from = fuzz_below(PAGES);
    s->end = s->from + 1 + fuzz_below(fuzz_one_in(4) ? PAGES - s->from : 1);
    unsigned odd = fuzz_below(RING3_PAGE);
    PVOID base = arena + s->from * RING3_PAGE + odd;
    SIZE_T size = (s->end - s->from) * RING3_PAGE - odd;
    s->base = fuzz_out(sizeof base); /* both are read and written */
    s->size = fuzz_out(sizeof size);
    if (!fuzz_refused()) {
        memcpy(s->base, &base, sizeof base);
        memcpy(s->size, &size, sizeof size);
        if (fuzz_one_in(12)) { /* sizes that wrap, and the kernel's half */
            static const uint64_t sizes[] = { ~0ull, 1ull << 63, 0x7fffffff0000, 0x800000000000,
                                              ~0ull - 0xfff };
            *s->size = FUZZ_ONE_OF(sizes);
        } else if (fuzz_one_in(12)) {
            *s->base = (PVOID)(0xffff800000000000 + (fuzz_random() & 0xfffffff));
        } else {
            return true;
        }
    }
    fuzz_refuse(STATUS_INVALID_PARAMETER); /* what stands there may be read, and is nothing good */
    fuzz_refuse(STATUS_NO_MEMORY);
    fuzz_refuse(STATUS_CONFLICTING_ADDRESSES);
    fuzz_refuse(STATUS_MEMORY_NOT_ALLOCATED);
    return true;
}

static void check_span(const struct span *s)
{
    CHECK_EQ((uint64_t)*s->base, (uint64_t)arena + s->from * RING3_PAGE);
    CHECK_EQ(*s->size, (s->end - s->from) * RING3_PAGE);
}

static bool all(const struct span *s)
{
    for (unsigned i = s->from; i < s->end; i++)
        if (!pages[i])
            return false;
    return true;
}

static void commit(void)
{
    struct span s;
    ULONG protect = FUZZ_ONE_OF(kinds), type = MEM_COMMIT;
    HANDLE h = process();
    ULONG_PTR zero = fuzz_one_in(24) ? fuzz_random() : 0;
    if (!some_pages(&s))
        return;
    if (fuzz_one_in(24))
        type |= MEM_RESERVE, fuzz_refuse(STATUS_CONFLICTING_ADDRESSES);
    if (zero)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    if (fuzz_one_in(24)) {
        static const ULONG none[] = { 0, 3, 0x200, PAGE_GUARD | PAGE_NOACCESS, 0xffffffff };
        protect = FUZZ_ONE_OF(none);
        fuzz_refuse(STATUS_INVALID_PAGE_PROTECTION);
    }
    bool were = all(&s);
    if (!FUZZ_ANSWER(ZwAllocateVirtualMemory(h, s.base, zero, s.size, type, protect)))
        return;
    check_span(&s);
    for (unsigned i = s.from; i < s.end; i++)
        if (were || !pages[i])
            pages[i] = protect;
}

static void decommit_some(void)
{
    struct span s;
    HANDLE h = process();
    if (!some_pages(&s))
        return;
    if (!FUZZ_ANSWER(ZwFreeVirtualMemory(h, s.base, s.size, MEM_DECOMMIT)))
        return;
    check_span(&s);
    for (unsigned i = s.from; i < s.end; i++)
        pages[i] = 0;
}

static void protect_some(void)
{
    struct span s;
    HANDLE h = process();
    ULONG as = FUZZ_ONE_OF(kinds);
    if (!some_pages(&s))
        return;
    ULONG *old = fuzz_out(sizeof *old);
    if (!all(&s))
        fuzz_refuse(STATUS_NOT_COMMITTED);
    ULONG before = pages[s.from];
    if (!FUZZ_ANSWER(ZwProtectVirtualMemory(h, s.base, s.size, as, old)))
        return;
    check_span(&s);
    CHECK_EQ(*old, before);
    for (unsigned i = s.from; i < s.end; i++)
        pages[i] = as;
}

static void query_memory(void)
{
    if (!there())
        return;
    unsigned at = fuzz_below(PAGES), end = at;
    HANDLE h = process();
    MEMORY_BASIC_INFORMATION *info = fuzz_out(sizeof *info);
    SIZE_T *returned = fuzz_out_optional(sizeof *returned),
           length = sizeof *info - (fuzz_one_in(16) ? 1 : 0);
    PVOID address = arena + at * RING3_PAGE + fuzz_below(RING3_PAGE);
    if (length != sizeof *info)
        fuzz_refuse(STATUS_INFO_LENGTH_MISMATCH);
    if (fuzz_one_in(16)) {
        address = (PVOID)(0x7fffffff0000 + fuzz_random());
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    }
    if (!FUZZ_ANSWER(
            ZwQueryVirtualMemory(h, address, MemoryBasicInformation, info, length, returned)))
        return;
    while (end < PAGES && pages[end] == pages[at])
        end++;
    CHECK_EQ((uint64_t)info->AllocationBase, (uint64_t)arena);
    CHECK_EQ((uint64_t)info->BaseAddress, (uint64_t)arena + at * RING3_PAGE);
    CHECK_EQ(info->RegionSize, (end - at) * RING3_PAGE);
    CHECK_EQ(info->State, pages[at] ? MEM_COMMIT : MEM_RESERVE);
    CHECK_EQ(info->Protect, pages[at]);
    if (returned)
        CHECK_EQ(*returned, sizeof *info);
}

/* What is there can be read and written, by us and by the kernel for us, and nothing else. */
static void use(void)
{
    unsigned at = fuzz_below(PAGES);
    BOOLEAN *to;
    if (!there() || pages[at] & PAGE_GUARD)
        return;
    bool writable = pages[at] == PAGE_READWRITE || pages[at] == PAGE_EXECUTE_READWRITE;
    LARGE_INTEGER *place = (LARGE_INTEGER *)(void *)(arena + at * RING3_PAGE + 8 * fuzz_below(512));
    to = (BOOLEAN *)place;
    if (writable)
        *(volatile BOOLEAN *)to = 1;
    else
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
    FUZZ_ANSWER(ZwQueryPerformanceCounter(place, NULL));
}

static void region(void)
{
    unsigned i = fuzz_below(MORE);
    PVOID base = (PVOID)more[i].base;
    SIZE_T size = more[i].base ? 0 : 1 + fuzz_below(0x10000);
    bool release = more[i].base;
    ULONG type = release ? MEM_RELEASE : fuzz_one_in(2) ? MEM_RESERVE | MEM_COMMIT : MEM_RESERVE;
    if (release && fuzz_one_in(4))
        size = 1 + fuzz_below(100), fuzz_refuse(STATUS_INVALID_PARAMETER);
    if (release && fuzz_one_in(4)) { /* no region begins there */
        base = (uint8_t *)base + 0x1000 + 0x10000 * fuzz_below(60);
        fuzz_refuse(STATUS_INVALID_PARAMETER);
        fuzz_refuse(STATUS_MEMORY_NOT_ALLOCATED);
    }
    if (!FUZZ_ANSWER(release ? ZwFreeVirtualMemory(NtCurrentProcess(), &base, &size, type)
                             : ZwAllocateVirtualMemory(NtCurrentProcess(), &base, 0, &size, type,
                                                       FUZZ_ONE_OF(kinds))))
        return;
    if (release)
        CHECK_EQ(size, more[i].size);
    CHECK_EQ((uint64_t)base % (release ? 1 : 0x10000), 0);
    more[i].base = release ? 0 : (uint64_t)base;
    more[i].size = size;
}

const struct fuzz_op fuzz_memory_ops[] = {
    { commit, 8 }, { decommit_some, 5 }, { protect_some, 8 }, { query_memory, 8 },
    { use, 6 },    { region, 4 },        { NULL, 0 },
};
