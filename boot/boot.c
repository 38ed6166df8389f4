/* SPDX-License-Identifier: MIT */
/* From boot.asm to kernel_main: reads the loader's information once, and starts the virtual PMU if
 * the command line asks for it. One CPU, boot page tables, interrupts off, no handler for any
 * exception. */
#include "boot/loader.h"
#include "boot/move.h"
#include "boot/multiboot.h"
#include "boot/payload.h"
#include "hal/machine/acpi.h"
#include "hal/machine/reboot.h"
#include "kernel/base/cpu.h"
#include "kernel/base/exit.h"
#include "kernel/base/sanitize/kasan.h"
#include "kernel/base/print.h"
#include "kernel/base/string.h"
#include "kernel/base/x86.h"
#include "kernel/console/screen.h"
#include "kernel/console/serial.h"
#include "kernel/init/init.h"
#include "kernel/main.h"
#include "pmu/virt/guests/virt_payload.h"
#include "pmu/virt/virt.h"

enum { PIC1_MASK = 0x21, PIC2_MASK = 0xa1 };
extern const uint8_t ap_start[], ap_end[];
extern const char *const boot_options_start[], *const boot_options_end[]; /* linker.ld */

BOOT_OPTIONS("vpmu= payload serial=");

static bool is_path(const char *word, unsigned length)
{
    for (unsigned i = 0; i < length && word[i] != '='; i++)
        if (word[i] == '/')
            return true;
    return false;
}

/* Whether some file has the word, or its first `length` characters, with "=". */
static bool is_known(const char *word, unsigned length)
{
    const char *known;
    unsigned known_length;
    for (const char *const *words = boot_options_start; words < boot_options_end; words++)
        for (unsigned n = 0; (known = boot_word_at(*words, n, &known_length)); n++)
            if (known_length == length && memcmp(known, word, length) == 0)
                return true;
    return false;
}

/* Names options that no part of the kernel knows: they may be typing errors. The first may be the
 * file's name. */
static void name_unknown_options(const struct boot_info *info)
{
    const char *word;
    char text[40];
    unsigned length, shown = 0;
    for (unsigned n = 0; (word = boot_word_at(info->line, n, &length)) && shown < 8; n++) {
        unsigned key = 0;
        while (key < length && word[key] != '=')
            key++;
        key += key < length;
        if (is_known(word, key) || (n == 0 && is_path(word, length)))
            continue;
        memcpy(text, word, length < sizeof text - 1 ? length : sizeof text - 1);
        text[length < sizeof text - 1 ? length : sizeof text - 1] = 0;
        print("%s%s", shown++ ? " " : "# boot: not understood, ignored: ", text);
    }
    if (shown)
        print("\n");
}

/* Of the console: serial=N says the N-th, firmware's table any, else it is the first. Returns what
 * prevents what was asked for, or NULL. */
static const char *open_console(void)
{
    static const uint16_t ports[] = { COM1, COM2, 0x3e8, 0x2e8 };
    char number[4] = "";
    const bool given = boot_option("serial", number, sizeof number);
    const bool good = number[0] >= '1' && number[0] <= '4' && !number[1];
    const uint16_t port = good ? ports[number[0] - '1'] : acpi_console(&boot_info);
    if (!serial_init(port ? port : COM1) && port)
        return "no UART is there";
    return given && !good ? "a number from 1 to 4 is wanted" : NULL;
}

void boot_main(uint32_t magic, uint32_t info_address);
void boot_main(uint32_t magic, uint32_t info_address)
{
    char model[256];
    uint8_t pics[2] = { in8(PIC1_MASK), in8(PIC2_MASK) };

    /* Nothing of ours uses the PICs, and firmware may have left them open. */
    out8(PIC1_MASK, 0xff);
    out8(PIC2_MASK, 0xff);
    kasan_early();
    boot_info.ap_code = ap_start;
    boot_info.ap_size = (size_t)(ap_end - ap_start);
    boot_info.ap_tables = (uint32_t)read_cr3();
    boot_info.mapped_end = 1ul << 32;
    loader_read(&boot_info, magic, info_address);
    cpu_detect(); /* acpi_console asks how wide addresses are */
    const char *wrong = open_console();
    print("\n"); /* a first byte at once: the next step may draw a whole screen */
    if (!move_reach(&boot_info.screen)) {
        boot_info.screen.kind = SCREEN_NONE;
        boot_info.no_screen = "it lies higher than can be mapped";
    }
    screen_init(&boot_info.screen);
    print_begin();
    print("# ntpmu: boot by multiboot %s, command line \"%s\"\n",
          magic == MB1_BOOT_MAGIC   ? "1"
          : magic == MB2_BOOT_MAGIC ? "2"
                                    : "(unknown magic)",
          boot_info.line);
    name_unknown_options(&boot_info);
    if (wrong)
        print("# serial: not the console that was asked for: %s\n", wrong);
    bool virtual = boot_option("vpmu", model, sizeof model - sizeof ",step");
    /* The virtual PMU's alarm is an NMI; with `step` it needs none. Two do no harm. */
    if (virtual && boot_flag("safe"))
        memcpy(model + strlen(model), ",step", sizeof ",step");
    if (boot_flag("payload")) {
        struct virt_payload payload = { 0 };
        if (virtual && payload_load(&boot_info, &payload)) {
            out8(PIC1_MASK, pics[0]); /* as firmware left them */
            out8(PIC2_MASK, pics[1]);
            virt_boot_payload(model, &payload);
        } else if (!virtual)
            print("# payload: needs vpmu=MODEL beside it\n");
        machine_exit(EXIT_NOTHING);
    }
    if (virtual)
        virt_boot(model);
    boot_info.ap_pages = virt_ap_pages();
    kernel_main(init_thread);
}
