/* SPDX-License-Identifier: MIT */
/* That a build with KASAN=1 notices what it is for: each kind of wrong access, planted, at its
 * address. */
#include "kernel/base/sanitize/kasan.h"
#include "kernel/driver/pool.h"
#include "tests/harness/kernel.h"

static char global[10];
static volatile char sink;

static void begin_try(void)
{
    kasan_caught.count = 0;
    kasan_caught.wanted = true;
}

static void expect(const volatile char *at, bool write)
{
    begin_try();
    if (write)
        *(volatile char *)at = 0;
    else
        sink = *at;
    kasan_caught.wanted = false;
    CHECK_EQ(kasan_caught.count, 1);
    CHECK_EQ(kasan_caught.address, (uint64_t)at);
}

static void expect_none(const volatile char *at)
{
    begin_try();
    sink = *at;
    kasan_caught.wanted = false;
    CHECK_EQ(kasan_caught.count, 0);
}

TEST(kasan, pool,
     "a read after an allocation of pool is found, and one of freed pool; of its last byte none is")
{
    char *p = pool_allocate(3001);
    REQUIRE(p != NULL);
    expect_none(p + 3000);
    expect(p + 3001, false);
    pool_free(p);
    expect(p, false);
}

TEST(kasan, page, "accesses before and after allocated pages are found")
{
    char *p = phys_alloc(2);
    REQUIRE(p != NULL);
    expect_none(p + 2 * PAGE_SIZE - 1);
    expect(p + 2 * PAGE_SIZE, true);
    expect(p - 1, false);
    phys_free(p, 2);
}

TEST(kasan, page_freed, "a write to a freed page is found")
{
    char *p = phys_alloc(1);
    REQUIRE(p != NULL);
    phys_free(p, 1);
    expect(p + 5, true);
    CHECK_EQ(kasan_caught.shadow, KASAN_PAGE);
    kasan_unpoison(p, PAGE_SIZE); /* what the write has left is nobody's */
    p[5] = 0;
    kasan_poison(p, PAGE_SIZE, KASAN_PAGE);
}

TEST(kasan, stack, "an access beside a variable on the stack is found")
{
    volatile char local[10];
    volatile char *p = local;
    asm volatile("" : "+r"(p));
    p[9] = 0;
    expect_none(p + 9);
    expect(p + 10, false);
    expect(p - 1, false);
}

TEST(kasan, global, "a read after a global variable is found")
{
    volatile char *p = global;
    asm volatile("" : "+r"(p));
    expect_none(p + 9);
    expect(p + 10, false);
}

TEST(kasan, strings, "a copy that is a byte too long is found")
{
    char *p = pool_allocate(3001), to[16];
    REQUIRE(p != NULL);
    begin_try();
    memcpy(to, p + 2990, 12);
    kasan_caught.wanted = false;
    asm volatile("" : : "r"(to) : "memory");
    CHECK_EQ(kasan_caught.count, 1);
    CHECK_EQ(kasan_caught.address, (uint64_t)p + 3001);
    pool_free(p);
}
