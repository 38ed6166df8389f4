/* SPDX-License-Identifier: MIT */
/* The Ldr routines that kernel32 calls. */
#include "ntdll.h"

/* Names of images are ASCII here. False: this one is not. */
static bool narrow_name(const UNICODE_STRING *wide, char *name, unsigned room)
{
    unsigned n = wide->Length / 2u;
    if (n >= room)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (!wide->Buffer[i] || wide->Buffer[i] > '~')
            return false;
        name[i] = (char)wide->Buffer[i];
    }
    name[n] = 0;
    return n;
}

static struct module *module_by_handle(PVOID handle)
{
    struct module *m = module_at(handle);
    return m && m->base == handle ? m : NULL;
}

/* NT: there is no search path, and Flags have no effect. Statuses of module_load;
 * STATUS_DLL_INIT_FAILED: a library's entry point refused. */
NTSTATUS NTAPI LdrLoadDll(PWSTR SearchPath, PULONG Flags, PUNICODE_STRING Name, PVOID *BaseAddress)
{
    char name[256];
    struct module *m;
    if (!narrow_name(Name, name, sizeof name))
        return STATUS_DLL_NOT_FOUND;
    RtlEnterCriticalSection(&loader_lock);
    NTSTATUS status = module_load(name, &m);
    if (NT_SUCCESS(status) && loader.initialized)
        status = initialize_modules();
    if (NT_SUCCESS(status)) {
        m->load_count++;
        *BaseAddress = m->base;
    }
    RtlLeaveCriticalSection(&loader_lock);
    return status;
}

/* NT: no module is unloaded before the process ends. */
NTSTATUS NTAPI LdrUnloadDll(PVOID BaseAddress)
{
    RtlEnterCriticalSection(&loader_lock);
    struct module *m = module_by_handle(BaseAddress);
    if (m && m->load_count > 1)
        m->load_count--;
    RtlLeaveCriticalSection(&loader_lock);
    return m ? STATUS_SUCCESS : STATUS_DLL_NOT_FOUND;
}

/* NT: Flags may be LDR_ADDREF_DLL_PIN, which keeps the module, as each is kept here. */
NTSTATUS NTAPI LdrAddRefDll(ULONG Flags, PVOID BaseAddress)
{
    RtlEnterCriticalSection(&loader_lock);
    struct module *m = module_by_handle(BaseAddress);
    if (m)
        m->load_count++;
    RtlLeaveCriticalSection(&loader_lock);
    return m ? STATUS_SUCCESS : STATUS_DLL_NOT_FOUND;
}

NTSTATUS NTAPI LdrGetDllHandle(PWSTR Path, PULONG Flags, PUNICODE_STRING Name, PVOID *BaseAddress)
{
    char name[256];
    if (!narrow_name(Name, name, sizeof name))
        return STATUS_DLL_NOT_FOUND;
    RtlEnterCriticalSection(&loader_lock);
    struct module *m = module_find(name);
    RtlLeaveCriticalSection(&loader_lock);
    if (!m)
        return STATUS_DLL_NOT_FOUND;
    *BaseAddress = m->base;
    return STATUS_SUCCESS;
}

/* STATUS_DLL_NOT_FOUND: not a module's handle. STATUS_ENTRYPOINT_NOT_FOUND,
 * STATUS_ORDINAL_NOT_FOUND. */
NTSTATUS NTAPI LdrGetProcedureAddress(PVOID BaseAddress, PANSI_STRING Name, ULONG Ordinal,
                                      PVOID *Address)
{
    NTSTATUS status = STATUS_DLL_NOT_FOUND;
    RtlEnterCriticalSection(&loader_lock);
    struct module *m = module_by_handle(BaseAddress);
    if (m) {
        *Address = module_export(m, Name ? Name->Buffer : NULL, Ordinal);
        status = *Address ? STATUS_SUCCESS
                 : Name   ? STATUS_ENTRYPOINT_NOT_FOUND
                          : STATUS_ORDINAL_NOT_FOUND;
        if (*Address && loader.initialized)
            initialize_modules(); /* a forwarder may have loaded some */
    }
    RtlLeaveCriticalSection(&loader_lock);
    return status;
}

NTSTATUS NTAPI LdrDisableThreadCalloutsForDll(PVOID BaseAddress)
{
    struct module *m = module_by_handle(BaseAddress);
    if (!m)
        return STATUS_DLL_NOT_FOUND;
    m->no_thread_calls = true;
    return STATUS_SUCCESS;
}

/* Ours, for kernel32: the full name of a module (NULL: of the program). */
NTSTATUS NTAPI LdrGetDllFullName(PVOID BaseAddress, PUNICODE_STRING Name)
{
    struct module *m = module_by_handle(BaseAddress ? BaseAddress : teb()->peb->image_base);
    if (!m)
        return STATUS_DLL_NOT_FOUND;
    *Name = m->full_name;
    return STATUS_SUCCESS;
}

PVOID NTAPI RtlPcToFileHeader(PVOID PcValue, PVOID *BaseOfImage)
{
    struct module *m = module_at(PcValue);
    *BaseOfImage = m ? m->base : NULL;
    return *BaseOfImage;
}
