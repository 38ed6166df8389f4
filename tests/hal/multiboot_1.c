/* SPDX-License-Identifier: MIT */
/* What a loader of multiboot 1 says, as it should be and as it should not. */
#include "boot/loader.h"
#include "boot/multiboot.h"
#include "kernel/base/layout.h"
#include "tests/harness/kernel.h"

static struct boot_info info;
static struct mb1_info mb1;
static uint8_t map[128];
static unsigned map_length;

static uint32_t physical(const void *p) { return (uint32_t)((uint64_t)p - KERNEL_VMA); }

static void read_mb1(uint32_t flags)
{
    memset(&info, 0, sizeof info);
    mb1.flags = flags;
    loader_read(&info, MB1_BOOT_MAGIC, physical(&mb1));
}

static void put_mb1_map(uint64_t start, uint64_t length, uint32_t size)
{
    const struct mb1_map_entry e = { size, start, length, 1 };
    memcpy(map + map_length, &e, sizeof e);
    map_length += (unsigned)sizeof size + size;
}

TEST(multiboot_1, map,
     "the map of multiboot 1 is read entry by entry by each entry's length, up to the last "
     "address; without a map the two sizes of memory")
{
    map_length = 0;
    put_mb1_map(0, 0x9000, 24);
    put_mb1_map(-0x1000ul, 0x2000, 20);
    put_mb1_map(0x100000, 0x3000, 19);
    put_mb1_map(0x200000, 0x3000, 20);
    mb1 = (struct mb1_info){ .mem_lower = 640, .mem_upper = 5 << 20 };
    mb1.mmap_addr = physical(map);
    mb1.mmap_length = map_length;
    read_mb1(MB1_HAS_MAP | MB1_HAS_MEMORY);
    CHECK_EQ(info.memory_count, 2);
    CHECK(info.memory[0].size == 0x9000 && info.memory[1].start == -0x1000ul);
    CHECK_EQ(info.memory[1].size, 0x1000);
    read_mb1(MB1_HAS_MEMORY);
    CHECK_EQ(info.memory_count, 2);
    CHECK(info.memory[0].size == 640 << 10 && info.memory[1].start == 1 << 20);
    CHECK_EQ(info.memory[1].size, 5ul << 30);
}
