/* SPDX-License-Identifier: MIT */
/* Libraries that tests/programs/programs.t makes: entry points, which print why they are called,
 * one that refuses, and exports that another library has. Prints what is wrong. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <winternl.h>
#include "check.h"

static DWORD WINAPI nothing(void *unused) { return 7; }

static HANDLE held;

static void run_thread(void) { IS(end_of(CreateThread(NULL, 0, nothing, NULL, 0, NULL)), 7); }

/* How many libraries of this name are in the list that debuggers and shipped code walk. */
static int listed(const WCHAR *name)
{
    LIST_ENTRY *list = &NtCurrentTeb()->ProcessEnvironmentBlock->Ldr->InMemoryOrderModuleList;
    int n = 0;
    for (LIST_ENTRY *e = list->Flink; e != list; e = e->Flink)
        n += wcsstr(
                 CONTAINING_RECORD(e, LDR_DATA_TABLE_ENTRY, InMemoryOrderLinks)->FullDllName.Buffer,
                 name) != NULL;
    return n;
}

static DWORD WINAPI hold(void *library)
{
    void (*take)(void) = (void (*)(void))GetProcAddress(library, "take");
    take();
    SetEvent(held);
    Sleep(INFINITE);
    return 0;
}

/* The thread that has the library's locks ends with the process; the library takes them then. */
static void leave_locked(void)
{
    HMODULE takes = LoadLibraryA("takes");
    held = CreateEventA(NULL, FALSE, FALSE, NULL);
    IS(takes && CreateThread(NULL, 0, hold, takes, 0, NULL), 1);
    IS(WaitForSingleObject(held, INFINITE), WAIT_OBJECT_0);
}

static int answer_of(HMODULE library, const char *name)
{
    int (*function)(void) = (int (*)(void))GetProcAddress(library, name);
    return function ? function() : -1;
}

int main(void)
{
    HMODULE entry = LoadLibraryA("entry"), forwards;
    IS(entry && LoadLibraryA("entry.dll") == entry, 1); /* attached once */
    run_thread();
    IS(DisableThreadLibraryCalls(entry), 1);
    run_thread();
    for (int i = 0; i < 2; i++) {
        FAILS(LoadLibraryA("refuses"), NULL, ERROR_DLL_INIT_FAILED);
        FAILS(GetModuleHandleA("refuses"), NULL, ERROR_MOD_NOT_FOUND);
    }
    FAILS(LoadLibraryA("above"), NULL, ERROR_DLL_INIT_FAILED); /* it imports from that one */
    FAILS(GetModuleHandleA("above"), NULL, ERROR_MOD_NOT_FOUND);
    IS(listed(L"entry.dll") == 1 && !listed(L"refuses.dll") && !listed(L"above.dll"), 1);
    FAILS(LoadLibraryA("nested"), NULL, ERROR_DLL_INIT_FAILED);
    IS(answer_of(GetModuleHandleA("two"), "answer"), 42); /* what it had loaded itself stays */
    run_thread();
    forwards = LoadLibraryA("forwards");
    IS(answer_of(forwards, "by_name"), 42);
    IS(answer_of(forwards, "by_ordinal"), 7);
    FAILS(GetProcAddress(forwards, "to_nowhere"), NULL, ERROR_PROC_NOT_FOUND);
    FAILS(GetProcAddress(forwards, "to_none"), NULL, ERROR_PROC_NOT_FOUND);
    IS(answer_of(forwards, (const char *)1), 42); /* its own ordinal */
    FAILS(GetProcAddress(forwards, (const char *)9), NULL, ERROR_INVALID_ORDINAL);
    IS(FreeLibrary(entry), 1);
    leave_locked();
    return check_result();
}
