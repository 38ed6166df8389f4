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

/* --- Exceptions as signals. --- */

static int signal_of(unsigned code)
{
    switch (code) {
    case STATUS_ACCESS_VIOLATION: return SIGSEGV;
    case STATUS_ILLEGAL_INSTRUCTION:
    case STATUS_PRIVILEGED_INSTRUCTION: return SIGILL;
    case STATUS_FLOAT_DENORMAL_OPERAND:
    case STATUS_FLOAT_DIVIDE_BY_ZERO:
    case STATUS_FLOAT_INEXACT_RESULT:
    case STATUS_FLOAT_INVALID_OPERATION:
    case STATUS_FLOAT_OVERFLOW:
    case STATUS_FLOAT_STACK_CHECK:
    case STATUS_FLOAT_UNDERFLOW: return SIGFPE;
    default: return 0;
    }
}

/* The filter around main: EXCEPTION_CONTINUE_EXECUTION after a signal's handler, otherwise
 * EXCEPTION_CONTINUE_SEARCH, so that nobody has handled the exception. */
int _seh_filter_exe(unsigned long code, struct _EXCEPTION_POINTERS *pointers)
{
    int number = signal_of(code);
    (void)pointers;
    if (!number || handlers[number] == SIG_DFL)
        return EXCEPTION_CONTINUE_SEARCH;
    if (handlers[number] != SIG_IGN)
        raise(number);
    return EXCEPTION_CONTINUE_EXECUTION;
}
