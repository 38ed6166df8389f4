/* SPDX-License-Identifier: MIT */
/* What the files of ntdll share. Functions that Windows exports have its names and types; those
 * that mingw-w64's headers lack are declared here. */
#pragma once
#include <string.h>
#include "kernel/user/ntdll/teb.h"
#include "kernel/image/pe.h"

/* Services: kernel/nt/service_list.h */
NTSTATUS load_image(const char *name, SIZE_T length, void **base, SIZE_T *size);

/* load_image.c. A module begins with Windows' LDR_DATA_TABLE_ENTRY. */
struct module {
    LIST_ENTRY load_order, memory_order, initialization_order;
    uint8_t *base;
    void *entry;
    ULONG size;
    UNICODE_STRING full_name, name;
    ULONG flags;
    USHORT load_count, tls_index;
    LIST_ENTRY hash;
    ULONG time_stamp;
    /* ours */
    struct pe pe;
    bool initialized, no_thread_calls;
    char short_name[START_NAME_MAX]; /* lower case */
    WCHAR wide_name[32 + START_NAME_MAX];
};

struct loader {
    ULONG length;
    BOOLEAN initialized;
    void *handle;
    LIST_ENTRY load_order, memory_order, initialization_order;
};

extern struct loader loader;
extern RTL_CRITICAL_SECTION loader_lock;
extern bool shutting_down;

/* The module around an address, or NULL. */
struct module *module_at(const void *address);
struct module *module_of(const LIST_ENTRY *load_order);
/* Loads a library and its imports, but runs none of their code. */
NTSTATUS module_load(const char *name, struct module **module);
NTSTATUS module_add(uint8_t *base, size_t size, const char *name, struct module **module);
NTSTATUS module_resolve(struct module *module);
struct module *module_find(const char *name);
/* Calls the entry points of newly loaded modules. */
NTSTATUS initialize_modules(void);
void call_modules(DWORD reason);
/* The address of an export, forwarders followed; NULL: none. */
void *module_export(struct module *module, const char *name, ULONG ordinal);

/* tls_images.c, with the loader's lock taken */
NTSTATUS tls_add_module(struct module *module);
NTSTATUS tls_begin_thread(void);
void tls_end_thread(void);
void tls_call(struct module *module, DWORD reason);

/* heap.c */
NTSTATUS heap_begin(void);
void *heap_get(size_t size);
void heap_put(void *block);

/* ntdll_text.c */
/* A message line of at most 200 characters. */
struct text {
    unsigned length, omitted; /* names that a line of imports has left out */
    char bytes[200];
};
void text_add(struct text *text, const char *what);
void text_print(struct text *text);

/* missing.c: an address for an import that no library has, whose name goes to the line. */
void *missing_import(const struct module *m, const struct pe_import *import, struct text *line);

/* start.c */
DECLSPEC_NORETURN VOID NTAPI RtlExitUserProcess(NTSTATUS ExitStatus);
DECLSPEC_NORETURN VOID NTAPI RtlExitUserThread(NTSTATUS ExitStatus);
VOID NTAPI RtlUserThreadStart(PTHREAD_START_ROUTINE start, PVOID argument);

/* parameters.c: the command line and other parameters of a process */
NTSTATUS parameters_begin(const char *name, const char *line);

/* critical.c */
NTSTATUS NTAPI RtlInitializeCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
NTSTATUS NTAPI RtlEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
NTSTATUS NTAPI RtlLeaveCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
NTSTATUS NTAPI RtlDeleteCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);
ULONG NTAPI RtlTryEnterCriticalSection(PRTL_CRITICAL_SECTION CriticalSection);

/* heap.c */
PVOID NTAPI RtlAllocateHeap(HANDLE HeapHandle, ULONG Flags, SIZE_T Size);
BOOLEAN NTAPI RtlFreeHeap(HANDLE HeapHandle, ULONG Flags, PVOID BaseAddress);

/* fls.c: calls back for the values of an ending thread. */
void fls_end_thread(void);
