/* SPDX-License-Identifier: MIT */
/* What the loader says: its words, and its tables as they should be and as they should not. */
#include "boot/loader.h"
#include "boot/multiboot.h"
#include "kernel/base/layout.h"
#include "tests/harness/kernel.h"

#define CAPACITY 8192

static struct boot_info info;
static struct {
    unsigned length;
    uint8_t bytes[CAPACITY] __attribute__((aligned(8)));
} tags;

/* --- The command line. --- */

static bool option_is(const char *name, const char *wanted)
{
    char value[16];
    return boot_option(name, value, sizeof value) && strcmp(value, wanted) == 0;
}

static void words(void)
{
    char value[16];
    CHECK(boot_flag("a") && boot_flag("verboser") && boot_flag("long"));
    CHECK(!boot_flag("verbose") && !boot_flag("lon") && !boot_flag("longer") &&
          !boot_flag("tests"));
    CHECK(option_is("tests", "yy") && option_is("verbose", "1") && option_is("none", ""));
    CHECK(!boot_option("a", value, sizeof value) && !boot_option("test", value, sizeof value));
    CHECK(!boot_option("testsx", value, sizeof value) && !boot_option("long", value, sizeof value));
    memset(value, '#', sizeof value);
    CHECK(boot_option("vpmu", value, 4) && strcmp(value, "abc") == 0);
    CHECK_EQ(value[4], '#');
    CHECK(boot_option("vpmu", value, 1) && !value[0]);
    CHECK_EQ(value[1], 'b');
}

TEST(boot_info, words,
     "words and options of the command line are found whole, of equal ones the last; a value is "
     "cut to its buffer")
{
    static char kept[BOOT_LINE_MAX];
    memcpy(kept, boot_info.line, sizeof kept);
    print_to(boot_info.line, BOOT_LINE_MAX,
             "  a tests=x vpmu=abcdefgh  verbose=1 verboser none= long  tests=yy");
    words();
    memcpy(boot_info.line, kept, sizeof kept);
}

/* --- Tables. --- */

static uint32_t physical(const void *p) { return (uint32_t)((uint64_t)p - KERNEL_VMA); }

/* A tag with these bytes; it says that it has `more` than are there. */
static void put_tag(uint32_t type, const void *bytes, uint32_t count, uint32_t more)
{
    const uint32_t head[2] = { type, (uint32_t)sizeof head + count + more };
    memcpy(tags.bytes + tags.length, head, sizeof head);
    memcpy(tags.bytes + tags.length + sizeof head, bytes, count);
    tags.length = (tags.length + (unsigned)sizeof head + count + 7) & ~7u;
}

static void begin_tags(void)
{
    memset(&tags, 0, sizeof tags);
    memset(&info, 0, sizeof info);
    tags.length = 8;
}

static void read_tags(void)
{
    *(uint32_t *)(void *)tags.bytes = tags.length;
    loader_read(&info, MB2_BOOT_MAGIC, physical(tags.bytes));
}

static void put_line(const char *line)
{
    put_tag(MB2_TAG_LINE, line, (uint32_t)strlen(line) + 1, 0);
}

TEST(boot_info, modules,
     "modules beyond the table's capacity are left out and counted; those without a byte are none")
{
    struct {
        uint32_t start, end;
        char name[4];
    } module = { 0x1000, 0x1000, "m" };
    begin_tags();
    put_tag(MB2_TAG_MODULE, &module, sizeof module, 0);
    module.end = 0x800;
    put_tag(MB2_TAG_MODULE, &module, sizeof module, 0);
    put_tag(MB2_TAG_MODULE, &module, 4, 0);
    for (unsigned i = 0; i < BOOT_MODULES_MAX + 2; i++) {
        module.end = 0x2000 + i;
        put_tag(MB2_TAG_MODULE, &module, sizeof module, 0);
    }
    read_tags();
    CHECK_EQ(info.module_count, BOOT_MODULES_MAX);
    CHECK_EQ(info.modules_left_out, 2);
    CHECK_EQ(info.modules[0].end, 0x2000);
    CHECK(strcmp(info.modules[BOOT_MODULES_MAX - 1].line, "m") == 0);
    CHECK(!info.efi);
}

/* Entries of the map as a later version may have them, longer than ours. */
struct long_entry {
    struct mb2_map_entry entry;
    uint64_t news;
};

static void put_map(unsigned count, uint32_t entry_size, uint32_t less)
{
    static struct {
        uint32_t size, version;
        struct long_entry entries[BOOT_MEMORY_MAX + 6];
    } map;
    map.size = entry_size;
    for (unsigned i = 0; i < count; i++)
        map.entries[i] =
            (struct long_entry){ { 0x100000ull * i, 0x1000, i % 4 == 3 ? 2 : 1, 0 }, ~0ull };
    put_tag(MB2_TAG_MAP, &map, 8 + count * (uint32_t)sizeof *map.entries - less, 0);
}

