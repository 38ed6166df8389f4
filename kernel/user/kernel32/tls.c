/* SPDX-License-Identifier: MIT */
/* Thread-local slots: 64 in the TEB, 1,024 more in a block. One bit for each slot in use. Slot 0 is
 * never given, as on Windows: libraries of Rust take it for none. */
#include "kernel32.h"

#define EXPANSION 1024u
#define ALL (TLS_SLOTS + EXPANSION)

static LONG64 volatile taken[ALL / 64];

DWORD WINAPI TlsAlloc(void)
{
    for (DWORD i = 1; i < ALL; i++)
        if (!InterlockedBitTestAndSet64(&taken[i / 64], i % 64)) {
            TlsSetValue(i, NULL);
            return i;
        }
    fail(ERROR_NO_MORE_ITEMS);
    return TLS_OUT_OF_INDEXES;
}

/* NULL: the thread has no block and none is made, or there is no such slot. */
static void **slot(DWORD i, bool make)
{
    struct teb *me = teb();
    if (i < TLS_SLOTS)
        return &me->tls_slots[i];
    if (i >= ALL)
        return NULL;
    if (!me->tls_expansion && make)
        me->tls_expansion = RtlAllocateHeap(NULL, HEAP_ZERO_MEMORY, EXPANSION * sizeof(void *));
    return me->tls_expansion ? &me->tls_expansion[i - TLS_SLOTS] : NULL;
}

BOOL WINAPI TlsFree(DWORD dwTlsIndex)
{
    if (dwTlsIndex >= ALL ||
        !InterlockedBitTestAndReset64(&taken[dwTlsIndex / 64], dwTlsIndex % 64))
        return fail(ERROR_INVALID_PARAMETER);
    return TRUE;
}

LPVOID WINAPI TlsGetValue(DWORD dwTlsIndex)
{
    void **at = slot(dwTlsIndex, false);
    teb()->last_error = dwTlsIndex < ALL ? ERROR_SUCCESS : ERROR_INVALID_PARAMETER;
    return at ? *at : NULL;
}

BOOL WINAPI TlsSetValue(DWORD dwTlsIndex, LPVOID lpTlsValue)
{
    void **at = slot(dwTlsIndex, lpTlsValue);
    if (!at && !lpTlsValue && dwTlsIndex < ALL)
        return TRUE;
    if (!at)
        return fail(dwTlsIndex < ALL ? ERROR_NOT_ENOUGH_MEMORY : ERROR_INVALID_PARAMETER);
    *at = lpTlsValue;
    return TRUE;
}

/* --- Fiber-local slots: ntdll has them and calls back when a thread ends. --- */

NTSTATUS NTAPI RtlFlsAlloc(PFLS_CALLBACK_FUNCTION Callback, PULONG Index);
NTSTATUS NTAPI RtlFlsFree(ULONG Index);
NTSTATUS NTAPI RtlFlsSetValue(ULONG Index, PVOID Value);
NTSTATUS NTAPI RtlFlsGetValue(ULONG Index, PVOID *Value);

DWORD WINAPI FlsAlloc(PFLS_CALLBACK_FUNCTION lpCallback)
{
    ULONG index;
    return succeeded(RtlFlsAlloc(lpCallback, &index)) ? index : FLS_OUT_OF_INDEXES;
}

WINBOOL WINAPI FlsFree(DWORD dwFlsIndex) { return succeeded(RtlFlsFree(dwFlsIndex)); }

WINBOOL WINAPI FlsSetValue(DWORD dwFlsIndex, PVOID lpFlsData)
{
    return succeeded(RtlFlsSetValue(dwFlsIndex, lpFlsData));
}

PVOID WINAPI FlsGetValue(DWORD dwFlsIndex)
{
    PVOID value = NULL;
    teb()->last_error = ERROR_SUCCESS;
    return succeeded(RtlFlsGetValue(dwFlsIndex, &value)) ? value : NULL;
}
