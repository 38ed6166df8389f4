/* SPDX-License-Identifier: MIT */
/* The formats that the kernel prints by. */
#include "tests/harness/kernel.h"

#define IS_TEXT(wanted, ...)                                                                       \
    do {                                                                                           \
        char text[48];                                                                             \
        size_t length = print_to(text, sizeof text, __VA_ARGS__);                                  \
        CHECK_EQ(length, strlen(wanted));                                                          \
        CHECK(!strcmp(text, wanted));                                                              \
    } while (0)

TEST(format, kinds, "numbers, text, characters and pointers, padded as their formats say")
{
    IS_TEXT("-7|42|4294967295", "%d|%u|%u", -7, 42u, ~0u);
    IS_TEXT("-5|ffffffffffffffff|beef", "%ld|%lx|%x", -5l, ~0ul, 0xbeefu);
    IS_TEXT("   42|42   |00042|     7", "%5u|%-5u|%05u|%*u", 42u, 42u, 42u, 6u, 7u);
    IS_TEXT("   ab|ab   |c", "%5s|%-5s|%c", "ab", "ab", 'c');
    IS_TEXT("000000000000f00d|123456", "%p|%zu", (void *)0xf00d, (size_t)123456);
    IS_TEXT("50 %, %!", "%u %%, %%%c", 50u, '!');
}

TEST(format, ends, "a format that ends after its percent sign; a text that has no room")
{
    static const char open[] = "100 %";
    char text[6];
    const char *volatile format = open; /* compilers refuse it */
    print_to(text, sizeof text, format, 0);
    CHECK(!strcmp(text, open));
    print_to(text, sizeof text, "%s", "too long");
    CHECK(!strcmp(text, "too l"));
}
