/* SPDX-License-Identifier: MIT */
/* Profile objects: histograms of where the processor was at profile interrupts. Callers are ring-3 threads through
 * the service table, or kernel threads, whose pointers and rights are not checked. PASSIVE_LEVEL. */
#pragma once
#include "kernel/nt_profile.h"
#include "kernel/object.h"

struct process;

#define PROFILES_STARTED_MAX 64 /* NT: 8192 a processor */

struct profile {
    struct object object;
    struct profile *next;    /* of those started; atomic */
    struct process *process; /* with a reference; NULL: every one */
    uint64_t base, size;     /* the region */
    uint64_t cpus;
    KPROFILE_SOURCE source;
    VOID (*callback)(PKTRAP_FRAME, PVOID); /* not NULL: instead of all that follows */
    PVOID context;
    unsigned log2;
    ULONG *buffer;           /* the creator's address of it */
    uint64_t buffer_size;
    bool user_buffer;
    bool started;            /* L: guard */
    uint8_t **pages;         /* while started: where the kernel writes the buffer's pages */
    uint64_t page_count;
};

/* A histogram of [ProfileBase, ProfileBase + ProfileSize) in buckets of 2^BucketSize bytes, one ULONG of Buffer for
 * each. Process NULL: whatever process runs. Checks in the order of their statuses:
 *
 * STATUS_INVALID_PARAMETER_7       BufferSize 0
 * STATUS_INVALID_PARAMETER         BucketSize below 2 or above 31
 * STATUS_BUFFER_TOO_SMALL          BufferSize is less than four times the buckets, rounded up
 * STATUS_BUFFER_OVERFLOW           the region wraps, or ends at 2^64
 * STATUS_NOT_SUPPORTED             hal_source_supported denies the source
 * STATUS_ACCESS_VIOLATION          ring 3: ProfileHandle, Buffer or GroupAffinity not its own, or not to write
 * STATUS_DATATYPE_MISALIGNMENT     Buffer or GroupAffinity not 4-aligned
 * STATUS_INVALID_PARAMETER         a group but 0, an empty mask, a processor that is not active, Reserved not 0
 * STATUS_INVALID_HANDLE, STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED    Process (PROCESS_QUERY_INFORMATION)
 * STATUS_PRIVILEGE_NOT_HELD        ring 3, no process, region begins in user space, no SeSystemProfilePrivilege
 * STATUS_ACCESS_DENIED             restricted caller, region reaches into kernel space
 * STATUS_INSUFFICIENT_RESOURCES    no memory, no free handle
 *
 * *ProfileHandle is written on success only. Affinity: -1 all active processors. GroupCount 0: the same, and
 * GroupAffinity is not looked at. A region of 0 bytes is never hit. */
NTSTATUS NtCreateProfile(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase, SIZE_T ProfileSize,
                         ULONG BucketSize, PULONG Buffer, ULONG BufferSize, KPROFILE_SOURCE ProfileSource,
                         KAFFINITY Affinity);
NTSTATUS NtCreateProfileEx(PHANDLE ProfileHandle, HANDLE Process, PVOID ProfileBase, SIZE_T ProfileSize,
                           ULONG BucketSize, PULONG Buffer, ULONG BufferSize, KPROFILE_SOURCE ProfileSource,
                           USHORT GroupCount, PGROUP_AFFINITY GroupAffinity);

/* Both: handle errors (PROFILE_CONTROL) first. Start: STATUS_PROFILING_NOT_STOPPED; STATUS_PROFILING_AT_LIMIT;
 * STATUS_INSUFFICIENT_RESOURCES; STATUS_ACCESS_VIOLATION: the buffer is gone; STATUS_DEVICE_BUSY: no counter is free.
 * After a failure the object is stopped as before. Counts are added to what the buffer holds.
 * Stop: STATUS_PROFILING_NOT_STARTED. When it returns the buffer changes no more. */
NTSTATUS NtStartProfile(HANDLE ProfileHandle);
NTSTATUS NtStopProfile(HANDLE ProfileHandle);

/* An unsupported source has the interval 0; ProfileAlignmentFixup what was set last. From ring 3:
 * STATUS_DATATYPE_MISALIGNMENT, STATUS_ACCESS_VIOLATION. */
NTSTATUS NtQueryIntervalProfile(KPROFILE_SOURCE ProfileSource, PULONG Interval);
/* Any interval and any source: clamped, or without effect. Ring 3 without SeSystemProfilePrivilege:
 * STATUS_PRIVILEGE_NOT_HELD. */
NTSTATUS NtSetIntervalProfile(ULONG Interval, KPROFILE_SOURCE Source);

/* Callback objects, for the kernel itself: callback(frame, context) at PROFILE_LEVEL, at each interrupt of the source
 * on these processors. Statuses as of NtStartProfile. After stop it runs no more. */
NTSTATUS profile_callback_start(KPROFILE_SOURCE source, uint64_t cpu_mask,
                                VOID (*callback)(PKTRAP_FRAME TrapFrame, PVOID Context), PVOID context,
                                struct profile **made);
void profile_callback_stop(struct profile *profile);

/* For object.c: the last handle is closed. */
void profile_destroy(struct object *object);
/* Objects that are started. */
unsigned profiles_started(void);
