// SPDX-License-Identifier: MIT
// What programs have from the libraries beneath them: modules, thread-local storage, heaps,
// arguments.
#include <windows.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <initializer_list>
#include "check.h"

static void arguments(int argc, char **argv)
{
    IS(argc, 5);
    IS(std::strcmp(argv[1], "a b"), 0);
    IS(std::strcmp(argv[2], "c\\d"), 0);
    IS(std::strcmp(argv[3], "e\"f"), 0);
    IS(std::strcmp(argv[4], "g\\"), 0);
    IS(argv[5] == nullptr, 1);
}

static void modules()
{
    char name[40], few[4];
    wchar_t wide[8] = L"1234567";
    HMODULE kernel = LoadLibraryA("C:\\Windows\\System32\\KERNEL32.dll"), here = nullptr;
    IS(kernel != nullptr && kernel == GetModuleHandleA("kernel32"), 1);
    IS(LoadLibraryA("kernelbase.dll") == kernel, 1);
    IS(FreeLibrary(kernel), TRUE);
    IS(GetModuleHandleA("kernel32.dll") == kernel, 1);
    IS(FreeLibrary((HMODULE)((char *)kernel + 0x1000)), FALSE);
    IS(GetModuleHandleA("kernel32.") == nullptr, 1); // a name that ends with a point has no ending
    IS(GetProcAddress(kernel, "Sleep") == (FARPROC)Sleep, 1);
    IS(GetProcAddress(kernel, "sleep") == nullptr, 1);
    IS(GetLastError(), ERROR_PROC_NOT_FOUND);
    IS(GetProcAddress(kernel, (LPCSTR)0xffff) == nullptr, 1);
    IS(GetModuleFileNameA(kernel, name, sizeof name), 32);
    IS(std::strcmp(name, "C:\\Windows\\System32\\kernel32.dll"), 0);
    IS(GetModuleFileNameA(nullptr, few, sizeof few), sizeof few);
    IS(few[3], 0);
    IS(GetModuleFileNameW(nullptr, wide, 4), 4);
    IS(std::wcscmp(wide, L"C:\\"), 0);
    IS(wide[4], L'5');
    IS(GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (LPCSTR)modules, &here), TRUE);
    IS(here == GetModuleHandleA(nullptr), 1);
    IS(GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, name, &here), FALSE);
}

struct counted {
    static volatile long alive;
    int value = 7;
    counted() { InterlockedIncrement(&alive); }
    ~counted() { InterlockedDecrement(&alive); }
};
volatile long counted::alive;
static thread_local counted object;
static thread_local int zeroed, preset = 11;
static thread_local char aligned alignas(64)[64];
static DWORD slots[70];

// gcc's thread_local is its own; this is the storage that the loader makes for an image.
extern "C" ULONG _tls_index;
extern "C" char *_tls_start;
extern "C" __attribute__((section(".tls$M"))) int loaders = 0x1234;

static int *loaders_own()
{
    char *block = ((char **)__readgsqword(0x58))[_tls_index];
    return (ULONG_PTR)block % 64 ? nullptr
                                 : (int *)(block + ((char *)&loaders - (char *)&_tls_start));
}

static DWORD WINAPI in_thread(LPVOID)
{
    int bad = object.value != 7 || zeroed || preset != 11 || (ULONG_PTR)aligned % 64;
    for (DWORD slot : slots)
        bad += TlsGetValue(slot) != nullptr;
    bad += !loaders_own() || *loaders_own() != 0x1234;
    if (loaders_own())
        *loaders_own() = 99;
    object.value = preset = zeroed = 99;
    for (DWORD slot : slots)
        TlsSetValue(slot, &bad);
    return (DWORD)(bad * 100 + counted::alive);
}

static DWORD run(LPTHREAD_START_ROUTINE routine, LPVOID argument)
{
    DWORD code = ~0u;
    HANDLE thread = CreateThread(nullptr, 0, routine, argument, 0, nullptr);
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &code);
    CloseHandle(thread);
    return code;
}

static void local_storage()
{
    IS(object.value + zeroed + preset, 18);
    IS(loaders_own() && *loaders_own() == 0x1234, 1);
    for (DWORD &slot : slots) // more than the 64 that each thread has at once
        slot = TlsAlloc();
    IS(slots[0] > 0 && slots[69] - slots[0] == 69, 1);
    for (DWORD slot : slots)
        TlsSetValue(slot, (LPVOID)(ULONG_PTR)(slot + 1));
    IS(run(in_thread, nullptr), 2);
    IS(run(in_thread, nullptr), 2);
    IS(counted::alive, 1); // their destructors ran
    IS(loaders_own() && *loaders_own() == 0x1234, 1);
    int bad = 0;
    for (DWORD slot : slots)
        bad += TlsGetValue(slot) != (LPVOID)(ULONG_PTR)(slot + 1) || !TlsFree(slot);
    IS(bad, 0);
    IS(object.value + zeroed + preset, 18);
    DWORD again = TlsAlloc();
    IS(again, slots[0]);
    IS(TlsGetValue(again) == nullptr, 1);
    IS(TlsFree(again) && !TlsFree(again) && GetLastError() == ERROR_INVALID_PARAMETER, 1);
    FAILS(TlsSetValue(5000, nullptr), FALSE, ERROR_INVALID_PARAMETER);
}

