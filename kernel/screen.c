/* SPDX-License-Identifier: MIT */
/* A grid of characters with colours, and what of it the device shows. A line gets its colour when it is complete;
 * only cells that changed are drawn. When the grid is full it moves up by a quarter: seldom, because devices are slow.
 * Everything here is guarded by print's lock. */
#include "kernel/screen.h"
#include "kernel/cpu.h"
#include "kernel/print.h"
#include "kernel/string.h"
#include "kernel/vm.h"
#include "kernel/x86.h"

#define COLUMNS_MAX 160
#define ROWS_MAX 100
#define KEPT_MAX 12
#define KEPT_LENGTH 120
#define REACHED (1ul << 32) /* by the boot page tables */
enum { GREY = 0x07, GREEN = 0x0a, RED = 0x0c, YELLOW = 0x0e, BAR = 0x1f, ON_GREEN = 0x2f, ON_RED = 0x4f };

static struct screen device;
static bool mapped;               /* the kernel's page tables reach it */
static uint64_t boot_tables;      /* CR3 at boot; the virtual PMU's host side stays there */
static unsigned columns, rows;    /* of scrolling text; the status line is row `rows` */
static unsigned column, row, line_row; /* next cell; where the current line began */
static uint16_t wanted[ROWS_MAX][COLUMNS_MAX], shown[ROWS_MAX][COLUMNS_MAX];
static unsigned dirty_from = ROWS_MAX, dirty_to;
static char kept[KEPT_MAX][KEPT_LENGTH];
static unsigned failures;
static bool last_page; /* it repeats failures: they are not new ones */

static bool reachable(void) { return device.address < REACHED || (mapped && read_cr3() != boot_tables); }

static void draw(unsigned r, unsigned c)
{
    if (device.kind == SCREEN_TEXT)
        *(volatile uint16_t *)(DIRECT_MAP + device.address + r * device.pitch + c * 2) = wanted[r][c];
    else
        framebuffer_draw(c, r, wanted[r][c]);
    shown[r][c] = wanted[r][c];
}

static void touch(unsigned r)
{
    dirty_from = r < dirty_from ? r : dirty_from;
    dirty_to = r >= dirty_to ? r + 1 : dirty_to;
}

static void flush(void)
{
    if (!reachable())
        return;
    for (unsigned r = dirty_from; r < dirty_to; r++)
        for (unsigned c = 0; c < columns; c++)
            if (wanted[r][c] != shown[r][c])
                draw(r, c);
    dirty_from = ROWS_MAX;
    dirty_to = 0;
}

static void clear_rows(unsigned from, unsigned to, uint8_t attribute)
{
    for (unsigned r = from; r < to; r++) {
        for (unsigned c = 0; c < columns; c++)
            wanted[r][c] = (uint16_t)(attribute << 8 | ' ');
        touch(r);
    }
}

bool screen_init(const struct screen *screen)
{
    device = *screen;
    boot_tables = read_cr3();
    if (device.kind == SCREEN_TEXT) {
        columns = device.width;
        rows = device.height;
        out8(0x3d4, 0x0a); /* CRTC "Cursor Start Register": no cursor */
        out8(0x3d5, 0x20);
    } else if (device.kind == SCREEN_PIXELS) {
        framebuffer_init(&device, &columns, &rows);
    }
    columns = columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    rows = rows > ROWS_MAX ? ROWS_MAX : rows;
    if (columns < 40 || rows < 10) {
        device.kind = SCREEN_NONE;
        return false;
    }
    rows--;
    clear_rows(0, rows + 1, GREY); /* `shown` is 0: everything is drawn */
    flush();
    return true;
}

void screen_map(void)
{
    if (device.kind == SCREEN_NONE || device.address < REACHED)
        return;
    mapped = vm_map_device(device.address, (uint64_t)device.pitch * device.height);
    if (!mapped)
        print("# screen: it lies higher than can be mapped: none\n");
    flush();
}

static void scroll(void)
{
    unsigned by = rows / 4;
    for (unsigned r = 0; r + by < rows; r++)
        memcpy(wanted[r], wanted[r + by], sizeof wanted[r]);
    clear_rows(rows - by, rows, GREY);
    touch(0);
    row -= by;
    line_row = line_row > by ? line_row - by : 0;
}

/* The line just completed, without its colours. */
static unsigned line_text(char *text, unsigned size)
{
    unsigned n = 0;
    for (unsigned r = line_row; r <= row; r++)
        for (unsigned c = 0; c < (r < row ? columns : column) && n < size - 1; c++)
            text[n++] = (char)wanted[r][c];
    text[n] = 0;
    return n;
}

static bool has(const char *text, const char *part)
{
    size_t length = strlen(part);
    for (; *text; text++)
        if (strlen(text) >= length && memcmp(text, part, length) == 0)
            return true;
    return false;
}

static uint8_t attribute_of(const char *text)
{
    static const struct {
        const char *start;
        uint8_t attribute;
    } table[] = {
        { "ok ", GREEN }, { "not ok ", RED }, { "# tests/", RED }, { "# watchdog", RED }, { "# left behind", RED },
        { "# PASS", ON_GREEN }, { "# FAIL", ON_RED }, { "# NONE", YELLOW }, { "# PANIC", ON_RED },
    };
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(text) >= strlen(table[i].start) && memcmp(text, table[i].start, strlen(table[i].start)) == 0)
            return table[i].attribute == GREEN && has(text, " # SKIP ") ? YELLOW : table[i].attribute;
    return GREY;
}

static void end_line(void)
{
    char text[KEPT_LENGTH];
    line_text(text, sizeof text);
    uint8_t attribute = attribute_of(text);
    if (attribute == RED && !last_page) {
        if (failures < KEPT_MAX)
            memcpy(kept[failures], text, sizeof text);
        failures++;
    }
    for (unsigned r = line_row; r <= row; r++)
        for (unsigned c = 0; c < (r < row ? columns : column); c++)
            wanted[r][c] = (uint16_t)(attribute << 8 | (wanted[r][c] & 0xff));
    row++;
    column = 0;
    line_row = row;
    flush();
}

void screen_put(char c)
{
    if (device.kind == SCREEN_NONE)
        return;
    if (c != '\n' && column == columns) {
        row++;
        column = 0;
    }
    if (row >= rows)
        scroll();
    if (c == '\n') {
        end_line();
    } else {
        wanted[row][column++] = (uint16_t)(GREY << 8 | (c >= ' ' && c <= '~' ? c : ' '));
        touch(row);
    }
}

void screen_status(const char *text)
{
    if (device.kind == SCREEN_NONE)
        return;
    for (unsigned c = 0; c < columns; c++)
        wanted[rows][c] = (uint16_t)(BAR << 8 | (*text ? (uint8_t)*text++ : ' '));
    touch(rows);
    flush();
}

void screen_last_page(void)
{
    last_page = true;
    if (device.kind == SCREEN_NONE)
        return;
    clear_rows(0, rows, GREY);
    row = column = line_row = 0;
    flush();
}

const char *screen_failure(unsigned n) { return n < failures && n < KEPT_MAX ? kept[n] : NULL; }
unsigned screen_failures(void) { return failures; }
