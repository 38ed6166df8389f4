/* SPDX-License-Identifier: MIT */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *to, const void *from, size_t size);
/* memcpy from memory that ring 3 may change meanwhile: a race on purpose, of which a build with
 * KCSAN=1 says nothing, because whatever comes is as good. 8 bytes are read at once. */
void *memcpy_from_shared(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
/* Whether two ASCII strings are equal, whatever the case of letters. */
bool string_same(const char *a, const char *b);
