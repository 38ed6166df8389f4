/* SPDX-License-Identifier: MIT */
/* Windows programs: a process made of an image, with ntdll.dll beside it. */
#pragma once
#include "kernel/nt/nt.h"

struct image;
struct process;
struct thread;

/* Makes the process of a program, without a thread. NULL, or what is wrong, with the name of the
 * image that it is wrong with in *who. The caller has a reference. PASSIVE_LEVEL. */
const char *program_process(struct image *image, const char *line, struct process **process,
                            const char **who);
/* Makes the process of a program and its first thread, which runs ntdll's loader first. `line`: its
 * command line. Returns as program_process. */
const char *program_start(struct image *image, const char *line, struct process **process,
                          const char **who);
/* The symbol or export below an address of a process's images. False: there is none. */
bool program_symbol(const struct process *process, uint64_t address, char *text, size_t capacity);
