/* SPDX-License-Identifier: MIT */
/* A grid of characters with colours, and a copy of what the device shows. A line gets its colour
 * when it is complete; only cells that changed are drawn, a row at a time. When the grid is full it
 * moves up by a quarter: seldom, because devices are slow. Everything here is guarded by print's
 * lock. */
#include "kernel/console/screen.h"
#include "kernel/base/layout.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"

#define COLUMNS_MAX 160
#define ROWS_MAX 100

static struct screen device;
static struct framebuffer pixels; /* of a device of that kind */
static unsigned columns, rows;    /* of scrolling text; the status line is row `rows` */
static unsigned wide; /* of the columns, those that text fills; a picture has the others */
static unsigned column, row, line_row; /* next cell; where the current line began */
static uint16_t wanted[ROWS_MAX][COLUMNS_MAX], shown[ROWS_MAX][COLUMNS_MAX];
static unsigned dirty_from = ROWS_MAX, dirty_to;
static bool due; /* what is dirty shall be drawn */
static unsigned scrolls;
static uint64_t scrolled;                       /* cells that scrolling changed */
static uint8_t (*line_color)(const char *line); /* atomic */

static void draw(unsigned r, unsigned c)
{
    if (device.kind == SCREEN_TEXT)
        *(volatile uint16_t *)(DIRECT_MAP + device.address + r * device.pitch + c * 2) =
            wanted[r][c];
    else
        framebuffer_draw(&pixels, c, r, wanted[r][c]);
    shown[r][c] = wanted[r][c];
}

static void touch_rows(unsigned r)
{
    dirty_from = r < dirty_from ? r : dirty_from;
    dirty_to = r >= dirty_to ? r + 1 : dirty_to;
}

static unsigned changed_cells(unsigned r)
{
    unsigned n = 0;
    for (unsigned c = 0; c < columns; c++)
        n += wanted[r][c] != shown[r][c];
    return n;
}

/* Draws a row in which something changed. */
static bool flush_row(void)
{
    if (!due)
        return false;
    while (dirty_from < dirty_to && !changed_cells(dirty_from))
        dirty_from++;
    if (dirty_from < dirty_to) {
        for (unsigned c = 0; c < columns; c++)
            if (wanted[dirty_from][c] != shown[dirty_from][c])
                draw(dirty_from, c);
        dirty_from++;
        fence(); /* what was combined goes out */
        return true;
    }
    dirty_from = ROWS_MAX;
    dirty_to = 0;
    due = false;
    return false;
}

static void flush_screen(void)
{
    due = true;
    while (flush_row())
        ;
}

static void clear_rows(unsigned from, unsigned to, uint8_t attribute)
{
    for (unsigned r = from; r < to; r++) {
        for (unsigned c = 0; c < columns; c++)
            wanted[r][c] = (uint16_t)(attribute << 8 | ' ');
        touch_rows(r);
    }
}

static void scroll(void)
{
    unsigned by = rows / 4;
    for (unsigned r = 0; r + by < rows; r++)
        memcpy(wanted[r], wanted[r + by], sizeof wanted[r]);
    clear_rows(rows - by, rows, SCREEN_GREY);
    touch_rows(0);
    row -= by;
    line_row = line_row > by ? line_row - by : 0;
    scrolls++;
    for (unsigned r = 0; r < rows; r++)
        scrolled += changed_cells(r);
}

void screen_scrolled(unsigned *count, uint64_t *stores)
{
    *count = scrolls;
    *stores = device.kind == SCREEN_PIXELS ? scrolled * framebuffer_stores(&pixels) : 0;
}

/* The line just completed, without its colours. */
static void line_text(char *text, unsigned size)
{
    unsigned n = 0;
    for (unsigned r = line_row; r <= row; r++)
        for (unsigned c = 0; c < (r < row ? wide : column) && n < size - 1; c++)
            text[n++] = (char)wanted[r][c];
    text[n] = 0;
}

static void end_line(void)
{
    char text[SCREEN_LINE_MAX];
    line_text(text, sizeof text);
    uint8_t (*color_of)(const char *) = __atomic_load_n(&line_color, __ATOMIC_RELAXED);
    uint8_t attribute = color_of ? color_of(text) : SCREEN_GREY;
    for (unsigned r = line_row; r <= row; r++)
        for (unsigned c = 0; c < (r < row ? wide : column); c++)
            wanted[r][c] = (uint16_t)(attribute << 8 | (wanted[r][c] & 0xff));
    row++;
    column = 0;
    line_row = row;
    due = true;
}

static void put_on_screen(char c)
{
    if (device.kind == SCREEN_NONE)
        return;
    if (c != '\n' && column == wide) {
        row++;
        column = 0;
    }
    if (row >= rows)
        scroll();
    if (c == '\n') {
        end_line();
    } else {
        wanted[row][column++] = (uint16_t)(SCREEN_GREY << 8 | (c >= ' ' && c <= '~' ? c : ' '));
        touch_rows(row);
    }
}

/* The bottom line, which does not scroll. */
static void status(const char *text)
{
    if (device.kind == SCREEN_NONE)
        return;
    for (unsigned c = 0; c < columns; c++)
        wanted[rows][c] = (uint16_t)(SCREEN_BAR << 8 | (*text ? (uint8_t)*text++ : ' '));
    touch_rows(rows);
    due = true;
}

