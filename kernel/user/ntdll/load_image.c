/* SPDX-License-Identifier: MIT */
/* Modules: loading, imports, exports. loader_lock guards the lists. */
#include "ntdll.h"
#include "random.h"

struct loader loader;
RTL_CRITICAL_SECTION loader_lock;

static char lower_char(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

/* --- The lists. --- */

static void init_list(LIST_ENTRY *list) { list->Flink = list->Blink = list; }

static void append_entry(LIST_ENTRY *list, LIST_ENTRY *entry)
{
    entry->Flink = list;
    entry->Blink = list->Blink;
    list->Blink->Flink = entry;
    list->Blink = entry;
}

struct module *module_of(const LIST_ENTRY *load_order)
{
    return (struct module *)((uint8_t *)load_order - offsetof(struct module, load_order));
}

struct module *module_at(const void *address)
{
    for (LIST_ENTRY *e = loader.load_order.Flink; e != &loader.load_order; e = e->Flink) {
        struct module *m = module_of(e);
        if ((const uint8_t *)address >= m->base && (const uint8_t *)address < m->base + m->size)
            return m;
    }
    return NULL;
}

/* NT: libraries of their own there. A name that ends with "-" is the beginning of API sets' names,
 * which stand for a library on Windows too. */
static const struct {
    const char *name, *here;
} other_names[] = {
    { "kernelbase.dll", "kernel32.dll" },       { "sechost.dll", "advapi32.dll" },
    { "bcryptprimitives.dll", "advapi32.dll" }, { "winmm.dll", "kernel32.dll" },
    { "api-ms-win-crt-", "ucrtbase.dll" },      { "api-ms-win-core-", "kernel32.dll" },
    { "api-ms-win-eventing-", "advapi32.dll" }, { "api-ms-win-security-", "advapi32.dll" },
};

static bool matches_row(const char *name, const char *row)
{
    while (*row && *name == *row)
        name++, row++;
    return !*row && (row[-1] == '-' || !*name);
}

/* Removes folders, converts to lower case, and adds ".dll" if there is no dot. False: too long. */
static bool plain_name(const char *name, char *plain)
{
    unsigned n = 0;
    bool point = false;
    for (; *name; name++) {
        if (*name == '\\' || *name == '/') {
            n = 0;
            point = false;
            continue;
        }
        point |= *name == '.';
        if (n == START_NAME_MAX - 5)
            return false;
        plain[n++] = lower_char(*name);
    }
    if (n && plain[n - 1] == '.')
        n--;
    for (const char *p = point ? "" : ".dll"; *p; p++)
        plain[n++] = *p;
    plain[n] = 0;
    return true;
}

static const char *other_name(const char *plain)
{
    for (unsigned i = 0; i < ARRAYSIZE(other_names); i++)
        if (matches_row(plain, other_names[i].name))
            return other_names[i].here;
    return "";
}

static struct module *loaded_module(const char *plain)
{
    for (LIST_ENTRY *e = loader.load_order.Flink; e != &loader.load_order; e = e->Flink)
        if (strcmp(module_of(e)->short_name, plain) == 0)
            return module_of(e);
    return NULL;
}

struct module *module_find(const char *name)
{
    char plain[START_NAME_MAX];
    struct module *m = plain_name(name, plain) ? loaded_module(plain) : NULL;
    return m ? m : loaded_module(other_name(plain));
}

/* C:\program.exe, C:\Windows\System32\library.dll; the short name is the last part. */
static void set_names(struct module *m)
{
    const char *folder = m->pe.flags & PE_DLL ? "C:\\Windows\\System32\\" : "C:\\";
    USHORT n = 0, name;
    while (*folder)
        m->wide_name[n++] = (WCHAR)*folder++;
    name = n;
    for (const char *p = m->short_name; *p; p++)
        m->wide_name[n++] = (unsigned char)*p;
    m->full_name = (UNICODE_STRING){ (USHORT)(2 * n), (USHORT)(2 * n + 2), m->wide_name };
    m->name = (UNICODE_STRING){ (USHORT)(2 * (n - name)), (USHORT)(2 * (n - name) + 2),
                                m->wide_name + name };
}

NTSTATUS module_add(uint8_t *base, size_t size, const char *name, struct module **module)
{
    struct module *m = heap_get(sizeof *m);
    *module = m;
    if (!m)
        return STATUS_NO_MEMORY;
    if (pe_open_image(&m->pe, base, size))
        return STATUS_INVALID_IMAGE_FORMAT;
    for (unsigned i = 0; name[i] && i < START_NAME_MAX - 1; i++)
        m->short_name[i] = lower_char(name[i]);
    const uint32_t cookie = pe_cookie(&m->pe, base, (uint64_t)base);
    if (cookie)
        *(uint64_t *)(base + cookie) = random_bits() >> 16; /* the upper 16 bits are 0 */
    m->base = base;
    m->size = (ULONG)size;
    m->entry = m->pe.entry ? base + m->pe.entry : NULL;
    m->load_count = 1;
    set_names(m);
    if (!loader.load_order.Flink) {
        loader.length = sizeof loader;
        init_list(&loader.load_order);
        init_list(&loader.memory_order);
        init_list(&loader.initialization_order);
    }
    append_entry(&loader.load_order, &m->load_order);
    append_entry(&loader.memory_order, &m->memory_order);
    return tls_add_module(m);
}

/* --- Exports. --- */

static void *follow(const char *forward)
{
    char library[START_NAME_MAX];
    struct module *m;
    unsigned n = 0;
    while (*forward && *forward != '.' && n < sizeof library - 1)
        library[n++] = *forward++;
    library[n] = 0;
    if (*forward++ != '.' || !NT_SUCCESS(module_load(library, &m)))
        return NULL;
    ULONG ordinal = 0;
    if (*forward != '#')
        return module_export(m, forward, 0);
    for (forward++; *forward >= '0' && *forward <= '9'; forward++)
        ordinal = 10 * ordinal + (ULONG)(*forward - '0');
    return module_export(m, NULL, ordinal);
}

void *module_export(struct module *m, const char *name, ULONG ordinal)
{
    static unsigned depth; /* forwarders may lead in circles */
    const char *forward;
    uint32_t rva;
    void *address = NULL;
    if (depth == 8 || !pe_export(&m->pe, m->base, name, ordinal, &rva, &forward))
        return NULL;
    depth++;
    address = forward ? follow(forward) : m->base + rva;
    depth--;
    return address;
}

/* --- Imports. --- */

/* A slot may be in a read-only section. */
static bool write_slot(struct module *m, uint32_t slot, void *value)
{
    void *base = m->base + slot;
    SIZE_T size = sizeof value;
    ULONG old, unused;
    bool opened = false;
    for (unsigned i = 0; i < m->pe.sections; i++) {
        struct pe_section s = pe_section(&m->pe, m->base, i);
        opened |= !s.writable && slot >= s.rva && slot - s.rva < s.size;
    }
    if (opened &&
        !NT_SUCCESS(NtProtectVirtualMemory(CURRENT_PROCESS, &base, &size, PAGE_READWRITE, &old)))
        return false;
    *(void **)(m->base + slot) = value;
    if (opened)
        NtProtectVirtualMemory(CURRENT_PROCESS, &base, &size, old, &unused);
    return true;
}

NTSTATUS module_resolve(struct module *m)
{
    struct pe_imports at = { 0 };
    struct pe_import import;
    struct text missing = { 0 };
    struct module *library = NULL;
    const char *name = NULL;
    enum pe_step step;
    while ((step = pe_next_import(&m->pe, m->base, &at, &import)) == PE_FOUND) {
        if (import.library != name) {
            name = import.library;
            NTSTATUS status = module_load(name, &library);
            if (!NT_SUCCESS(status) && status != STATUS_DLL_NOT_FOUND)
                return status;
        }
        void *address = NULL;
        if (library && import.slot)
            address = module_export(library, import.name, import.ordinal);
        if (!address && (import.slot || !library))
            address = missing_import(m, &import, &missing);
        if (import.slot && !write_slot(m, import.slot, address))
            return STATUS_NO_MEMORY;
    }
    if (missing.length)
        text_print(&missing);
    if (step == PE_BROKEN)
        return STATUS_INVALID_IMAGE_FORMAT;
    append_entry(&loader.initialization_order, &m->initialization_order);
    return STATUS_SUCCESS;
}

static void unlink_entry(LIST_ENTRY *entry)
{
    entry->Flink->Blink = entry->Blink;
    entry->Blink->Flink = entry->Flink;
}

/* Removes a library whose imports failed; libraries that it loaded stay. */
static void remove_module(struct module *m)
{
    unlink_entry(&m->load_order);
    unlink_entry(&m->memory_order);
}

NTSTATUS module_load(const char *name, struct module **module)
{
    char plain[START_NAME_MAX];
    void *base;
    SIZE_T size;
    if (!plain_name(name, plain))
        return STATUS_DLL_NOT_FOUND;
    *module = loaded_module(plain);
    if (*module)
        return STATUS_SUCCESS;
    NTSTATUS status = load_image(plain, strlen(plain), &base, &size);
    if (status == STATUS_DLL_NOT_FOUND && *other_name(plain)) {
        memcpy(plain, other_name(plain), strlen(other_name(plain)) + 1);
        *module = loaded_module(plain);
        if (*module)
            return STATUS_SUCCESS;
        status = load_image(plain, strlen(plain), &base, &size);
    }
    if (NT_SUCCESS(status))
        status = module_add(base, size, plain, module);
    if (NT_SUCCESS(status))
        status = module_resolve(*module);
    if (!NT_SUCCESS(status) && *module)
        remove_module(*module);
    return status;
}

/* --- Entry points. --- */

typedef BOOL(WINAPI *entry_point)(PVOID, DWORD, PVOID);

static BOOL call_entry(struct module *m, DWORD reason)
{
    bool at_start = reason == DLL_PROCESS_ATTACH, library = m->pe.flags & PE_DLL;
    bool threads = reason == DLL_THREAD_ATTACH || reason == DLL_THREAD_DETACH;
    if (threads && m->no_thread_calls)
        return TRUE;
    tls_call(m, reason);
    if (!library || !m->entry)
        return TRUE;
    return ((entry_point)m->entry)(m->base, reason, NULL) || !at_start;
}

static struct module *module_of_initialization(LIST_ENTRY *entry)
{
    return (struct module *)((uint8_t *)entry - offsetof(struct module, initialization_order));
}

/* Removes a library whose entry point refused, which is told so, and those that wait for their turn
 * after it: they were loaded because of the same call. */
static void remove_refused(struct module *refused)
{
    LIST_ENTRY *next, *e = &refused->initialization_order;
    call_entry(refused, DLL_PROCESS_DETACH);
    for (; e != &loader.initialization_order; e = next) {
        struct module *m = module_of_initialization(e);
        next = e->Flink;
        if (m == refused || !m->initialized) {
            unlink_entry(e);
            remove_module(m);
        }
    }
}

NTSTATUS initialize_modules(void)
{
    for (LIST_ENTRY *e = loader.initialization_order.Flink; e != &loader.initialization_order;
         e = e->Flink) {
        struct module *m = module_of_initialization(e);
        if (m->initialized)
            continue;
        m->initialized = true;
        if (!call_entry(m, DLL_PROCESS_ATTACH)) {
            remove_refused(m);
            return STATUS_DLL_INIT_FAILED;
        }
    }
    return STATUS_SUCCESS;
}

/* For an end, in reverse order. */
void call_modules(DWORD reason)
{
    bool forward = reason == DLL_THREAD_ATTACH;
    LIST_ENTRY *all = &loader.initialization_order;
    for (LIST_ENTRY *e = forward ? all->Flink : all->Blink; e != all;
         e = forward ? e->Flink : e->Blink) {
        struct module *m = module_of_initialization(e);
        if (m->initialized)
            call_entry(m, reason);
    }
}
