/* SPDX-License-Identifier: MIT */
/* The service fuzz: waits, threads, and calls that can do nothing. */
#include "tests/ring3/fuzz.h"

#define WAITED_MAX 6
#define SUSPENDED_MAX 127

/* --- Waits. --- */

static bool signaled(const struct fuzz_thing *t) { return t->kind == FUZZ_MUTANT || t->state > 0; }

static void take_thing(struct fuzz_thing *t)
{
    if (t->kind == FUZZ_SEMAPHORE || t->kind == FUZZ_MUTANT)
        t->state--;
    else if (t->kind == FUZZ_EVENT && !t->manual)
        t->state = 0;
}

static PLARGE_INTEGER no_time(void)
{
    LARGE_INTEGER now = { .QuadPart = fuzz_one_in(8) ? -1 : (LONGLONG)fuzz_below(2) };
    const void *p = fuzz_in(&now, sizeof now);
    if (!p) /* for ever; nobody would signal it */
        p = fuzz_bad_pointer();
    return (PLARGE_INTEGER)(p ? (uint64_t)p : 8);
}

static void wait_one(void)
{
    HANDLE h;
    struct fuzz_slot *slot = fuzz_handle(FUZZ_NONE, SYNCHRONIZE, &h);
    PLARGE_INTEGER time = no_time();
    if (slot && !signaled(slot->thing))
        fuzz_expect(STATUS_TIMEOUT);
    if (FUZZ_ANSWER(ZwWaitForSingleObject(h, (BOOLEAN)fuzz_below(2), time)) && slot &&
        signaled(slot->thing))
        take_thing(slot->thing);
}

static unsigned twins(struct fuzz_slot *const *waited, unsigned n)
{
    unsigned found = 0;
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < i; j++)
            found += waited[i]->thing == waited[j]->thing;
    return found;
}

static void expect_wait(struct fuzz_slot *const *waited, unsigned n, unsigned type, unsigned *first)
{
    unsigned count = 0;
    *first = n;
    for (unsigned i = n; i--;)
        if (signaled(waited[i]->thing)) {
            *first = i;
            count++;
        }
    if (type == WaitAll && twins(waited, n))
        fuzz_refuse(STATUS_INVALID_PARAMETER_MIX);
    if (type == WaitAll ? count < n : !count)
        *first = n;
    fuzz_expect(*first == n ? STATUS_TIMEOUT : type == WaitAll ? STATUS_WAIT_0 : (NTSTATUS)*first);
}

static void wait_many(void)
{
    HANDLE handles[WAITED_MAX];
    struct fuzz_slot *waited[WAITED_MAX];
    unsigned n = 1 + fuzz_below(WAITED_MAX),
             type = fuzz_one_in(16) ? 2 + fuzz_below(9) : fuzz_below(2), first = n;
    ULONG count = fuzz_one_in(16) ? (fuzz_one_in(2) ? 0 : 65 + fuzz_below(1000)) : n;
    for (unsigned i = 0; i < n; i++)
        waited[i] = fuzz_handle(FUZZ_NONE, SYNCHRONIZE, &handles[i]);
    if (count != n)
        fuzz_refuse(STATUS_INVALID_PARAMETER_1);
    if (type != WaitAll && type != WaitAny)
        fuzz_refuse(STATUS_INVALID_PARAMETER_3);
    if (!fuzz_refused())
        expect_wait(waited, n, type, &first);
    const HANDLE *array = fuzz_in(handles, n * sizeof handles[0]);
    PLARGE_INTEGER time = no_time();
    if (!FUZZ_ANSWER(ZwWaitForMultipleObjects(count, array, (WAIT_TYPE)type, FALSE, time)) ||
        first == n)
        return;
    for (unsigned i = type == WaitAll ? 0 : first; i < (type == WaitAll ? n : first + 1); i++)
        take_thing(waited[i]->thing);
}

