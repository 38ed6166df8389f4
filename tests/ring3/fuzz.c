/* SPDX-License-Identifier: MIT */
/* The model of the service fuzz, and what draws arguments. tests/ring3/fuzz.h explains it. */
#include "tests/ring3/fuzz.h"

#define SLOTS 40
#define THINGS 48
#define AREAS 4
#define AREA_SIZE 768
#define GUARD 64
#define SWEPT 600 /* handles that are tried at the end: more than the model ever has */

struct fuzz_thing fuzz_me = { .kind = FUZZ_THREAD, .handles = 1 };
unsigned fuzz_cpus, fuzz_number;
bool fuzz_pmu;
static struct fuzz_thing my_process = { .kind = FUZZ_PROCESS, .handles = 1 };
static struct fuzz_slot pseudo_thread = { NULL, THREAD_ALL_ACCESS, &fuzz_me },
                        pseudo_process = { NULL, PROCESS_ALL_ACCESS, &my_process };
static struct fuzz_slot slots[SLOTS];
static struct fuzz_thing things[THINGS];
static uint64_t state, calls;
static bool wrong;

void fuzz_seed(uint64_t seed)
{
    state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (unsigned i = 0; i < 10; i++)
        ring3_random(&state);
}

uint64_t fuzz_random(void) { return ring3_random(&state) >> 11; }
unsigned fuzz_below(unsigned n) { return n ? (unsigned)(fuzz_random() % n) : 0; }
bool fuzz_one_in(unsigned n) { return fuzz_below(n) == 0; }

/* --- Answers. --- */

static NTSTATUS wanted, may[16];
static unsigned may_count;
static bool refused;
static bool last_used; /* the last page, by this call */

void fuzz_expect(NTSTATUS status) { wanted = status; }

void fuzz_allow(NTSTATUS status)
{
    if (may_count < ARRAYSIZE(may))
        may[may_count++] = status;
}

void fuzz_refuse(NTSTATUS status)
{
    refused = true;
    fuzz_allow(status);
}

bool fuzz_refused(void) { return refused; }

static struct area {
    uint8_t bytes[AREA_SIZE];
    unsigned from, end; /* of what was given away; 0: nothing */
} areas[AREAS];
static unsigned areas_used;

static void clear_areas(void)
{
    for (unsigned i = 0; i < areas_used; i++)
        memset(areas[i].bytes, FILL, AREA_SIZE);
    areas_used = 0;
    last_used = false;
}

static bool guards_whole(void)
{
    for (unsigned i = 0; i < areas_used; i++)
        if (!ring3_all(areas[i].bytes, areas[i].from, FILL) ||
            !ring3_all(areas[i].bytes + areas[i].end, AREA_SIZE - areas[i].end, FILL))
            return false;
    return true;
}

static bool is_right(NTSTATUS status)
{
    if (!refused && status == wanted)
        return true;
    for (unsigned i = 0; i < may_count; i++)
        if (status == may[i])
            return true;
    return false;
}

bool fuzz_answered(NTSTATUS status, const char *file, int line, const char *text)
{
    bool right = is_right(status), whole = guards_whole(),
         did = right && !refused && status == wanted;
    test_check(right && whole, file, line, text);
    if (!right)
        test_check_status(status, refused ? may[0] : wanted, file, line, text);
    if (!whole)
        test_check(false, file, line,
                   "the bytes around what the service may write to are untouched");
    wrong = !right || !whole;
    wanted = STATUS_SUCCESS;
    may_count = 0;
    refused = false;
    return did;
}

/* --- Pointers. --- */

static uint8_t *read_only, *last_page; /* nothing after the second */

void *fuzz_bad_pointer(void) { return (void *)FUZZ_ONE_OF(ring3_bad_addresses); }

static uint8_t *area_for(size_t size)
{
    struct area *r = &areas[areas_used++];
    r->from = GUARD + 8 * fuzz_below(8);
    r->end = r->from + (unsigned)size;
    return r->bytes + r->from;
}

/* A pointer that cannot be written to. */
static void *bad_out(size_t size)
{
    unsigned how = fuzz_below(4);
    if (how == 0)
        return read_only + 4 * fuzz_below(64);
    if (how == 1 && size > 4) /* its end is not there */
        return last_page + RING3_PAGE - size + 4;
    return fuzz_bad_pointer();
}

void *fuzz_late(size_t size, bool *bad)
{
    *bad = fuzz_one_in(12);
    return *bad ? bad_out(size) : area_for(size);
}

void *fuzz_out(size_t size)
{
    bool bad;
    void *p = fuzz_late(size, &bad);
    if (bad)
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
    return p;
}

void *fuzz_out_optional(size_t size)
{
    if (fuzz_one_in(4))
        return NULL;
    bool bad;
    void *p = fuzz_late(size, &bad);
    if (bad && p)
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
    return p;
}

const void *fuzz_in(const void *bytes, size_t size)
{
    if (fuzz_one_in(16)) {
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
        return fuzz_one_in(3) && size > 4 ? last_page + RING3_PAGE - size + 4 : fuzz_bad_pointer();
    }
    if (!last_used && fuzz_one_in(8)) { /* ends with its page */
        last_used = true;
        return memcpy(last_page + RING3_PAGE - size, bytes, size);
    }
    return memcpy(area_for(size), bytes, size);
}

/* --- Handles. --- */

