/* SPDX-License-Identifier: MIT */
/* A second thread writes where nothing is: that ends the process, with the status and the address.
 * With an argument the program calls NULL. */
#include <stdio.h>
#include <windows.h>

static DWORD WINAPI fault(LPVOID address)
{
    *(volatile int *)address = 1;
    return 0;
}

int main(int count, char **unused)
{
    void (*volatile nothing)(void) = NULL;
    if (count > 1)
        nothing();
    fprintf(stderr, "before\n");
    CreateThread(NULL, 0, fault, (LPVOID)0x123, 0, NULL);
    Sleep(1000);
    printf("never\n");
    return 0;
}
