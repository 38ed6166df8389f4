/* SPDX-License-Identifier: MIT */
/* Characters as pixels of 32 bits. Each dot of the font is sx by sy pixels, as large as 80 columns
 * allow. Writes only, 8 bytes at a time: reading a framebuffer is slow. */
#include "kernel/base/layout.h"
#include "kernel/console/screen.h"

#define CELL_WIDTH 6
#define CELL_HEIGHT 10 /* the font's 8 lines with one above and one below */

static uint32_t colour(const struct screen *to, unsigned red, unsigned green, unsigned blue)
{
    return red << to->red_at | green << to->green_at | blue << to->blue_at;
}

/* VGA's sixteen colours: an attribute means the same in both kinds of screen. */
static void make_palette(struct framebuffer *f)
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned low = i & 8 ? 0x55 : 0, high = low + 0xaa;
        f->palette[i] = colour(&f->to, i & 4 ? high : low, i & 2 ? high : low, i & 1 ? high : low);
    }
}

unsigned framebuffer_columns(const struct framebuffer *f, unsigned width)
{
    return width / (CELL_WIDTH * f->sx);
}

void framebuffer_init(struct framebuffer *f, const struct screen *screen, unsigned *columns,
                      unsigned *rows)
{
    f->to = *screen;
    make_palette(f);
    f->sx = screen->width / (80 * CELL_WIDTH);
    if (f->sx == 0)
        f->sx = 1;
    f->sy = f->sx == 1 && screen->height >= 2 * 24 * CELL_HEIGHT ? 2 : f->sx;
    *columns = framebuffer_columns(f, screen->width);
    *rows = screen->height / (CELL_HEIGHT * f->sy);
}

/* Two pixels; a line of a framebuffer may begin at any multiple of 4. */
typedef uint64_t __attribute__((aligned(4), may_alias)) pair;

/* One line of a cell's pixels: 6 * sx are an even number. */
static void draw_line(const struct framebuffer *f, pair *to, unsigned dots, uint32_t ink,
                      uint32_t paper)
{
    unsigned dot = 0, left = f->sx;
    for (unsigned i = 0; i < CELL_WIDTH * f->sx; i += 2) {
        uint64_t two = 0;
        for (unsigned half = 0; half < 64; half += 32) {
            two |= (uint64_t)(dots << dot & 0x10 ? ink : paper) << half;
            if (--left == 0)
                dot++, left = f->sx;
        }
        *to++ = two;
    }
}

static uint8_t glyph_line(uint8_t c, unsigned line)
{
    return c > ' ' && c <= '~' && line >= 1 && line <= 8 ? screen_font[c - ' '][line - 1] : 0;
}

unsigned framebuffer_stores(const struct framebuffer *f)
{
    return CELL_WIDTH * f->sx / 2 * CELL_HEIGHT * f->sy;
}

void framebuffer_draw(const struct framebuffer *f, unsigned column, unsigned row, uint16_t cell)
{
    uint8_t c = (uint8_t)cell;
    uint64_t at = DIRECT_MAP + f->to.address + (uint64_t)row * CELL_HEIGHT * f->sy * f->to.pitch +
                  column * CELL_WIDTH * f->sx * 4;
    for (unsigned y = 0; y < CELL_HEIGHT * f->sy; y++)
        draw_line(f, (pair *)(at + (uint64_t)y * f->to.pitch), glyph_line(c, y / f->sy),
                  f->palette[cell >> 8 & 15], f->palette[cell >> 12]);
}

void framebuffer_square(const struct framebuffer *f, unsigned x, unsigned y, unsigned side,
                        unsigned colour)
{
    for (unsigned line = 0; line < side; line++) {
        uint32_t *p =
            (uint32_t *)(DIRECT_MAP + f->to.address + (uint64_t)(y + line) * f->to.pitch) + x;
        for (unsigned i = 0; i < side; i++)
            p[i] = f->palette[colour & 15];
    }
}
