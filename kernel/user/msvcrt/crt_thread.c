/* SPDX-License-Identifier: MIT */
/* Data of each thread, threads made by C's own function, signals, the clock. */
#include "msvcrt.h"
#include <process.h>
#include <signal.h>
#include <time.h>

static DWORD slot = TLS_OUT_OF_INDEXES;

/* Threads that find no memory share one structure. */
struct thread_data *thread_data(void)
{
    static struct thread_data last_resort;
    DWORD error = GetLastError();
    if (slot == TLS_OUT_OF_INDEXES)
        slot = TlsAlloc();
    struct thread_data *data = TlsGetValue(slot);
    if (!data) {
        data = HeapAlloc(GetProcessHeap(), 0, sizeof *data);
        if (data) {
            *data = (struct thread_data){ .random = 1 };
            TlsSetValue(slot, data);
        }
    }
    SetLastError(error);
    return data ? data : &last_resort;
}

void thread_data_end(void)
{
    if (slot == TLS_OUT_OF_INDEXES)
        return;
    free(TlsGetValue(slot));
    TlsSetValue(slot, NULL);
}

int *_errno(void) { return &thread_data()->error; }

struct start {
    unsigned(__stdcall *routine)(void *);
    void *argument;
};

static DWORD WINAPI begin_crt_thread(LPVOID argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    _endthreadex(start.routine(start.argument));
    return 0;
}

uintptr_t _beginthreadex(void *security, unsigned size, unsigned(__stdcall *routine)(void *),
                         void *argument, unsigned flags, unsigned *id)
{
    struct start *start = routine ? malloc(sizeof *start) : NULL;
    if (!routine)
        wrong(EINVAL);
    if (!start)
        return 0;
    *start = (struct start){ routine, argument };
    HANDLE thread = CreateThread(security, size, begin_crt_thread, start, flags, (DWORD *)id);
    if (!thread) {
        free(start);
        errno = EAGAIN;
    }
    return (uintptr_t)thread;
}

void _endthreadex(unsigned code) { ExitThread(code); }

/* --- Signals. --- */

static __p_sig_fn_t handlers[NSIG];

static bool is_signal(int number)
{
    return number == SIGINT || number == SIGILL || number == SIGFPE || number == SIGSEGV ||
           number == SIGTERM || number == SIGBREAK || number == SIGABRT || number == SIGABRT_COMPAT;
}

__p_sig_fn_t signal(int number, __p_sig_fn_t handler)
{
    if (!is_signal(number)) {
        errno = EINVAL;
        return SIG_ERR;
    }
    __p_sig_fn_t old = handlers[number];
    handlers[number] = handler;
    return old;
}

int raise(int number)
{
    if (!is_signal(number)) {
        errno = EINVAL;
        return -1;
    }
    __p_sig_fn_t handler = handlers[number];
    if (handler == SIG_IGN)
        return 0;
    handlers[number] = SIG_DFL;
    if (handler != SIG_DFL)
        handler(number);
    else if (number != SIGABRT && number != SIGABRT_COMPAT)
        _exit(3);
    return 0;
}

/* --- Time. --- */

#define SECONDS_TO_1970 11644473600ll

__time64_t _time64(__time64_t *to)
{
    FILETIME now;
    GetSystemTimeAsFileTime(&now);
    const long long units =
        (long long)((unsigned long long)now.dwHighDateTime << 32 | now.dwLowDateTime);
    const __time64_t seconds = units / 10000000 - SECONDS_TO_1970;
    if (to)
        *to = seconds;
    return seconds;
}

clock_t clock(void)
{
    LARGE_INTEGER now, frequency;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&now);
    return (clock_t)(now.QuadPart * CLOCKS_PER_SEC / frequency.QuadPart);
}
