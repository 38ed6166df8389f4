/* SPDX-License-Identifier: MIT */
/* The names of machine and hypervisor: from invented tables and answers of CPUID, good ones and
 * garbage. */
#include "hal/machine/identity.h"
#include "hal/machine/smbios.h"
#include "tests/harness/kernel.h"

/* --- SMBIOS --- */

/* clang-format off */
static const char good[] =
    "\x00\x18\x00\x00" "\x01\x02\x00\xf0\x03" "0123456789abcdf" "Maker of BIOS\0" "1.2\0" "today\0" "\0" /* type 0 */
    "\x04\x06\x00\x00" "ab" "\0\0"                                     /* no strings */
    "\x01\x1b\x01\x00" "\x01\x02\x00\x03" "0123456789abcdefghi" "  Maker  \0" "Pro\x07" "duct\0" "unused\0" "\0"
    "\x02\x08\x02\x00" "\x01\x02\x00\x00" "Board maker, whose name is as long as there is room\0" "Board\0" "\0"
    "\x01\x08\x03\x00" "\x01\x01\x00\x00" "A second system\0" "\0"
    "\x7f\x04\x04\x00" "\0\0"
    "\x02\x08\x05\x00" "\x01\x01\x00\x00" "After the end\0" "\0";
/* clang-format on */

static bool says(const struct smbios *s, enum smbios_name which, const char *text)
{
    return strcmp(s->name[which], text) == 0;
}

TEST(smbios, names,
     "names are those of the first structure of their type, without unprintable characters")
{
    struct smbios s = { 0 };
    smbios_parse(good, sizeof good, &s);
    CHECK(says(&s, SMBIOS_FIRMWARE_VENDOR, "Maker of BIOS") &&
          says(&s, SMBIOS_FIRMWARE_VERSION, "1.2"));
    CHECK(says(&s, SMBIOS_MAKER, "Maker") && says(&s, SMBIOS_PRODUCT, "Product"));
    CHECK(says(&s, SMBIOS_BOARD_MAKER, "Board maker, whose name is as long as there is r"));
    CHECK(says(&s, SMBIOS_BOARD, "Board"));
}

/* Letters that no table of ours has, after its end. */
static bool read_beyond(const struct smbios *s)
{
    for (unsigned i = 0; i < SMBIOS_NAMES; i++)
        for (const char *p = s->name[i]; *p; p++)
            if (*p == '~')
                return true;
    return false;
}

TEST(smbios, garbage,
     "tables cut at any length, whole or with random bytes, are read to their end and not beyond")
{
    static char table[sizeof good + 256];
    uint32_t state = 7;
    for (unsigned round = 0; round < 5000; round++) {
        struct smbios s = { 0 };
        size_t length = round % (sizeof good + 1);
        memset(table, '~', sizeof table);
        memcpy(table, good, length);
        for (unsigned n = 0; length && n < round / sizeof good % 5; n++) {
            state = state * 1664525 + 1013904223;
            char byte = (char)(state >> 24);
            table[(state >> 8) % length] = byte == '~' ? 0 : byte;
        }
        smbios_parse(table, length, &s);
        if (!CHECK(!read_beyond(&s)))
            break;
    }
}

/* An EFI system table whose list leads to the names. Sources: as in hal/machine/smbios.c. */
struct efi {
    uint64_t system[15]; /* [0] signature, [13] how many, [14] where */
    struct {
        uint32_t guid[4];
        uint64_t table;
    } list[2];
    uint8_t entry[40];
    char names[sizeof good];
};

/* Sets a byte of these so that they add up to 0. */
static void set_sum(const uint8_t *bytes, unsigned size, uint8_t *checksum)
{
    uint8_t sum = *checksum = 0;
    for (unsigned i = 0; i < size; i++)
        sum += bytes[i];
    *checksum = (uint8_t)-sum;
}

static bool efi_names(struct efi *e)
{
    static struct boot_info boot;
    struct smbios s;
    boot.efi_table = virt_to_phys(e);
    smbios_read(&boot, &s);
    return says(&s, SMBIOS_PRODUCT, "Product");
}

static void make_efi(struct efi *e)
{
    memset(e, 0, sizeof *e);
    memcpy(&e->system[0], "IBI SYST", 8);
    e->system[13] = 2;
    e->system[14] = virt_to_phys(e->list);
    e->list[1].table = virt_to_phys(e->entry);
    memcpy(e->names, good, sizeof good);
}

