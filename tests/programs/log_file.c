/* SPDX-License-Identifier: MIT */
/* Sessions with log files: what is refused, a sequential and a circular file of limited size, one
 * that loses events, and one with counters and sampling intervals, for tests/tools/trace.t. */
#include <stdio.h>
#include <string.h>
#include <windows.h>
#include <evntrace.h>
#include "check.h"

#define SYSTEM_PROFILE 11 /* a privilege */

struct properties {
    EVENT_TRACE_PROPERTIES p;
    char name[64], file[64];
};

static ULONG start(TRACEHANDLE *session, struct properties *q, const char *file, ULONG mode,
                   ULONG megabytes)
{
    memset(q, 0, sizeof *q);
    q->p.Wnode.BufferSize = sizeof *q;
    q->p.Wnode.ClientContext = 3;
    q->p.BufferSize = !strcmp(file, "lossy.etl") ? 4 : !strncmp(file, "large", 5) ? 512 : 16;
    q->p.MaximumBuffers = q->p.BufferSize == 16 ? 256 : 2;
    q->p.MaximumFileSize = megabytes;
    q->p.LogFileMode = mode | EVENT_TRACE_SYSTEM_LOGGER_MODE;
    q->p.LoggerNameOffset = offsetof(struct properties, name);
    q->p.LogFileNameOffset = offsetof(struct properties, file);
    strcpy(q->file, file);
    return StartTraceA(session, file, &q->p);
}

static ULONG control(TRACEHANDLE session, struct properties *q, ULONG code)
{
    q->p.LogFileNameOffset = 0;
    return ControlTraceA(session, NULL, &q->p, code);
}

static void switch_often(unsigned times)
{
    while (times--)
        Sleep(0), GetCurrentProcessorNumber();
}

/* As many buffers as there must be, which system calls fill faster than they are sent. */
static void lose_events(const ULONG *system_calls)
{
    struct properties q;
    TRACEHANDLE lossy = 0;
    IS(start(&lossy, &q, "lossy.etl", 0, 0), ERROR_SUCCESS);
    IS(TraceSetInformation(lossy, TraceSystemTraceEnableFlagsInfo, (PVOID)system_calls, 32),
       ERROR_SUCCESS);
    for (unsigned i = 0; i < 15000; i++)
        Sleep(0);
    IS(control(lossy, &q, EVENT_TRACE_CONTROL_STOP), ERROR_SUCCESS);
    printf("lossy: %lu lost\n", q.p.EventsLost);
}

