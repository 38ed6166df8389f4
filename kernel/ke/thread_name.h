/* SPDX-License-Identifier: MIT */
/* Descriptions of threads (ThreadNameInformation). PASSIVE_LEVEL. Sources: the Win32 documentation
 * of SetThreadDescription; phnt's headers. */
#pragma once
#include "kernel/nt/nt.h"

#define THREAD_NAME_LENGTH 1024u /* characters */

/* A UNICODE_STRING. STATUS_INFO_LENGTH_MISMATCH: it is not 16 bytes long; STATUS_ACCESS_VIOLATION;
 * STATUS_INVALID_PARAMETER: its Length is odd, or above THREAD_NAME_LENGTH (NT: 32767);
 * STATUS_NO_MEMORY; those of the handle, which needs THREAD_SET_LIMITED_INFORMATION or
 * THREAD_SET_INFORMATION. */
NTSTATUS thread_name_set(HANDLE handle, const void *info, ULONG length);
/* A UNICODE_STRING and its text after it. THREAD_QUERY_LIMITED_INFORMATION or
 * THREAD_QUERY_INFORMATION. STATUS_BUFFER_TOO_SMALL with the size needed; STATUS_ACCESS_VIOLATION.
 */
NTSTATUS thread_name_query(HANDLE handle, void *info, ULONG length, PULONG returned);