static NTSTATUS why_not_signaled(const struct fuzz_slot *slot)
{
    const struct fuzz_thing *t = slot->thing;
    if (t->kind == FUZZ_MUTANT)
        return t->state == 1 ? STATUS_MUTANT_NOT_OWNED : STATUS_SUCCESS;
    if (t->kind != FUZZ_EVENT && t->kind != FUZZ_SEMAPHORE)
        return STATUS_OBJECT_TYPE_MISMATCH;
    if (!(slot->access & EVENT_MODIFY_STATE))
        return STATUS_ACCESS_DENIED;
    return t->kind == FUZZ_SEMAPHORE && t->state == t->limit ? STATUS_SEMAPHORE_LIMIT_EXCEEDED
                                                             : STATUS_SUCCESS;
}

static void signal_and_wait(void)
{
    HANDLE h, h2;
    struct fuzz_slot *slot = fuzz_handle(FUZZ_NONE, 0, &h),
                     *waited = fuzz_handle(FUZZ_NONE, SYNCHRONIZE, &h2);
    NTSTATUS not = slot ? why_not_signaled(slot) : STATUS_SUCCESS;
    PLARGE_INTEGER time = no_time();
    if (!NT_SUCCESS(not ))
        fuzz_refuse(not );
    bool there = !fuzz_refused() && slot && waited &&
                 (signaled(waited->thing) || (waited->thing == slot->thing));
    if (!fuzz_refused() && !there)
        fuzz_expect(STATUS_TIMEOUT);
    if (!FUZZ_ANSWER(ZwSignalAndWaitForSingleObject(h, h2, FALSE, time)) || !slot || !waited)
        return;
    slot->thing->state = slot->thing->kind == FUZZ_EVENT ? 1 : slot->thing->state + 1;
    if (there)
        take_thing(waited->thing);
}

/* --- Threads. --- */

static DWORD thread(PVOID argument) { return (DWORD)(uint64_t)argument; }

static void create_thread(void)
{
    if (fuzz_full())
        return;
    ACCESS_MASK access =
        fuzz_one_in(4) ? (ACCESS_MASK)fuzz_random() & THREAD_ALL_ACCESS : THREAD_ALL_ACCESS;
    ACCESS_MASK asked = access == THREAD_ALL_ACCESS && fuzz_one_in(2) ? MAXIMUM_ALLOWED : access;
    uint64_t argument = fuzz_random() & 0x7fffffff;
    HANDLE *to = fuzz_out(sizeof *to), process = NtCurrentProcess();
    PVOID attributes = NULL, list = NULL, start = (PVOID)(uint64_t)thread;
    ULONG flags = THREAD_CREATE_FLAGS_CREATE_SUSPENDED;
    SIZE_T zero = 0;
    switch (fuzz_below(24)) {
    case 0: attributes = (PVOID)fuzz_random(); break;
    case 1: list = (PVOID)fuzz_random(); break;
    case 2: flags |= (ULONG)fuzz_random() << 1; break;
    case 3: zero = fuzz_below(100); break;
    case 4: process = fuzz_no_handle(); break;
    case 5: start = (PVOID)(fuzz_random() | 0x800000000000); break;
    }
    if (attributes || list || flags != THREAD_CREATE_FLAGS_CREATE_SUSPENDED || zero ||
        process != NtCurrentProcess())
        fuzz_refuse(STATUS_NOT_SUPPORTED);
    if ((uint64_t)start >> 47)
        fuzz_refuse(STATUS_ACCESS_VIOLATION);
    if (!FUZZ_ANSWER(ZwCreateThreadEx(to, asked, attributes, process, start, (PVOID)argument, flags,
                                      zero, fuzz_random(), fuzz_random(), list)))
        return;
    struct fuzz_thing *thing = fuzz_thing(FUZZ_THREAD);
    if (!CHECK(thing != NULL))
        return;
    *thing = (struct fuzz_thing){ .kind = FUZZ_THREAD,
                                  .limit = 1,
                                  .exit_status = (NTSTATUS)argument,
                                  .affinity = ~0ull >> (64 - fuzz_cpus) };
    fuzz_given(*to, thing, access);
}

/* Its end can be seen by a handle that cannot wait. */
static void wait_for_end(HANDLE h, struct fuzz_thing *t)
{
    THREAD_BASIC_INFORMATION info = { .ExitStatus = STATUS_PENDING };
    do
        ZwYieldExecution();
    while (
        NT_SUCCESS(ZwQueryInformationThread(h, ThreadBasicInformation, &info, sizeof info, NULL)) &&
        info.ExitStatus == STATUS_PENDING);
    CHECK_STATUS(info.ExitStatus, t->exit_status);
    t->state = 1;
}

