/* SPDX-License-Identifier: MIT */
#include <ntddk.h>
#include "cookie.h"

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject) {}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    DriverObject->DriverUnload = unload;
    return cookie_is_set() ? STATUS_SUCCESS : STATUS_UNSUCCESSFUL;
}
