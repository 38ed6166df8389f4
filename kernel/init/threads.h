/* SPDX-License-Identifier: MIT */
/* The threads of a program that hangs. */
#pragma once
#include "kernel/ke/object.h"

/* From here on the current thread answers who asks by an NMI. */
void threads_watch(void);
/* Waits until the object is signaled, and prints a line for each thread whenever it is asked. */
void threads_wait(struct object *object);