void screen_clear(void)
{
    if (device.kind == SCREEN_NONE)
        return;
    clear_rows(0, rows, SCREEN_GREY);
    row = column = line_row = 0;
    wide = columns;
    flush_screen();
}

/* --- A picture of squares beside the text, at the screen's right edge. --- */

#define TEXT_COLUMNS_MIN 30u /* beside it */
#define MARGIN_TEXT 2u       /* squares around it; characters leave no space for a QR code's four */
#define MARGIN_PIXELS 4u
#define SQUARE_MIN 3u /* pixels */

/* The side of a square in pixels; on a screen of characters 1; 0: the picture does not fit. */
static unsigned square_size(unsigned side)
{
    if (device.kind == SCREEN_NONE)
        return 0;
    if (device.kind == SCREEN_TEXT)
        return side + 2 * MARGIN_TEXT < 2 * rows &&
               side + 2 * MARGIN_TEXT + TEXT_COLUMNS_MIN < columns;
    unsigned high = device.height / 2, across = device.width * 3 / 8;
    unsigned square = (high < across ? high : across) / (side + 2 * MARGIN_PIXELS);
    return square >= SQUARE_MIN ? square : 0;
}

bool screen_picture_fits(unsigned side) { return square_size(side) != 0; }

/* False around the picture. */
static bool is_dark(const uint64_t *picture, unsigned side, unsigned x, unsigned y)
{
    return x < side && y < side && picture[y] >> x & 1;
}

/* Two squares in a character: light ones have the letter's colour. */
static void picture_characters(const uint64_t *picture, unsigned side)
{
    static const uint8_t halves[] = { 0xdb, 0xdc, 0xdf,
                                      ' ' }; /* of code page 437; bit 0: the upper is dark */
    unsigned all = side + 2 * MARGIN_TEXT;
    for (unsigned y = 0; y < all; y += 2)
        for (unsigned x = 0; x < all; x++) {
            unsigned dark = is_dark(picture, side, x - MARGIN_TEXT, y - MARGIN_TEXT) |
                            is_dark(picture, side, x - MARGIN_TEXT, y + 1 - MARGIN_TEXT) << 1;
            wanted[y / 2][columns - all + x] = (uint16_t)(SCREEN_GREY << 8 | halves[dark]);
            touch_rows(y / 2);
        }
    wide = columns - all - 1;
    flush_screen();
}

static void picture_pixels(const uint64_t *picture, unsigned side)
{
    unsigned all = side + 2 * MARGIN_PIXELS, square = square_size(side);
    for (unsigned y = 0; y < all; y++)
        for (unsigned x = 0; x < all; x++) {
            bool dark = is_dark(picture, side, x - MARGIN_PIXELS, y - MARGIN_PIXELS);
            framebuffer_square(&pixels, device.width - (all - x) * square, y * square, square,
                               dark ? 0 : 15);
        }
    unsigned left = framebuffer_columns(&pixels, device.width - all * square) - 1;
    wide = left < columns ? left : columns;
}

void screen_picture(const uint64_t *picture, unsigned side)
{
    if (!screen_picture_fits(side))
        return;
    if (device.kind == SCREEN_TEXT)
        picture_characters(picture, side);
    else
        picture_pixels(picture, side);
}

bool screen_has_room(size_t length)
{
    return device.kind != SCREEN_NONE && row + (length + wide - 1) / wide < rows;
}

void screen_color_by(uint8_t (*color_of)(const char *line))
{
    __atomic_store_n(&line_color, color_of, __ATOMIC_RELAXED);
}

static uint8_t on_red(const char *) { return SCREEN_ON_RED; }

static void alarm(void) { screen_color_by(on_red); }

bool screen_init(const struct screen *screen)
{
    static const struct console console = { put_on_screen, put_on_screen, status,
                                            alarm,         flush_row,     NULL };
    device = *screen;
    if (device.kind == SCREEN_TEXT) {
        columns = device.width;
        rows = device.height;
        out8(0x3d4, 0x0a); /* CRTC "Cursor Start Register": no cursor */
        out8(0x3d5, 0x20);
    } else if (device.kind == SCREEN_PIXELS) {
        framebuffer_init(&pixels, &device, &columns, &rows);
    }
    columns = columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    rows = rows > ROWS_MAX ? ROWS_MAX : rows;
    if (columns < 40 || rows < 10) {
        device.kind = SCREEN_NONE;
        return false;
    }
    rows--;
    wide = columns;
    clear_rows(0, rows + 1, SCREEN_GREY); /* `shown` is 0: everything is drawn */
    flush_screen();
    print_add_console(&console);
    return true;
}

void screen_print(const struct screen *screen, const char *none)
{
    if (screen->kind == SCREEN_NONE)
        print("# screen: none: %s\n", none);
    else if (device.kind == SCREEN_NONE)
        print("# screen: none: %u x %u is too small\n", screen->width, screen->height);
    else
        print("# screen: %u x %u %s at %lx\n", screen->width, screen->height,
              screen->kind == SCREEN_TEXT ? "characters" : "pixels", screen->address);
}
