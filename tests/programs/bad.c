/* SPDX-License-Identifier: MIT */
/* A program that ends badly, as its argument says: tests/drivers/drivers.t and programs.t have the
 * list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static HANDLE first, second;

static void bad_null(void) { ((void (*volatile)(void))NULL)(); }

static int deep(volatile int *up)
{
    volatile int here[256];
    here[0] = up ? up[0] + 1 : 0;
    return deep(here) + here[0];
}

static void bad_stack(void) { printf("%d\n", deep(NULL)); }

/* ___chkstk_ms touches its pages: the caller is to blame. */
static __declspec(noinline) int large_frame(volatile char *up)
{
    volatile char here[20000];
    here[0] = up ? up[0] : 0;
    return large_frame(here) + here[0];
}

static void bad_frame(void) { printf("%d\n", large_frame(NULL)); }

static void bad_loop(void)
{
    for (;;)
        YieldProcessor();
}

static DWORD WINAPI take_both(LPVOID crossed)
{
    WaitForSingleObject(crossed ? second : first, INFINITE);
    Sleep(50);
    return WaitForSingleObject(crossed ? first : second, INFINITE);
}

static void bad_deadlock(void)
{
    first = CreateMutexA(NULL, FALSE, NULL);
    second = CreateMutexA(NULL, FALSE, NULL);
    CreateThread(NULL, 0, take_both, &first, 0, NULL);
    take_both(NULL);
}

static void bad_request(void)
{
    DWORD n;
    HANDLE file = CreateFileA("\\\\.\\Bad", GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
    DeviceIoControl(file, 0, NULL, 0, NULL, 0, &n, NULL);
}

static void bad_free(void)
{
    char *volatile p = malloc(100);
    free(p);
    free(p);
    p = NULL;
}

/* What is beside a block is another one. */
static void bad_overrun(void)
{
    volatile char *blocks[8];
    for (unsigned i = 0; i < 8; i++)
        blocks[i] = malloc(1000);
    for (unsigned i = 0; i < 2000; i++)
        blocks[0][i] = 1;
    for (unsigned i = 0; i < 8; i++)
        free((void *)blocks[i]);
}

static DWORD WINAPI write_to(LPVOID address)
{
    *(volatile int *)address = 1;
    return 0;
}

static void bad_thread(void)
{
    fprintf(stderr, "before\n");
    CreateThread(NULL, 0, write_to, (LPVOID)0x123, 0, NULL);
    Sleep(1000);
}

static LONG CALLBACK go_well(EXCEPTION_POINTERS *pointers) { ExitProcess(0); }

/* A program's own check fails: INT 29h ends it, and no handler is asked. */
static void bad_check(void)
{
    AddVectoredExceptionHandler(1, go_well);
    SetUnhandledExceptionFilter(go_well);
    fprintf(stderr, "before %d\n", IsProcessorFeaturePresent(PF_FASTFAIL_AVAILABLE));
    __asm__ volatile("int $0x29" : : "c"(7)); /* FAST_FAIL_FATAL_APP_EXIT */
}

static const struct {
    const char *name;
    void (*act)(void);
} ways[] = {
    { "null", bad_null },   { "stack", bad_stack },       { "frame", bad_frame },
    { "loop", bad_loop },   { "deadlock", bad_deadlock }, { "request", bad_request },
    { "free", bad_free },   { "overrun", bad_overrun },   { "thread", bad_thread },
    { "check", bad_check },
};

int main(int argc, char **argv)
{
    for (unsigned i = 0; argc > 1 && i < sizeof ways / sizeof ways[0]; i++)
        if (!strcmp(ways[i].name, argv[1]))
            ways[i].act();
    return 0;
}