static struct fuzz_slot *slot_of(HANDLE handle)
{
    if (handle == NtCurrentThread())
        return &pseudo_thread;
    if (handle == NtCurrentProcess())
        return &pseudo_process;
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i].thing && slots[i].handle == handle)
            return &slots[i];
    return NULL;
}

HANDLE fuzz_no_handle(void)
{
    for (;;) {
        uint64_t h = fuzz_one_in(2) ? 4 * fuzz_below(SWEPT) + (fuzz_one_in(2) ? fuzz_below(4) : 0)
                                    : ring3_random(&state) >> fuzz_below(60);
        if (!slot_of((HANDLE)h))
            return (HANDLE)h;
    }
}

static struct fuzz_slot *any_slot(enum fuzz_kind kind)
{
    for (unsigned tries = 0, i = fuzz_below(SLOTS); tries < SLOTS; tries++, i = (i + 1) % SLOTS)
        if (slots[i].thing && (kind == FUZZ_NONE || slots[i].thing->kind == kind))
            return &slots[i];
    return NULL;
}

struct fuzz_slot *fuzz_handle(enum fuzz_kind kind, ACCESS_MASK access, HANDLE *handle)
{
    unsigned how = fuzz_below(16);
    struct fuzz_slot *slot = how == 0   ? NULL
                             : how == 1 ? any_slot(FUZZ_NONE)
                             : how == 2 ? (fuzz_one_in(2) ? &pseudo_thread : &pseudo_process)
                                        : any_slot(kind);
    *handle = slot == &pseudo_thread    ? NtCurrentThread()
              : slot == &pseudo_process ? NtCurrentProcess()
              : slot                    ? slot->handle
                                        : fuzz_no_handle();
    if (!slot)
        fuzz_refuse(STATUS_INVALID_HANDLE);
    else if (kind != FUZZ_NONE && slot->thing->kind != kind)
        fuzz_refuse(STATUS_OBJECT_TYPE_MISMATCH);
    else if ((slot->access & access) != access)
        fuzz_refuse(STATUS_ACCESS_DENIED);
    else
        return slot;
    return NULL;
}

bool fuzz_full(void)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (!slots[i].thing)
            return false;
    return true;
}

struct fuzz_thing *fuzz_thing(enum fuzz_kind kind)
{
    for (unsigned i = 0; i < THINGS; i++)
        if (!things[i].handles) {
            things[i] = (struct fuzz_thing){ .kind = kind };
            return &things[i];
        }
    return NULL;
}

void fuzz_given(HANDLE handle, struct fuzz_thing *thing, ACCESS_MASK access)
{
    uint64_t h = (uint64_t)handle;
    if (!CHECK(h && h % 4 == 0 && h < 4 * SWEPT) || !CHECK(!slot_of(handle)))
        wrong = true;
    for (unsigned i = 0; i < SLOTS; i++)
        if (!slots[i].thing) {
            slots[i] = (struct fuzz_slot){ handle, access, thing };
            thing->handles++;
            return;
        }
    CHECK(!"a free slot for the handle");
}

void fuzz_taken(struct fuzz_slot *slot)
{
    slot->thing->handles--;
    slot->thing = NULL;
}

/* Each handle that there may be is closed: those of the model, and no other. */
static void sweep(void)
{
    for (uint64_t h = 4; h <= 4 * SWEPT; h += 4) {
        struct fuzz_slot *slot = slot_of((HANDLE)h);
        if (!CHECK_STATUS(NtClose((HANDLE)h), slot ? STATUS_SUCCESS : STATUS_INVALID_HANDLE))
            return;
        if (slot)
            fuzz_taken(slot);
    }
}

/* --- The loop. --- */

static const struct fuzz_op *const all_ops[] = { fuzz_counter_ops, fuzz_trace_ops };

static unsigned weight_of(const struct fuzz_op *op)
{
    unsigned sum = 0;
    for (; op->call; op++)
        sum += op->weight;
    return sum;
}

static void one_call(void)
{
    unsigned sum = 0;
    clear_areas();
    for (unsigned i = 0; i < ARRAYSIZE(all_ops); i++)
        sum += weight_of(all_ops[i]);
    unsigned n = fuzz_below(sum);
    for (unsigned i = 0; i < ARRAYSIZE(all_ops); i++)
        for (const struct fuzz_op *op = all_ops[i]; op->call; op++) {
            if (n < op->weight) {
                op->call();
                return;
            }
            n -= op->weight;
        }
}

static bool prepare_memory(uint64_t seed)
{
    fuzz_cpus = ring3_cpus();
    fuzz_seed(seed);
    areas_used = AREAS;
    clear_areas();
    read_only = ring3_pages(1);
    last_page = ring3_pages(1);
    if (!read_only || !last_page)
        return false;
    memset(last_page, FILL, RING3_PAGE);
    ring3_protect(read_only, PAGE_READONLY);
    return true;
}

void user_fuzz(uint64_t what)
{
    uint64_t wanted_calls = what >> USER_FUZZ_CALLS & 0xffff;
    fuzz_number = what % 10;
    fuzz_pmu = what >> USER_FUZZ_PMU & 1;
    if (!CHECK(prepare_memory(what & 0xffffffffff)))
        return;
    for (; calls < wanted_calls && !wrong; calls++)
        one_call();
    if (wrong)
        test_note("call %lu of %lu", calls, wanted_calls);
    else
        sweep();
    fuzz_end_session();
    NtTerminateProcess(NtCurrentProcess(), STATUS_SUCCESS); /* with its suspended threads */
}
