/* SPDX-License-Identifier: MIT */
/* Between address.c and the locks that use it. */
#pragma once

#define SynchronizationEvent 1

NTSTATUS NTAPI NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, PVOID ObjectAttributes,
                             ULONG EventType, BOOLEAN InitialState);
NTSTATUS NTAPI NtSetEvent(HANDLE EventHandle, PLONG PreviousState);
NTSTATUS NTAPI RtlWaitOnAddress(volatile VOID *Address, PVOID CompareAddress, SIZE_T AddressSize,
                                PLARGE_INTEGER Timeout);
VOID NTAPI RtlWakeAddressSingle(PVOID Address);
VOID NTAPI RtlWakeAddressAll(PVOID Address);