static ULONG64 now(void)
{
    FILETIME time;
    GetSystemTimePreciseAsFileTime(&time);
    return (ULONG64)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

/* What sessions sample by, and how often; their files tell it. */
static void sample_by(ULONG source, ULONG every)
{
    TRACE_PROFILE_INTERVAL interval = { source, every };
    BOOLEAN was;
    NTSTATUS(NTAPI * adjust)
    (ULONG, BOOLEAN, BOOLEAN, BOOLEAN *) =
        (void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "RtlAdjustPrivilege");
    IS(adjust(SYSTEM_PROFILE, TRUE, FALSE, &was), 0);
    IS(TraceSetInformation(0, TraceSampledProfileIntervalInfo, &interval, sizeof interval),
       ERROR_SUCCESS);
    IS(TraceSetInformation(0, TraceProfileSourceConfigInfo, &source, sizeof source), ERROR_SUCCESS);
    IS(adjust(SYSTEM_PROFILE, FALSE, FALSE, &was), 0);
}

static void refusals(void)
{
    static const struct {
        const char *file;
        ULONG mode, megabytes, error;
    } tries[] = {
        { "a.etl", EVENT_TRACE_FILE_MODE_SEQUENTIAL | EVENT_TRACE_FILE_MODE_CIRCULAR, 1,
          ERROR_INVALID_PARAMETER },
        { "a.etl", EVENT_TRACE_FILE_MODE_CIRCULAR, 0, ERROR_INVALID_PARAMETER },
        { "a.etl", EVENT_TRACE_FILE_MODE_APPEND, 0, ERROR_NOT_SUPPORTED },
        { "a.etl", EVENT_TRACE_FILE_MODE_NEWFILE, 1, ERROR_NOT_SUPPORTED },
        { "a.etl", EVENT_TRACE_REAL_TIME_MODE, 0, ERROR_NOT_SUPPORTED },
        { "large-_0A9Za.z", EVENT_TRACE_FILE_MODE_SEQUENTIAL, 2, ERROR_INVALID_PARAMETER },
        { "C:\\", EVENT_TRACE_FILE_MODE_SEQUENTIAL, 0, ERROR_BAD_PATHNAME },
        { "..", EVENT_TRACE_FILE_MODE_SEQUENTIAL, 0, ERROR_BAD_PATHNAME },
    };
    struct properties q;
    TRACEHANDLE session;
    for (unsigned i = 0; i < sizeof tries / sizeof tries[0]; i++)
        IS(start(&session, &q, tries[i].file, tries[i].mode, tries[i].megabytes), tries[i].error);
    for (const char *wrong = " ,:@[^`{"; *wrong; wrong++)
        IS(start(&session, &q, (char[]){ 'a', *wrong, 0 }, 0, 0), ERROR_BAD_PATHNAME);
}

int main(void)
{
    ULONG masks[8] = { 0, 4 }, source = 2, system_calls[8] = { 0, 0, 0x40 };
    CLASSIC_EVENT_ID swap = {
        { 0x3d6fa8d1, 0xfe05, 0x11d0, { 0x9d, 0xda, 0, 0xc0, 0x4f, 0xd7, 0xba, 0x7c } }, 36, { 0 }
    };
    TRACEHANDLE counted = 0, full = 0, ring = 0, again;
    struct properties q;
    refusals();
    sample_by(source, 70000);
    IS(start(&counted, &q, "C:\\traces\\counted.etl", 0, 0), ERROR_SUCCESS);
    IS(TraceSetInformation(counted, TracePmcCounterListInfo, &source, sizeof source),
       ERROR_SUCCESS);
    IS(TraceSetInformation(counted, TracePmcEventListInfo, &swap, sizeof swap), ERROR_SUCCESS);
    IS(TraceSetInformation(counted, TraceSystemTraceEnableFlagsInfo, masks, sizeof masks),
       ERROR_SUCCESS);
    IS(start(&again, &q, "COUNTED.etl", 0, 0), ERROR_BAD_PATHNAME);
    IS(start(&full, &q, "full.etl", EVENT_TRACE_FILE_MODE_SEQUENTIAL, 1), ERROR_SUCCESS);
    IS(start(&ring, &q, "ring.etl", EVENT_TRACE_FILE_MODE_CIRCULAR, 1), ERROR_SUCCESS);
    IS(TraceSetInformation(full, TraceSystemTraceEnableFlagsInfo, system_calls,
                           sizeof system_calls),
       ERROR_SUCCESS);
    IS(TraceSetInformation(ring, TraceSystemTraceEnableFlagsInfo, system_calls,
                           sizeof system_calls),
       ERROR_SUCCESS);
    static struct {
        EVENT_TRACE_HEADER header;
        char text[9];
    } mark = { { .Size = sizeof mark.header + sizeof mark.text, .Flags = WNODE_FLAG_TRACED_GUID },
               "midnight" };
    const ULONG64 before = now();
    IS(TraceEvent(counted, &mark.header), ERROR_SUCCESS);
    printf("marked from %llu to %llu\n", before, now());
    switch_often(15000);
    for (unsigned i = 0; i < 500 && control(full, &q, EVENT_TRACE_CONTROL_QUERY) == 0; i++)
        Sleep(10); /* until what was sent has filled the file */
    for (unsigned i = 0; i < 10; i++) {
        switch_often(1500);
        Sleep(10); /* what is newest in the circular one is sent, too */
    }
    IS(control(counted, &q, EVENT_TRACE_CONTROL_STOP), ERROR_SUCCESS);
    printf("counted: %lu lost\n", q.p.EventsLost);
    IS(control(full, &q, EVENT_TRACE_CONTROL_QUERY), ERROR_WMI_INSTANCE_NOT_FOUND);
    IS(control(ring, &q, EVENT_TRACE_CONTROL_QUERY), ERROR_SUCCESS);
    lose_events(system_calls);
    return check_result();
}
