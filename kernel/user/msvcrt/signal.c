/* SPDX-License-Identifier: MIT */
/* C's signals. */
#include "msvcrt.h"
#include <signal.h>

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
