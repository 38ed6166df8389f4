/* SPDX-License-Identifier: MIT */
/* Profile objects: histograms of the addresses that profile interrupts interrupted. Callers are
 * ring-3 threads through the service table, or kernel threads, whose pointers and rights are not
 * checked. PASSIVE_LEVEL. */
#pragma once
#include "kernel/base/cpu_set.h"
#include "kernel/nt/nt_profile.h"
#include "kernel/ke/object.h"

struct process;

#define PROFILES_STARTED_MAX 64 /* NT: 8192 a processor */

struct profile {
    struct object object;
    struct profile *next;    /* in the list of started ones; atomic */
    struct process *process; /* with a reference; NULL: all */
    uint64_t base, size;     /* the region */
    struct cpu_set cpus;
    KPROFILE_SOURCE source;
    unsigned log2;
    ULONG *buffer; /* the creator's address of it */
    uint64_t buffer_size;
    bool user_buffer;
    bool started;   /* L: guard */
    ULONG **pages;  /* while started: the direct-map addresses of the buffer's pages */
    uint64_t first; /* the ULONG of the first one where it begins */
    uint64_t page_count;
};
extern const struct object_type profile_type;

/* A histogram of [ProfileBase, ProfileBase + ProfileSize) in buckets of 2^BucketSize bytes, one
 * ULONG of Buffer for each. Process NULL: all processes. Statuses in the order of the checks:
 *
 * STATUS_INVALID_PARAMETER_7     BufferSize 0
 * STATUS_INVALID_PARAMETER       BucketSize below 2 or above 31
 * STATUS_BUFFER_TOO_SMALL        BufferSize is less than four times the buckets, rounded up
 * STATUS_BUFFER_OVERFLOW         the region wraps, or ends at 2^64
 * STATUS_NOT_SUPPORTED           no processor has the source
 * STATUS_ACCESS_VIOLATION        ring 3: ProfileHandle, Buffer or GroupAffinity: not its memory, or
 *                                not writable
 * STATUS_DATATYPE_MISALIGNMENT   Buffer or GroupAffinity not 4-aligned
 * STATUS_INVALID_PARAMETER       no such group, empty mask, inactive processor, Reserved not 0
 * STATUS_NOT_SUPPORTED           a processor of the affinity lacks the source or has another event
 * STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED
 *                                Process (PROCESS_QUERY_INFORMATION)
 * STATUS_PRIVILEGE_NOT_HELD      ring 3, no Process, region begins in user space, and no
 *                                SeSystemProfilePrivilege
 * STATUS_ACCESS_DENIED           restricted caller, region reaches into kernel space
 * STATUS_INSUFFICIENT_RESOURCES  no memory, no free handle
 *
 * *ProfileHandle is written on success only. An Affinity is of the caller's primary group; -1: all
 * of it. A GroupCount of 0 means all active processors; GroupAffinity is then ignored. A region of
 * 0 bytes gets no samples. */
NTSTATUS NtCreateProfile(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                         SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                         KPROFILE_SOURCE ProfileSource, KAFFINITY Affinity);
NTSTATUS NtCreateProfileEx(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase,
                           SIZE_T ProfileSize, ULONG BucketSize, PULONG Buffer, ULONG BufferSize,
                           KPROFILE_SOURCE ProfileSource, USHORT GroupCount,
                           PGROUP_AFFINITY GroupAffinity);

/* Both: the handle's errors (PROFILE_CONTROL) first. Start: STATUS_PROFILING_NOT_STOPPED;
 * STATUS_PROFILING_AT_LIMIT; STATUS_INSUFFICIENT_RESOURCES; STATUS_ACCESS_VIOLATION: the buffer is
 * gone; STATUS_DEVICE_BUSY: no counter is free. After a failure the object stays stopped.
 * Counts are added to the buffer's contents. Stop: STATUS_PROFILING_NOT_STARTED. After it returns
 * the buffer does not change. */
NTSTATUS NtStartProfile(HANDLE ProfileHandle);
NTSTATUS NtStopProfile(HANDLE ProfileHandle);

/* An unsupported source has the interval 0; ProfileAlignmentFixup has the one set last.
 * From ring 3: STATUS_DATATYPE_MISALIGNMENT, STATUS_ACCESS_VIOLATION. */
NTSTATUS NtQueryIntervalProfile(KPROFILE_SOURCE ProfileSource, PULONG Interval);
/* Accepts every interval (clamped) and every source (unsupported: no effect). Ring 3 without
 * SeSystemProfilePrivilege: STATUS_PRIVILEGE_NOT_HELD. */
NTSTATUS NtSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source);

/* The number of started objects; the second stops them all, whoever owns them. */
unsigned profiles_started(void);
void profiles_stop_all(void);
