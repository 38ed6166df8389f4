/* SPDX-License-Identifier: MIT */
/* A security cookie and a load configuration as Microsoft's compiler makes them; drivers.t enters
 * the latter into the image's directories. */
#pragma once
#define DEFAULT_COOKIE 0x2b992ddfa232ull

static volatile unsigned long long cookie = DEFAULT_COOKIE;
struct {
    unsigned size;
    char gap[0x54];
    volatile unsigned long long *cookie;
} load_config = { 0x60, { 0 }, &cookie };

/* The loader has set it, to something else of 48 bits. */
static int cookie_is_set(void)
{
    return *load_config.cookie != DEFAULT_COOKIE && !(*load_config.cookie >> 48);
}