static bool holds(const unsigned char *block, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != value)
            return false;
    return true;
}

static void sizes(HANDLE heap)
{
    const size_t all[] = { 0,   1,   15,  16,   17,   112,   113,   144,    145,
                           300, 500, 900, 4000, 9000, 32752, 32753, 100000, 1500000 };
    const int n = sizeof all / sizeof all[0];
    unsigned char *block[2][n];
    int bad = 0;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < n; i++) {
            block[round][i] = (unsigned char *)HeapAlloc(heap, 0, all[i]);
            bad += !block[round][i] || (ULONG_PTR)block[round][i] % 16 ||
                   HeapSize(heap, 0, block[round][i]) != all[i];
            std::memset(block[round][i], round * n + i + 1, all[i]);
        }
    IS(bad, 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < n; i++) {
            bad += !holds(block[round][i], all[i], (unsigned char)(round * n + i + 1));
            HeapFree(heap, 0, block[round][i]);
        }
    IS(bad, 0);
    for (size_t size : all) {
        unsigned char *p = (unsigned char *)HeapAlloc(heap, HEAP_ZERO_MEMORY, size);
        bad += !holds(p, size, 0);
        HeapFree(heap, 0, p);
    }
    IS(bad, 0);
}

static void grows(HANDLE heap)
{
    unsigned char *p = (unsigned char *)HeapAlloc(heap, 0, 20), *same;
    std::memset(p, 3, 20);
    same = (unsigned char *)HeapReAlloc(heap, 0, p, 24);
    IS(same == p, 1); // there is space
    size_t size = 24;
    std::memset(p, 3, size);
    int bad = 0;
    for (size_t next : { 25u, 100u, 5000u, 60000u, 70000u, 40000u, 200u, 10u }) {
        void *dirty = HeapAlloc(heap, 0, next); // what the block becomes was used before
        std::memset(dirty, 0xee, next);
        HeapFree(heap, 0, dirty);
        p = (unsigned char *)HeapReAlloc(heap, HEAP_ZERO_MEMORY, p, next);
        size_t both = next < size ? next : size;
        bad += !holds(p, both, 3) || (next > size && !holds(p + size, next - size, 0));
        std::memset(p, 3, next);
        size = next;
    }
    IS(bad, 0);
    IS(HeapSize(heap, 0, p), 10);
    IS(HeapAlloc(heap, 0, ~(SIZE_T)7) == nullptr, 1);
    void *freed = HeapAlloc(heap, 0, 77);
    HeapFree(heap, 0, freed);
    IS(HeapAlloc(heap, 0, 77) == freed, 1); // a free block is taken again
}

static DWORD WINAPI churn(LPVOID heap)
{
    unsigned char *mine[16] = {}, tag = (unsigned char)GetCurrentThreadId();
    DWORD bad = 0;
    for (unsigned i = 0; i < 40000; i++) {
        unsigned char *&p = mine[i * 7 % 16];
        bad += p && !holds(p, 48, tag);
        if (p)
            HeapFree((HANDLE)heap, 0, p);
        p = (unsigned char *)HeapAlloc((HANDLE)heap, 0, 48);
        std::memset(p, tag, 48);
    }
    return bad;
}

static void heaps()
{
    HANDLE own = HeapCreate(0, 0, 0), threads[3];
    sizes(GetProcessHeap());
    sizes(own);
    grows(own);
    for (HANDLE &thread : threads)
        thread = CreateThread(nullptr, 0, churn, own, 0, nullptr);
    for (HANDLE thread : threads) {
        DWORD bad = 1;
        WaitForSingleObject(thread, INFINITE);
        GetExitCodeThread(thread, &bad);
        IS(bad, 0);
    }
    void *big = HeapAlloc(own, 0, 100000);
    IS(HeapDestroy(own), TRUE);
    MEMORY_BASIC_INFORMATION m;
    IS(VirtualQuery(big, &m, sizeof m) && m.State == MEM_FREE, 1);
}

static void at_end_first()
{
    std::puts("last");
    ExitProcess(failures);
}
static void at_end_second() { std::puts("then"); }

int main(int argc, char **argv)
{
    arguments(argc, argv);
    modules();
    local_storage();
    heaps();
    std::atexit(at_end_first);
    std::atexit(at_end_second);
    return check_result();
}
