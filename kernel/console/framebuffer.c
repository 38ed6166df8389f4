/* SPDX-License-Identifier: MIT */
/* Characters as pixels of 32 bits. Each dot of the font is sx by sy pixels, as large as 80 columns
 * allow. Writes only: reading a framebuffer is slow. */
#include "kernel/base/layout.h"
#include "kernel/console/screen.h"

#define CELL_WIDTH 6
#define CELL_HEIGHT 10 /* the font's 8 lines with one above and one below */

static struct screen to;
static unsigned sx, sy;
static uint32_t palette[16];

static uint32_t colour(unsigned red, unsigned green, unsigned blue)
{
    return red << to.red_at | green << to.green_at | blue << to.blue_at;
}

/* VGA's sixteen colours: an attribute means the same in both kinds of screen. */
static void make_palette(void)
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned low = i & 8 ? 0x55 : 0, high = low + 0xaa;
        palette[i] = colour(i & 4 ? high : low, i & 2 ? high : low, i & 1 ? high : low);
    }
}

unsigned framebuffer_columns(unsigned width) { return width / (CELL_WIDTH * sx); }

void framebuffer_init(const struct screen *screen, unsigned *columns, unsigned *rows)
{
    to = *screen;
    make_palette();
    sx = to.width / (80 * CELL_WIDTH);
    if (sx == 0)
        sx = 1;
    sy = sx == 1 && to.height >= 2 * 24 * CELL_HEIGHT ? 2 : sx;
    *columns = framebuffer_columns(to.width);
    *rows = to.height / (CELL_HEIGHT * sy);
}

static void draw_line(uint32_t *p, unsigned dots, uint32_t ink, uint32_t paper)
{
    for (unsigned dot = 0; dot < CELL_WIDTH; dot++)
        for (unsigned x = 0; x < sx; x++)
            *p++ = dots << dot & 0x10 ? ink : paper;
}

static uint8_t glyph_line(uint8_t c, unsigned line)
{
    return c > ' ' && c <= '~' && line >= 1 && line <= 8 ? screen_font[c - ' '][line - 1] : 0;
}

void framebuffer_draw(unsigned column, unsigned row, uint16_t cell)
{
    uint8_t c = (uint8_t)cell;
    uint64_t at = DIRECT_MAP + to.address + (uint64_t)row * CELL_HEIGHT * sy * to.pitch +
                  column * CELL_WIDTH * sx * 4;
    for (unsigned y = 0; y < CELL_HEIGHT * sy; y++)
        draw_line((uint32_t *)(at + (uint64_t)y * to.pitch), glyph_line(c, y / sy),
                  palette[cell >> 8 & 15], palette[cell >> 12]);
}

void framebuffer_square(unsigned x, unsigned y, unsigned side, unsigned colour)
{
    for (unsigned line = 0; line < side; line++) {
        uint32_t *p = (uint32_t *)(DIRECT_MAP + to.address + (uint64_t)(y + line) * to.pitch) + x;
        for (unsigned i = 0; i < side; i++)
            p[i] = palette[colour & 15];
    }
}