/* The entry point of 64 bits, whose byte 6 is its length, or the one of 32 bits. */
static void make_entry(struct efi *e, bool wide)
{
    static const uint32_t guids[2][4] = {
        { 0xeb9d2d31, 0x11d32d88, 0x9000169a, 0x4dc13f27 },
        { 0xf2fd1544, 0x4a2c9794, 0xbbe52e99, 0x94e320cf },
    };
    uint64_t names = virt_to_phys(e->names);
    memcpy(e->list[1].guid, guids[wide], sizeof e->list[1].guid);
    memcpy(e->entry, wide ? "_SM3_" : "_SM_", wide ? 5 : 4);
    e->entry[6] = 24;
    e->entry[wide ? 24 : 31] = 1; /* behind it */
    e->entry[wide ? 12 : 22] = sizeof good;
    memcpy(e->entry + (wide ? 16 : 24), &names, wide ? 8 : 4);
    if (!wide)
        memcpy(e->entry + 16, "_DMI_", 5);
}

/* Returns where the sum is. */
static uint8_t *sum_entry(struct efi *e, bool wide)
{
    uint8_t *from = wide ? e->entry : e->entry + 16;
    set_sum(from, wide ? e->entry[6] : 15, from + 5);
    return from + 5;
}

TEST(smbios, efi,
     "UEFI's list of tables leads to the names by either entry point, if signature, anchor, "
     "length and sum are right")
{
    struct efi *e = phys_alloc(1);
    REQUIRE(e);
    for (unsigned wide = 0; wide < 2; wide++) {
        /* Any of these bytes hides the names when it is wrong and the sum is right. */
        uint8_t *const wrong[] = { (uint8_t *)e->system, (uint8_t *)e->list[1].guid, &e->entry[0],
                                   &e->entry[wide ? 4 : 20] };
        make_efi(e);
        make_entry(e, wide);
        for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            ++*wrong[i];
            sum_entry(e, wide);
            CHECK(!efi_names(e));
            --*wrong[i];
        }
        ++*sum_entry(e, wide);
        CHECK(!efi_names(e));
        sum_entry(e, wide);
        CHECK(efi_names(e));
    }
    for (unsigned length = 23; length <= 33; length++) {
        e->entry[6] = (uint8_t)length;
        sum_entry(e, true);
        CHECK_EQ(efi_names(e), length >= 24 && length <= 32);
    }
    e->entry[6] = 24;
    memset(e->entry + 12, 0xff, 4); /* more than there may be: its beginning is read */
    sum_entry(e, true);
    CHECK(efi_names(e));
    phys_free(e, 1);
}

/* --- Hypervisors --- */

struct answer {
    uint32_t leaf;
    struct cpuid r;
};

static const struct answer *answers;

static struct cpuid ask(uint32_t leaf)
{
    for (const struct answer *a = answers; a->leaf; a++)
        if (a->leaf == leaf)
            return a->r;
    return (struct cpuid){ 0 };
}

/* clang-format off */
#define SIGN(leaf, last, text)                                                                 \
    { leaf, { last, (text)[0] | (text)[1] << 8 | (text)[2] << 16 | (text)[3] << 24,              \
              (text)[4] | (text)[5] << 8 | (text)[6] << 16 | (text)[7] << 24,                    \
              (text)[8] | (text)[9] << 8 | (text)[10] << 16 | (text)[11] << 24 } }
/* clang-format on */
#define KVM_SIGN "KVMKVMKVM\0\0\0"

static const struct {
    struct answer answers[6];
    const char *text;
} hypervisors[] = {
    { { SIGN(0x40000000, 0x40000001, KVM_SIGN), { 0x40000001, { 0x01007efb, 0, 0, 0 } } },
      "KVM, features 1007efb (Linux 5.8 or later)" },
    { { SIGN(0x40000000, 0, KVM_SIGN), { 0x40000001, { 0x3b, 0, 0, 0 } } }, "KVM, features 3b" },
    { { SIGN(0x40000000, 0x40000002, "Microsoft Hv"),
        { 0x40000002, { 20348, 10 << 16, 0, 0 } },
        SIGN(0x40000100, 0x40000101, KVM_SIGN),
        { 0x40000101, { 1 << 11, 0, 0, 0 } } },
      "Hyper-V 10.0.20348, also KVM, features 800 (Linux 4.19 or later)" },
    { { SIGN(0x40000000, 0x40000001, "Microsoft Hv") }, "Hyper-V" },
    { { SIGN(0x40000000, 0x40000002, "XenVMMXenVMM"), { 0x40000001, { 4 << 16 | 17, 0, 0, 0 } } },
      "Xen 4.17" },
    { { SIGN(0x40000000, 0x40000010, "VMwareVMware") }, "VMware" },
    { { SIGN(0x40000000, 0x40000001, "Some\x1b[2J or ") }, "unknown, \"Some?[2J or \"" },
    { { { 0 } }, "one without a name" },
};

TEST(hypervisor, names,
     "a hypervisor is named by its leaf, with the version that its other leaves report")
{
    char text[120];
    for (unsigned i = 0; i < ARRAY_SIZE(hypervisors); i++) {
        answers = hypervisors[i].answers;
        hypervisor_describe(ask, text, sizeof text);
        if (!CHECK(strcmp(text, hypervisors[i].text) == 0))
            test_note("hypervisor %u: %s", i, text);
    }
}
