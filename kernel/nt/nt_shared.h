/* SPDX-License-Identifier: MIT */
/* KUSER_SHARED_DATA: a page that ring 3 and drivers read at fixed addresses, without a call. Only
 * the fields that are filled have names. Shared by the kernel and ring 3. Source: ntddk.h. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define SHARED_DATA_USER 0x7ffe0000ull
#define SHARED_DATA_KERNEL 0xfffff78000000000ull

/* The upper half is stored twice: a reader of 32 bits compares the two. */
struct system_time {
    uint32_t low, high1, high2;
};

struct shared_data {
    uint32_t tick_count_low, tick_count_multiplier; /* milliseconds of a tick, << 24 */
    struct system_time interrupt_time, system_time, time_zone_bias; /* 100 ns */
    uint16_t image_number_low, image_number_high;
    uint16_t system_root[260];
    uint8_t gap1[0x260 - 0x238];
    uint32_t build, product_type;
    uint8_t product_type_valid, gap2[3];
    uint32_t major, minor;
    uint8_t processor_features[64];
    uint8_t gap3[0x2e8 - 0x2b4];
    uint32_t physical_pages;
    uint8_t gap4[0x300 - 0x2ec];
    uint64_t qpc_frequency;
    uint8_t gap5[0x320 - 0x308];
    struct system_time tick_count;
    uint32_t gap6, cookie;
    uint8_t gap7[0x3c0 - 0x334];
    uint32_t active_processors;
    uint16_t active_groups;
    uint8_t gap8[0x3d8 - 0x3c6];
    uint64_t enabled_features, volatile_features; /* XState */
    uint32_t xstate_size, xstate_control;
    struct {
        uint32_t offset, size;
    } xstate_features[64];
};
_Static_assert(offsetof(struct shared_data, system_time) == 0x14, "ntddk.h");
_Static_assert(offsetof(struct shared_data, system_root) == 0x30, "ntddk.h");
_Static_assert(offsetof(struct shared_data, major) == 0x26c, "ntddk.h");
_Static_assert(offsetof(struct shared_data, processor_features) == 0x274, "ntddk.h");
_Static_assert(offsetof(struct shared_data, tick_count) == 0x320, "ntddk.h");
_Static_assert(offsetof(struct shared_data, cookie) == 0x330, "ntddk.h");
_Static_assert(offsetof(struct shared_data, enabled_features) == 0x3d8, "ntddk.h");
