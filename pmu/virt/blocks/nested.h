/* SPDX-License-Identifier: MIT */
/* Nested paging: which of the guest's pages have repeated string instructions. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The address of the map for the next run; search: the one that finds such pages; watch: what is
 * known of pages must stay so. 0: none. */
uint64_t nested_root(bool search, bool watch);
/* Whether the maps reach so far. */
bool nested_reaches(uint64_t physical);
/* After a fetch faulted there; page: the bytes, NULL: no RAM; wide: of 64-bit code. Whether it may
 * have any; if not, it may be executed. */
bool nested_search(uint64_t physical, const uint8_t *page, bool wide);
/* Whether it is known to have any. */
bool nested_has_strings(uint64_t physical);
/* Searches it too, if it is unknown. Whether each write there changes what is known. */
bool nested_watch(uint64_t physical, const uint8_t *page);
extern uint64_t nested_changes; /* of what is known */
/* A device may have written, which nested paging has not seen. */
static inline void nested_device(void) { nested_changes++; }
/* From now on there is always a map, in which the page cannot be written but while it is open. */
void nested_guard(uint64_t physical);
void nested_open(bool open);
/* The guest wrote there, or the host is about to for it. */
void nested_written(uint64_t physical);
