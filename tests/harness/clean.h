/* SPDX-License-Identifier: MIT */
/* What tests take: what there was before one, what it left, and the one place where that is
 * put back by force, so that the next test finds what this one found. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Once, before the first test. */
void clean_init(void);
/* Before a test: remembers what there is. */
void clean_begin(void);
/* After it, its threads ended or not. Puts back what it left and says so in one line. False: it
 * left something. A failed test also gets every processor's PMU and interrupt table as they were at
 * boot: what it wrote there is not known. */
bool clean_end(bool failed);
/* Ends every thread that was made since clean_init, politely, then by force. Panics where one
 * cannot be ended, because it holds a spin lock: nothing could be trusted after that. */
void clean_threads(void);
/* How many threads live, idle threads excluded; how many sources were added. */
uint64_t clean_thread_count(void);
uint64_t clean_sources(void);
/* Stops every trace session, and frees those that nobody reads. */
void clean_sessions(void);
/* Within a test: what there is, and whether it is the same again, or soon; if not, prints what
 * differs. */
#define CLEAN_KINDS 24
void clean_count(uint64_t *found);
bool clean_unchanged(const uint64_t *before, bool pages);
