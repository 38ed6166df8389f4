/* SPDX-License-Identifier: MIT */
/* The stubs of the services, each under its Nt and its Zw name. */
#define STUB "\n\tmov %rcx, %r10\n\tmov $"
#define CALL ", %eax\n\tsyscall\n\tret\n"
#define NT_SERVICE(number, name, count)                                                            \
    asm(".text\n.globl Nt" #name ", Zw" #name "\nNt" #name ":\nZw" #name ":" STUB #number CALL);
#define OWN_SERVICE(number, name, routine, count)                                                  \
    asm(".text\n.globl " #name "\n" #name ":" STUB #number CALL);
#include "kernel/nt/service_list.h"
