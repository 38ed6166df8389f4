/* SPDX-License-Identifier: MIT */
/* Thread-local storage of modules with a TLS directory (`thread_local`): a block for each thread
 * and module. All threads are in a list, for modules loaded later; those that were
 * terminated stay there. */
#include "ntdll.h"

static struct module *with_tls[TLS_SLOTS];
static unsigned count;
static struct thread {
    void *vector[TLS_SLOTS]; /* first: the TEB points to it */
    void *blocks[TLS_SLOTS];
    struct thread *next;
} * threads;

static const IMAGE_TLS_DIRECTORY *directory(const struct module *m)
{
    const struct pe_directory *d = &m->pe.directories[PE_TLS];
    return d->size >= sizeof(IMAGE_TLS_DIRECTORY) ? (const void *)(m->base + d->rva) : NULL;
}

/* A copy of the template, and zeros after it. The template must be inside the image. */
static bool make_block(struct thread *thread, const struct module *m)
{
    const IMAGE_TLS_DIRECTORY *tls = directory(m);
    const uint8_t *start = (const uint8_t *)tls->StartAddressOfRawData;
    SIZE_T raw = tls->EndAddressOfRawData - tls->StartAddressOfRawData;
    if (raw &&
        (start < m->base || start > m->base + m->size || raw > (SIZE_T)(m->base + m->size - start)))
        return false;
    uint8_t *block = heap_get(raw + tls->SizeOfZeroFill + 64);
    if (!block)
        return false;
    uint8_t *aligned = (uint8_t *)(((ULONG_PTR)block + 63) & ~(ULONG_PTR)63);
    memcpy(aligned, start, raw);
    thread->vector[m->tls_index] = aligned;
    thread->blocks[m->tls_index] = block;
    return true;
}

NTSTATUS tls_add_module(struct module *m)
{
    const IMAGE_TLS_DIRECTORY *tls = directory(m);
    if (!tls)
        return STATUS_SUCCESS;
    ULONG *index = (ULONG *)tls->AddressOfIndex;
    if (count == TLS_SLOTS)
        return STATUS_NO_MEMORY;
    if ((uint8_t *)index < m->base || (uint8_t *)(index + 1) > m->base + m->size)
        return STATUS_INVALID_IMAGE_FORMAT;
    m->tls_index = (USHORT)count;
    with_tls[count++] = m;
    *index = m->tls_index;
    for (struct thread *t = threads; t; t = t->next)
        if (!make_block(t, m))
            return STATUS_INVALID_IMAGE_FORMAT;
    return STATUS_SUCCESS;
}

NTSTATUS tls_begin_thread(void)
{
    struct thread *me = heap_get(sizeof *me);
    if (!me)
        return STATUS_NO_MEMORY;
    teb()->tls_vector = me->vector;
    for (unsigned i = 0; i < count; i++)
        if (!make_block(me, with_tls[i]))
            return STATUS_NO_MEMORY;
    me->next = threads;
    threads = me;
    return STATUS_SUCCESS;
}

void tls_end_thread(void)
{
    struct thread *me = (struct thread *)teb()->tls_vector;
    struct thread **link = &threads;
    while (*link && *link != me)
        link = &(*link)->next;
    if (*link)
        *link = me->next;
    for (unsigned i = 0; i < count; i++)
        heap_put(me->blocks[i]);
    heap_put(me);
    heap_put(teb()->tls_expansion);
    teb()->tls_vector = NULL;
    teb()->tls_expansion = NULL;
}

void tls_call(struct module *m, DWORD reason)
{
    const IMAGE_TLS_DIRECTORY *tls = directory(m);
    PIMAGE_TLS_CALLBACK *callback = tls ? (PIMAGE_TLS_CALLBACK *)tls->AddressOfCallBacks : NULL;
    for (; callback && *callback; callback++)
        (*callback)(m->base, reason, NULL);
}