/* Not one of which the model could not see the end, or ourselves. */
static struct fuzz_slot *other_thread(ACCESS_MASK access, HANDLE *h)
{
    struct fuzz_slot *slot = fuzz_handle(FUZZ_THREAD, access, h);
    bool known = slot && slot->thing != &fuzz_me && slot->access & THREAD_QUERY_INFORMATION;
    if ((slot && !known) || !*h || *h == NtCurrentThread()) {
        *h = (HANDLE)2;
        fuzz_refuse(STATUS_INVALID_HANDLE);
    }
    return slot;
}

static void terminate_thread(void)
{
    HANDLE h;
    NTSTATUS status = (NTSTATUS)(fuzz_random() & 0x7fffffff);
    struct fuzz_slot *slot = other_thread(THREAD_TERMINATE, &h);
    if (!FUZZ_ANSWER(ZwTerminateThread(h, status)) || slot->thing->state)
        return;
    slot->thing->exit_status = status;
    wait_for_end(h, slot->thing);
}

static void resume_thread(void)
{
    HANDLE h;
    struct fuzz_slot *slot = other_thread(THREAD_SUSPEND_RESUME, &h);
    ULONG *count = fuzz_out_optional(sizeof *count);
    if (!FUZZ_ANSWER(ZwResumeThread(h, count)))
        return;
    struct fuzz_thing *t = slot->thing;
    if (count)
        CHECK_EQ(*count, (ULONG)(t->state ? 0 : t->limit));
    if (!t->state && !--t->limit)
        wait_for_end(h, t);
}

static void suspend_thread(void)
{
    HANDLE h;
    struct fuzz_slot *slot = other_thread(THREAD_SUSPEND_RESUME, &h);
    ULONG *count = fuzz_out_optional(sizeof *count);
    if (slot && slot->thing->state)
        fuzz_refuse(STATUS_THREAD_IS_TERMINATING);
    if (slot && slot->thing->limit == SUSPENDED_MAX)
        fuzz_refuse(STATUS_SUSPEND_COUNT_EXCEEDED);
    if (!FUZZ_ANSWER(ZwSuspendThread(h, count)))
        return;
    if (count)
        CHECK_EQ(*count, (ULONG)slot->thing->limit);
    slot->thing->limit++;
}

static void query_thread(void)
{
    HANDLE h;
    ULONG *returned, length = sizeof(THREAD_BASIC_INFORMATION) - (fuzz_one_in(12) ? 1 : 0);
    struct fuzz_slot *slot = fuzz_handle(FUZZ_THREAD, THREAD_QUERY_INFORMATION, &h);
    THREAD_BASIC_INFORMATION *info = fuzz_out(sizeof *info);
    returned = fuzz_out_optional(sizeof *returned);
    if (length != sizeof *info)
        fuzz_refuse(STATUS_INFO_LENGTH_MISMATCH);
    if (!FUZZ_ANSWER(ZwQueryInformationThread(h, ThreadBasicInformation, info, length, returned)))
        return;
    const struct fuzz_thing *t = slot->thing;
    CHECK_STATUS(info->ExitStatus, t->state ? t->exit_status : STATUS_PENDING);
    if (t->affinity)
        CHECK_EQ(info->AffinityMask, t->affinity);
    if (returned)
        CHECK_EQ(*returned, sizeof *info);
}

static void set_thread(void)
{
    HANDLE h;
    ULONG length = fuzz_one_in(12) ? fuzz_below(40) : 8;
    KAFFINITY mask = fuzz_random() & ~(fuzz_one_in(8) ? ~0ull >> (64 - fuzz_cpus) : 0);
    struct fuzz_slot *slot = fuzz_handle(FUZZ_THREAD, THREAD_SET_INFORMATION, &h);
    const void *from = fuzz_in(&mask, sizeof mask);
    if (length != 8)
        fuzz_refuse(STATUS_INFO_LENGTH_MISMATCH);
    mask &= ~0ull >> (64 - fuzz_cpus);
    if (!mask)
        fuzz_refuse(STATUS_INVALID_PARAMETER);
    if (FUZZ_ANSWER(ZwSetInformationThread(h, ThreadAffinityMask, (PVOID)(uint64_t)from, length)))
        slot->thing->affinity = mask;
}

