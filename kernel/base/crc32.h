/* SPDX-License-Identifier: MIT */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* CRC-32 as of Ethernet. crc: 0 at first, then the result for the bytes before. */
uint32_t crc32(uint32_t crc, const void *bytes, size_t size);
