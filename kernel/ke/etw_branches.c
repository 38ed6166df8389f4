/* SPDX-License-Identifier: MIT */
/* What follows a record: the branches that the processor took before it, and a stack. Interrupts
 * are off. Branches of the way to here are the newest of a list, unless the session hides those of
 * ring 0. */
#include "hal/branches.h"
#include "kernel/base/cpu.h"
#include "kernel/base/x86.h"
#include "kernel/ke/etw_session.h"
#include "kernel/ke/thread.h"

static void put_branches(struct etw_stream *stream, uint64_t stamp, const struct thread *ran,
                         const struct hal_branch *list, unsigned count)
{
    const uint32_t process = ran->process ? PROCESS_ID : 0;
    const size_t size = sizeof(EVENT_TRACE_HEADER) + sizeof(ETW_LAST_BRANCH_RECORD) +
                        count * sizeof(ETW_LAST_BRANCH);
    while (stream->at + size > stream->end)
        if (!etw_next_buffer(stream))
            return;
    EVENT_TRACE_HEADER *header = (EVENT_TRACE_HEADER *)(void *)stream->at;
    ETW_LAST_BRANCH_RECORD *record = (ETW_LAST_BRANCH_RECORD *)(void *)(header + 1);
    ETW_LAST_BRANCH *entries = (ETW_LAST_BRANCH *)(void *)(record + 1);
    stream->at += size;
    *header = (EVENT_TRACE_HEADER){ .Size = (USHORT)size,
                                    .HeaderType = TRACE_HEADER_TYPE_FULL_HEADER64,
                                    .MarkerFlags = TRACE_HEADER_FLAGS,
                                    .Class = { LAST_BRANCH_TYPE, 0, LAST_BRANCH_VERSION },
                                    .ThreadId = ran->id,
                                    .ProcessId = process,
                                    .TimeStamp.QuadPart = (LONGLONG)rdtsc(),
                                    .Guid = LAST_BRANCH_GUID };
    *record = (ETW_LAST_BRANCH_RECORD){ stamp, process, ran->id, stream->filters, 0 };
    for (unsigned i = 0; i < count; i++)
        entries[i] = (ETW_LAST_BRANCH){ list[i].from, list[i].to, 0 };
}

void etw_follow(struct etw_stream *stream, enum etw_hook hook, uint64_t stamp,
                const struct thread *ran, const struct thread *thread,
                const struct trap_frame *sample)
{
    struct hal_branch list[HAL_BRANCHES_MAX];
    const bool branches = stream->branches >> hook & 1;
    if (branches) {
        hal_branches_pause();
        put_branches(stream, stamp, ran, list, hal_branches_take(list));
    }
    if (stream->stacks >> hook & 1)
        etw_stack(stream, stamp, thread, sample);
    if (branches)
        hal_branches_resume();
}

void etw_tell_followed(const struct etw_logger *logger)
{
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        struct etw_stream *stream = logger->streams[cpu];
        __atomic_store_n(&stream->stacks, logger->stacks, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->branches, logger->branches, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->followed, logger->stacks | logger->branches, __ATOMIC_RELEASE);
    }
}
