/* SPDX-License-Identifier: MIT */
/* Data of each thread, and threads made by C's own functions. */
#include "msvcrt.h"
#include <process.h>

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
        data = calloc(1, sizeof *data);
        if (data) {
            data->random = 1;
            TlsSetValue(slot, data);
        }
    }
    SetLastError(error);
    return data ? data : &last_resort;
}

void thread_data_end(void)
{
    struct thread_data *data = slot == TLS_OUT_OF_INDEXES ? NULL : TlsGetValue(slot);
    if (data)
        free(data->time);
    free(data);
    if (data)
        TlsSetValue(slot, NULL);
}

int *_errno(void) { return &thread_data()->error; }
unsigned long *__doserrno(void) { return &thread_data()->dos_error; }

struct start {
    unsigned(__stdcall *routine)(void *);
    void(__cdecl *plain)(void *);
    void *argument;
};

static DWORD WINAPI begin_crt_thread(LPVOID argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    if (start.routine)
        _endthreadex(start.routine(start.argument));
    start.plain(start.argument);
    _endthreadex(0);
    return 0;
}

static HANDLE make_crt_thread(struct start start, void *security, unsigned size, unsigned flags,
                              unsigned *id)
{
    if (!start.routine && !start.plain) {
        wrong(EINVAL);
        return NULL;
    }
    struct start *argument = malloc(sizeof *argument);
    if (!argument)
        return NULL;
    *argument = start;
    HANDLE thread = CreateThread(security, size, begin_crt_thread, argument, flags, (DWORD *)id);
    if (!thread) {
        free(argument);
        errno = EAGAIN;
    }
    return thread;
}

uintptr_t _beginthreadex(void *security, unsigned size, unsigned(__stdcall *routine)(void *),
                         void *argument, unsigned flags, unsigned *id)
{
    struct start start = { routine, NULL, argument };
    return (uintptr_t)make_crt_thread(start, security, size, flags, id);
}

/* NT: the handle stays open; Windows closes it when the thread ends. */
uintptr_t _beginthread(void(__cdecl *routine)(void *), unsigned size, void *argument)
{
    struct start start = { NULL, routine, argument };
    HANDLE thread = make_crt_thread(start, NULL, size, 0, NULL);
    return thread ? (uintptr_t)thread : (uintptr_t)-1;
}

void _endthreadex(unsigned code) { ExitThread(code); }
void _endthread(void) { ExitThread(0); }

char *strtok(char *text, const char *set)
{
    char **at = &thread_data()->token;
    return text || *at ? strtok_s(text, set, at) : NULL;
}

wchar_t *wcstok(wchar_t *text, const wchar_t *set)
{
    wchar_t **at = &thread_data()->wide_token;
    return text || *at ? wcstok_s(text, set, at) : NULL;
}

static const char *message(int error)
{
    static const char *const texts[] = {
        [0] = "No error",
        [EPERM] = "Operation not permitted",
        [ENOENT] = "No such file or directory",
        [EINTR] = "Interrupted function call",
        [EIO] = "Input/output error",
        [EBADF] = "Bad file descriptor",
        [EAGAIN] = "Resource temporarily unavailable",
        [ENOMEM] = "Not enough space",
        [EACCES] = "Permission denied",
        [EFAULT] = "Bad address",
        [EBUSY] = "Resource device",
        [EEXIST] = "File exists",
        [EINVAL] = "Invalid argument",
        [ENOSPC] = "No space left on device",
        [ESPIPE] = "Invalid seek",
        [EDOM] = "Domain error",
        [ERANGE] = "Result too large",
        [EDEADLK] = "Resource deadlock avoided",
        [ENOSYS] = "Function not implemented",
        [EILSEQ] = "Illegal byte sequence",
    };
    bool known = error >= 0 && error < (int)(sizeof texts / sizeof texts[0]) && texts[error];
    return known ? texts[error] : "Unknown error";
}

char *strerror(int error) { return strcpy(thread_data()->message, message(error)); }
