/* SPDX-License-Identifier: MIT */
/* Profile objects: histograms of the addresses that profile interrupts interrupted. Callers are
 * ring-3 threads through the service table, or kernel threads, whose pointers and rights are not
 * checked. PASSIVE_LEVEL. */
#pragma once
#include "kernel/nt/nt_profile.h"
#include "kernel/ke/object.h"

struct process;

#define PROFILES_STARTED_MAX 64 /* NT: 8192 a processor */

struct profile {
    struct object object;
    struct profile *next;    /* of those started; atomic */
    struct process *process; /* with a reference; NULL: every one */
    uint64_t base, size;     /* the region */
    uint64_t cpus;
    KPROFILE_SOURCE source;
    unsigned log2;
    ULONG *buffer; /* the creator's address of it */
    uint64_t buffer_size;
    bool user_buffer;
    bool started;    /* L: guard */
    uint8_t **pages; /* while started: the direct-map addresses of the buffer's pages */
    uint64_t page_count;
};

/* A histogram of [ProfileBase, ProfileBase + ProfileSize) in buckets of 2^BucketSize bytes, one
 * ULONG of Buffer for each. Process NULL: whatever process runs. Checks in the order of their
 * statuses:
 *
 * STATUS_INVALID_PARAMETER_7       BufferSize 0
 * STATUS_INVALID_PARAMETER         BucketSize below 2 or above 31
 * STATUS_BUFFER_TOO_SMALL          BufferSize is less than four times the buckets, rounded up
 * STATUS_BUFFER_OVERFLOW           the region wraps, or ends at 2^64
 * STATUS_NOT_SUPPORTED             no processor has the source
 * STATUS_ACCESS_VIOLATION          ring 3: ProfileHandle, Buffer or GroupAffinity not its own, or
 * not to write STATUS_DATATYPE_MISALIGNMENT     Buffer or GroupAffinity not 4-aligned
 * STATUS_INVALID_PARAMETER         a group but 0, an empty mask, a processor that is not active,
 * Reserved not 0 STATUS_NOT_SUPPORTED             a processor of the affinity lacks the source, or
 * means another event by it STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH,
 * STATUS_ACCESS_DENIED    Process (PROCESS_QUERY_INFORMATION) STATUS_PRIVILEGE_NOT_HELD        ring
 * 3, no process, region begins in user space, no SeSystemProfilePrivilege STATUS_ACCESS_DENIED
 * restricted caller, region reaches into kernel space STATUS_INSUFFICIENT_RESOURCES    no memory,
 * no free handle
 *
 * *ProfileHandle is written on success only. An Affinity of -1 means all active processors. So
 * does a GroupCount of 0, and GroupAffinity is then ignored. A region of 0 bytes gets no
 * samples. */
NTSTATUS NtCreateProfile(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                         SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                         KPROFILE_SOURCE ProfileSource, KAFFINITY Affinity);
NTSTATUS NtCreateProfileEx(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                           SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                           KPROFILE_SOURCE ProfileSource, USHORT GroupCount,
                           PGROUP_AFFINITY GroupAffinity);

/* Both: handle errors (PROFILE_CONTROL) first. Start: STATUS_PROFILING_NOT_STOPPED;
 * STATUS_PROFILING_AT_LIMIT; STATUS_INSUFFICIENT_RESOURCES; STATUS_ACCESS_VIOLATION: the buffer is
 * gone; STATUS_DEVICE_BUSY: no counter is free. After a failure the object is stopped as before.
 * Counts are added to what the buffer holds. Stop: STATUS_PROFILING_NOT_STARTED. When it returns
 * the buffer changes no more. */
NTSTATUS NtStartProfile(HANDLE ProfileHandle);
NTSTATUS NtStopProfile(HANDLE ProfileHandle);

/* An unsupported source has the interval 0; ProfileAlignmentFixup has the one that was set last.
 * From ring 3: STATUS_DATATYPE_MISALIGNMENT, STATUS_ACCESS_VIOLATION. */
NTSTATUS NtQueryIntervalProfile(KPROFILE_SOURCE ProfileSource, PULONG Interval);
/* Any interval and any source are accepted: clamped, or without effect. Ring 3 without
 * SeSystemProfilePrivilege: STATUS_PRIVILEGE_NOT_HELD. */
NTSTATUS NtSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source);

/* The number of started objects; and stop of all of them, whoever owns them. */
unsigned profiles_started(void);
void profiles_stop_all(void);
