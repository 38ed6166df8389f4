/* SPDX-License-Identifier: MIT */
/* A program's own check fails: INT 29h ends it, and no handler is asked. */
#include <stdio.h>
#include <windows.h>

static LONG CALLBACK handle(EXCEPTION_POINTERS *pointers)
{
    fprintf(stderr, "a handler was asked: 0x%lx\n", pointers->ExceptionRecord->ExceptionCode);
    ExitProcess(0);
}

int main(void)
{
    AddVectoredExceptionHandler(1, handle);
    SetUnhandledExceptionFilter(handle);
    fprintf(stderr, "before %d\n", IsProcessorFeaturePresent(PF_FASTFAIL_AVAILABLE));
    __asm__ volatile("int $0x29" : : "c"(7)); /* FAST_FAIL_FATAL_APP_EXIT */
    fprintf(stderr, "after\n");
    return 0;
}
