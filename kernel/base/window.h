/* SPDX-License-Identifier: MIT */
/* WINDOW(name): window_name is the address of the instruction that follows. It makes none itself.
 * Tests force an NMI, or a switch by an interrupt, at each instruction between two of them. */
#pragma once

#define WINDOW(name)                                                                               \
    asm volatile("1:\n.pushsection .rodata.windows,\"a\"\n.globl window_" #name "\nwindow_" #name  \
                 ": .quad 1b\n.popsection"                                                         \
                 :                                                                                 \
                 :                                                                                 \
                 : "memory")
