/* SPDX-License-Identifier: MIT */
/* A program in which programs.t changes two names, of a function and of a library: it starts
 * without them, and ends when it calls one or reads it. */
#include <stdio.h>
#include <windows.h>

extern int *__imp_lstrcmpiA;

int main(int argc, char **argv)
{
    const char what = argc > 1 ? argv[1][0] : 0;
    FARPROC found = GetProcAddress(GetModuleHandleA("kernel32.dll"), "lstrcmpiA");
    printf("%s\n", found ? "found" : "not found");
    fflush(stdout);
    if (what == 'c')
        printf("%d\n", lstrcmpiA("a", "b"));
    if (what == 'r')
        printf("%d\n", *__imp_lstrcmpiA);
    if (what == 'l')
        printf("%lu\n", timeGetTime());
    return 0;
}