/* --- Calls that can do nothing. --- */

static void call_of_nothing(void)
{
    LARGE_INTEGER now = { .QuadPart = 0 }, frequency = { .QuadPart = 0 };
    static LONGLONG last;
    switch (fuzz_below(4)) {
    case 0: FUZZ_ANSWER((fuzz_refuse(STATUS_INVALID_SYSTEM_SERVICE), no_such_service())); break;
    case 1: CHECK(ZwGetCurrentProcessorNumber() < fuzz_cpus); break;
    case 2:
        FUZZ_ANSWER(ZwQueryPerformanceCounter(&now, &frequency));
        CHECK(now.QuadPart >= last && frequency.QuadPart > 0);
        last = now.QuadPart;
        break;
    default: fuzz_allow(STATUS_NO_YIELD_PERFORMED); FUZZ_ANSWER(ZwYieldExecution());
    }
}

enum {
#define NT_SERVICE(number, name, count) number_of_##name = (number),
#define OWN_SERVICE(number, stub, routine, count) number_of_##stub = (number),
#include "kernel/nt/service_list.h"
};

/* By Windows' convention, as ntdll's stubs: the fifth argument lies above a return address and
 * space for four. */
static uint32_t raw(uint64_t number, HANDLE handle, const uint64_t *a)
{
    register uint64_t r10 asm("r10") = (uint64_t)handle;
    uint64_t result = number, second = a[0], third = a[1], last = a[2];
    register uint64_t r8 asm("r8") = third;
    register uint64_t r9 asm("r9") = last;
    asm volatile("sub $0x38,%%rsp\nmov %[fourth],0x28(%%rsp)\nmov %[fifth],0x30(%%rsp)\n"
                 "syscall\nadd $0x38,%%rsp"
                 : "+a"(result), "+d"(second), "+r"(r10), "+r"(r8), "+r"(r9)
                 : [fourth] "b"(a[3]), [fifth] "S"(a[4])
                 : "rcx", "r11", "memory", "cc");
    return (uint32_t)result;
}

/* No handle is right: whatever else is passed, the call fails. */
static void no_handle(void)
{
    static const uint8_t numbers[] = {
        number_of_Close,
        number_of_WaitForSingleObject,
        number_of_SetInformationThread,
        number_of_QueryInformationThread,
        number_of_AllocateVirtualMemory,
        number_of_FreeVirtualMemory,
        number_of_ProtectVirtualMemory,
        number_of_DuplicateObject,
        number_of_StartProfile,
        number_of_StopProfile,
        number_of_QueryVirtualMemory,
        number_of_SignalAndWaitForSingleObject,
        number_of_SetEvent,
        number_of_ResetEvent,
        number_of_PulseEvent,
        number_of_ClearEvent,
        number_of_QueryEvent,
        number_of_ReleaseSemaphore,
        number_of_QuerySemaphore,
        number_of_ReleaseMutant,
        number_of_QueryMutant,
        number_of_ResumeThread,
        number_of_DeviceIoControlFile,
        number_of_ReadFile,
        number_of_WriteFile,
        number_of_SuspendThread,
        number_of_QueueApcThread,
        number_of_SetTimer,
        number_of_CancelTimer,
        number_of_QueryTimer,
        number_of_QueryInformationProcess,
    };
    uint64_t a[5], number = FUZZ_ONE_OF(numbers);
    for (unsigned i = 0; i < ARRAYSIZE(a); i++)
        a[i] = fuzz_one_in(2) ? (uint64_t)fuzz_bad_pointer() : fuzz_random() >> fuzz_below(53);
    if (!CHECK_EQ(raw(number, fuzz_no_handle(), a) >> 31, 1))
        test_note("service %lu took a handle that there is not", number);
}

const struct fuzz_op fuzz_wait_ops[] = {
    { wait_one, 8 },         { wait_many, 8 },       { signal_and_wait, 6 }, { create_thread, 2 },
    { terminate_thread, 1 }, { resume_thread, 4 },   { suspend_thread, 2 },  { query_thread, 4 },
    { set_thread, 3 },       { call_of_nothing, 3 }, { no_handle, 8 },       { NULL, 0 },
};
