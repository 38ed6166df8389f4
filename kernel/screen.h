/* SPDX-License-Identifier: MIT */
/* The console that people look at: VGA text or a linear framebuffer, whatever the loader left. Output only; nothing
 * happens where there is no screen. Callers hold print's lock. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { SCREEN_NONE, SCREEN_TEXT, SCREEN_PIXELS };

struct screen {
    uint64_t address;                  /* physical */
    uint32_t pitch, width, height;     /* bytes of a line; pixels, or characters */
    uint8_t kind;                      /* SCREEN_... */
    uint8_t red_at, green_at, blue_at; /* lowest bit of each 8-bit colour in a pixel of 32 bits */
};

/* What is there; drawn at once if the boot page tables reach it. False if it is nothing, or too small. */
bool screen_init(const struct screen *screen);
/* Once vm.c works: maps a framebuffer that lies above what the boot page tables reach. */
void screen_map(void);
void screen_put(char c);
/* Shows `text` in the bottom line, which does not scroll. */
void screen_status(const char *text);
/* Clears the screen for the page that stays; what it shows does not count as failures. */
void screen_last_page(void);
/* The n-th line that was shown as a failure, cut to a length; NULL behind the last, or the last that was kept. */
const char *screen_failure(unsigned n);
unsigned screen_failures(void);

/* framebuffer.c. How many characters fit, and one of them. */
void framebuffer_init(const struct screen *screen, unsigned *columns, unsigned *rows);
void framebuffer_draw(unsigned column, unsigned row, uint16_t cell);
/* font.c */
extern const uint8_t screen_font[95][8];