TEST(boot_info, memory,
     "usable memory, and the map with all types, are read entry by entry by each entry's length, "
     "until the table of regions is full")
{
    begin_tags();
    put_map(8, sizeof(struct long_entry), 0);
    read_tags();
    CHECK_EQ(info.memory_count, 6);
    CHECK_EQ(info.memory[3].start, 0x400000);
    CHECK_EQ(info.memory[3].size, 0x1000);
    CHECK_EQ(info.map_count, 8);
    CHECK(info.map[3].start == 0x300000 && info.map[3].type == 2);
    begin_tags();
    put_map(3, sizeof(struct long_entry), 1); /* the last byte is missing */
    read_tags();
    CHECK_EQ(info.memory_count, 2);
    begin_tags();
    put_map(3, sizeof(struct mb2_map_entry) - 1, 0);
    read_tags();
    CHECK_EQ(info.memory_count, 0);
    begin_tags();
    put_map(BOOT_MEMORY_MAX + 6, sizeof(struct long_entry), 0);
    put_map(BOOT_MEMORY_MAX + 6, sizeof(struct long_entry), 0);
    read_tags();
    CHECK_EQ(info.memory_count, BOOT_MEMORY_MAX);
    CHECK_EQ(info.map_count, BOOT_MEMORY_MAX);
    CHECK_EQ(info.module_count, 0);
}

/* --- Any bytes. --- */

#define SPOTS 6
#define AFTER 256 /* bytes that no tag has */

static void put_all(void)
{
    const uint32_t module[3] = { 0x1000, 0x3000, 'm' };
    const struct mb2_screen screen = { .pitch = 3200, .bits = 32, .kind = MB2_SCREEN_RGB };
    const uint8_t rsdp[36] = { 1, 2, 3 };
    begin_tags();
    put_line("verbose tests=clock*");
    put_tag(MB2_TAG_MODULE, module, sizeof module, 0);
    put_map(5, sizeof(struct mb2_map_entry), 0);
    put_tag(MB2_TAG_SCREEN, (const uint8_t *)&screen + 8, sizeof screen - 8, 0);
    put_tag(MB2_TAG_RSDP1, rsdp, 20, 0);
    put_tag(MB2_TAG_RSDP2, rsdp, sizeof rsdp, 0);
    put_tag(MB2_TAG_EFI64, rsdp, 8, 0);
    put_tag(MB2_TAG_MODULE, module, sizeof module, 0);
}

/* Some tag is the last one, and short. */
static void cut(uint64_t *state)
{
    unsigned at = 8, next = at;
    for (uint64_t n = test_random(state) % 8; n && next < tags.length; n--) {
        at = next;
        next += (((const struct mb2_tag *)(void *)(tags.bytes + at))->size + 7) & ~7u;
    }
    uint32_t size = (uint32_t)(8 + test_random(state) % 24);
    memcpy(tags.bytes + at + 4, &size, sizeof size);
    tags.length = at + size;
}

static void put_noise(uint64_t *state)
{
    if (test_random(state) % 4 == 0)
        cut(state);
    static const uint32_t some[] = { 0, 1, 7, 8, 9, 15, 16, 0x7fffffff, 0xfffffff8, 0xffffffff };
    for (unsigned n = 1 + test_random(state) % SPOTS; n; n--) {
        uint8_t *at = tags.bytes + 8 + test_random(state) % (tags.length - 8);
        uint32_t word = some[test_random(state) % ARRAY_SIZE(some)];
        unsigned spot = (unsigned)(at - tags.bytes) & ~7u;
        if (test_random(state) % 2)
            *at = (uint8_t)test_random(state);
        else
            memcpy(tags.bytes + spot + 4 * (test_random(state) % 2), &word, sizeof word);
    }
}

static bool is_line(const char *line)
{
    size_t n = 0;
    while (n < BOOT_LINE_MAX && line[n] >= ' ' && line[n] <= '~')
        n++;
    return n < BOOT_LINE_MAX && !line[n];
}

static bool is_sound(void)
{
    bool sound = is_line(info.line) && info.memory_count <= BOOT_MEMORY_MAX &&
                 info.map_count <= BOOT_MEMORY_MAX && info.module_count <= BOOT_MODULES_MAX &&
                 info.screen.kind <= SCREEN_PIXELS &&
                 (info.screen.red_at | info.screen.green_at | info.screen.blue_at) < 32;
    for (unsigned i = 0; sound && i < info.memory_count; i++)
        sound = info.memory[i].size != 0;
    for (unsigned i = 0; sound && i < info.module_count; i++)
        sound = info.modules[i].end > info.modules[i].start && is_line(info.modules[i].line);
    return sound;
}

TEST(boot_info, any_bytes,
     "tags with any bytes in them: what is read keeps to its bounds, and nothing after them is "
     "read; 200 times, 10,000 if `long`, from the seed of the word fuzz= [slow]")
{
    static struct boot_info other;
    uint64_t state = test_seed() + 1;
    for (unsigned round = 0; round < (test_long() ? 10000 : 200); round++) {
        put_all();
        put_noise(&state);
        memset(tags.bytes + tags.length, 0, AFTER);
        read_tags();
        memcpy(&other, &info, sizeof other);
        memset(&info, 0, sizeof info);
        memset(tags.bytes + tags.length, 0x11, AFTER);
        read_tags();
        if (CHECK(is_sound()) && CHECK(memcmp(&info, &other, sizeof info) == 0))
            continue;
        test_note("round %u of seed %lu", round, test_seed());
        break;
    }
}
