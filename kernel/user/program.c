/* SPDX-License-Identifier: MIT */
/* Where a user's program begins: its global constructors, then main. Only in the image that `make run PROGRAM=` links;
 * elsewhere the kernel finds no user_program. */
#include "kernel/user/stdlib.h"
#include "windows.h"

typedef void (*constructor)(void);

extern const constructor user_ctors[], user_ctors_end[];
int main(int argc, char **argv);

void user_program(uint64_t unused);
void user_program(uint64_t unused)
{
    static char name[] = "program.exe", *arguments[] = { name, NULL };
    (void)unused;
    for (const constructor *c = user_ctors; c < user_ctors_end; c++)
        (*c)();
    exit(main(1, arguments));
}
