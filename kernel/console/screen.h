/* SPDX-License-Identifier: MIT */
/* The console that people look at: VGA text or a linear framebuffer, whatever the loader left.
 * Output only; nothing happens where there is no screen. Callers hold print's lock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/base/boot_info.h"

/* Colours of characters, as VGA has them. */
enum {
    SCREEN_GREY = 0x07,
    SCREEN_GREEN = 0x0a,
    SCREEN_RED = 0x0c,
    SCREEN_YELLOW = 0x0e,
    SCREEN_BAR = 0x1f,
    SCREEN_ON_GREEN = 0x2f,
    SCREEN_ON_RED = 0x4f
};

/* Takes this screen, which the page tables reach, and draws. False: there is none, or it is too
 * small. */
bool screen_init(const struct screen *screen);
/* Prints which screen there is, or why none; `none` is why the loader has none. */
void screen_print(const struct screen *screen, const char *none);
/* What scrolling has cost so far, in stores of 8 bytes: 0 where characters are stored. */
void screen_scrolled(unsigned *scrolls, uint64_t *stores);
/* Clears the screen; text fills it from edge to edge again. */
void screen_clear(void);
/* Whether a picture of so many squares a side, at most 64, leaves space for text. */
bool screen_picture_fits(unsigned side);
/* Draws one at the right edge, bit x of picture[y]: that square is dark; until screen_clear, lines
 * end before it and must not scroll. Nothing happens where it does not fit. */
void screen_picture(const uint64_t *picture, unsigned side);
/* Whether a line of so many characters, and one more below it, can be printed without scrolling. */
bool screen_has_room(size_t length);
/* Sets what decides the colour of a line: it gets each line when that is complete, cut to
 * SCREEN_LINE_MAX, and must not print. At first, and with NULL, all are grey. */
#define SCREEN_LINE_MAX 120
void screen_color_by(uint8_t (*color_of)(const char *line));

/* --- framebuffer.c --- */

struct framebuffer {
    struct screen to;
    unsigned sx, sy; /* pixels of a dot */
    uint32_t palette[16];
};

/* Says how many characters fit; draws one, by so many stores of 8 bytes. */
void framebuffer_init(struct framebuffer *f, const struct screen *screen, unsigned *columns,
                      unsigned *rows);
void framebuffer_draw(const struct framebuffer *f, unsigned column, unsigned row, uint16_t cell);
unsigned framebuffer_stores(const struct framebuffer *f);
/* How many characters fit into so many pixels; draws a square of one of VGA's colours. */
unsigned framebuffer_columns(const struct framebuffer *f, unsigned width);
void framebuffer_square(const struct framebuffer *f, unsigned x, unsigned y, unsigned side,
                        unsigned colour);
/* font.c */
extern const uint8_t screen_font[95][8];
