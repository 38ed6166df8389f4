/* SPDX-License-Identifier: MIT */
/* A driver linked with Microsoft's wdmsec.lib: it imports what that library has for old versions of
 * Windows, asks for IoCreateDeviceSecure, and calls the rest only where there is none. */
#include <ntddk.h>

typedef NTSTATUS NTAPI CREATE_SECURE(PDRIVER_OBJECT, ULONG, PUNICODE_STRING, ULONG, ULONG, BOOLEAN,
                                     PCUNICODE_STRING, const GUID *, PDEVICE_OBJECT *);

NTSTATUS NTAPI ZwSetSecurityObject(HANDLE, SECURITY_INFORMATION, PSECURITY_DESCRIPTOR);
NTSTATUS NTAPI ObOpenObjectByPointer(PVOID, ULONG, PACCESS_STATE, ACCESS_MASK, POBJECT_TYPE,
                                     KPROCESSOR_MODE, PHANDLE);
NTSTATUS NTAPI SeCaptureSecurityDescriptor(PSECURITY_DESCRIPTOR, KPROCESSOR_MODE, POOL_TYPE,
                                           BOOLEAN, PSECURITY_DESCRIPTOR *);
NTSTATUS NTAPI RtlGetOwnerSecurityDescriptor(PSECURITY_DESCRIPTOR, PSID *, PBOOLEAN);
NTSTATUS NTAPI RtlAbsoluteToSelfRelativeSD(PSECURITY_DESCRIPTOR, PSECURITY_DESCRIPTOR, PULONG);
extern __declspec(dllimport) PVOID SeExports;
extern __declspec(dllimport) POBJECT_TYPE *IoDeviceObjectType;

static PDEVICE_OBJECT device;

static NTSTATUS secure_by_hand(VOID)
{
    PSECURITY_DESCRIPTOR descriptor = SeExports;
    HANDLE handle;
    PSID owner;
    BOOLEAN byDefault;
    ULONG size = 0;
    RtlGetOwnerSecurityDescriptor(descriptor, &owner, &byDefault);
    RtlAbsoluteToSelfRelativeSD(descriptor, descriptor, &size);
    SeCaptureSecurityDescriptor(descriptor, KernelMode, PagedPool, TRUE, &descriptor);
    ObOpenObjectByPointer(device, OBJ_KERNEL_HANDLE, NULL, WRITE_DAC, *IoDeviceObjectType,
                          KernelMode, &handle);
    return ZwSetSecurityObject(handle, DACL_SECURITY_INFORMATION, descriptor);
}

static VOID NTAPI unload(PDRIVER_OBJECT DriverObject) { IoDeleteDevice(device); }

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\Secure"),
                   sddl = RTL_CONSTANT_STRING(L"D:P(A;;GA;;;SY)(A;;GA;;;BA)"),
                   routine = RTL_CONSTANT_STRING(L"IoCreateDeviceSecure");
    CREATE_SECURE *create = (CREATE_SECURE *)MmGetSystemRoutineAddress(&routine);
    DriverObject->DriverUnload = unload;
    if (!create)
        return secure_by_hand();
    return create(DriverObject, 0, &name, FILE_DEVICE_UNKNOWN, FILE_DEVICE_SECURE_OPEN, FALSE,
                  &sddl, NULL, &device);
}
