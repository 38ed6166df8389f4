/* SPDX-License-Identifier: MIT */
/* A driver that asks another one, device_driver.c, by its name. */
#include "check_driver.h"
#include "device.h"

static NTSTATUS control(HANDLE Handle, ULONG Code, PVOID Buffer, ULONG Length)
{
    IO_STATUS_BLOCK block;
    return ZwDeviceIoControlFile(Handle, NULL, NULL, NULL, &block, Code, Buffer, Length, Buffer,
                                 Length);
}

static VOID check_handle(VOID)
{
    UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\Plain");
    OBJECT_ATTRIBUTES attributes;
    IO_STATUS_BLOCK block;
    PFILE_OBJECT file;
    HANDLE handle;
    char text[4] = "abc";
    InitializeObjectAttributes(&attributes, &name, 0, NULL, NULL);
    IS(ZwCreateFile(&handle, GENERIC_READ, &attributes, &block, NULL, 0, 0, FILE_OPEN, 0, NULL, 0),
       STATUS_SUCCESS);
    IS(control(handle, ECHO, text, 3), STATUS_SUCCESS);
    IS(RtlCompareMemory(text, "cba", 4), 4);
    IS(control(handle, REFUSED, text, 3), STATUS_NOT_SUPPORTED);
    IS(ZwReadFile(handle, NULL, NULL, NULL, &block, text, 1, NULL, NULL), STATUS_NOT_SUPPORTED);
    IS(ZwWriteFile(handle, NULL, NULL, NULL, &block, text, 1, NULL, NULL), STATUS_NOT_SUPPORTED);
    IS(ObReferenceObjectByHandle(handle, FILE_READ_DATA, NULL, KernelMode, (PVOID *)&file, NULL),
       STATUS_SUCCESS);
    IS(file->DeviceObject->StackSize, 1);
    ObReferenceObject(file);
    ObDereferenceObject(file);
    ObDereferenceObject(file);
    ZwClose(handle);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    DriverObject->DriverUnload = unload;
    check_handle();
    return check_result();
}
