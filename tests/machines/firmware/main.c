/* SPDX-License-Identifier: MIT */
/* What firmware and loaders were seen to leave, each by a word of the command line; the
 * words after "--" are the kernel's. One CPU, paging and interrupts off except where said.
 *
 *   registers   every bit that CR4 can have here (LA57, SMEP, TSD, ...), EFER.NXE and SCE, CR0.AM,
 *               a PAT of its own, a breakpoint (at 0)
 *   lines       an interrupt controller with open lines: the PIT's, a level-triggered one that is
 *               never served, the last; and two of an NMI and an SMI
 *   service     an interrupt of the highest priority that was taken and never ended
 *   high        ACPI tables above 4 GB (needs memory there)
 *   sum         an XSDT whose checksum is wrong, beside a good RSDT
 *   many        an MADT of 1,000 CPUs; most do not exist, and an xAPIC can reach none of them
 *   ghosts      two CPUs in the MADT that do not exist
 */
#include <stdbool.h>
#include <stdint.h>

typedef uint32_t physical;

struct info {
    uint32_t flags, mem_lower, mem_upper, boot_device, cmdline, mods_count, mods_addr;
};

struct module {
    uint32_t start, end, line, reserved;
};

struct header {
    uint32_t magic, flags, checksum, header_addr, load_addr, load_end_addr, bss_end_addr,
        entry_addr;
};

void firmware_main(uint32_t magic, struct info *info) __attribute__((noreturn));
void handover(uint32_t entry, struct info *info) __attribute__((noreturn));
void never_ended(void);
void *memcpy(void *to, const void *from, unsigned long count);
void *memset(void *to, int value, unsigned long count);

void *memcpy(void *to, const void *from, unsigned long count)
{
    void *start = to;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    return start;
}

void *memset(void *to, int value, unsigned long count)
{
    void *start = to;
    asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(value) : "memory");
    return start;
}

static void out8(uint16_t port, uint8_t v) { asm volatile("outb %0,%1" : : "a"(v), "Nd"(port)); }
static volatile uint32_t *reg(physical address) { return (volatile uint32_t *)address; }

static void say(const char *text)
{
    while (*text)
        out8(0x3f8, (uint8_t)*text++);
}

static void stop(const char *why)
{
    say("# firmware: ");
    say(why);
    say("\n");
    asm volatile("outl %0,%1" : : "a"(0x12), "Nd"((uint16_t)0xf4));
    for (;;)
        asm volatile("hlt");
}

static bool equal(const void *a, const char *b, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (((const char *)a)[i] != b[i])
            return false;
    return true;
}

/* Whether the word stands in front of "--". */
static bool asked(const char *line, const char *word)
{
    for (; *line && !equal(line, "-- ", 3); line++) {
        unsigned n = 0;
        while (word[n] && line[n] == word[n])
            n++;
        if (!word[n] && (line[n] == ' ' || !line[n]))
            return true;
    }
    return false;
}

/* --- registers --- */

static void cpuid(uint32_t leaf, uint32_t r[4])
{
    asm volatile("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(0));
}

static void wrmsr(uint32_t msr, uint32_t high, uint32_t low)
{
    asm volatile("wrmsr" : : "c"(msr), "a"(low), "d"(high));
}

static void leave_registers(void)
{
    /* TSD DE PSE MCE PGE PCE */
    uint32_t r[4], cr4 = 1u << 2 | 1u << 3 | 1u << 4 | 1u << 6 | 1u << 7 | 1u << 8;
    cpuid(7, r);
    /* FSGSBASE SMEP SMAP */
    cr4 |= (r[1] & 1) << 16 | (r[1] >> 7 & 1) << 20 | (r[1] >> 20 & 1) << 21;
    cr4 |= (r[2] >> 16 & 1) << 12 | (r[2] >> 2 & 1) << 11; /* LA57 UMIP */
    if (!(r[2] >> 16 & 1))
        say("# firmware: this CPU has no LA57\n");
    asm volatile("mov %0,%%cr4" : : "r"(cr4));
    asm volatile("mov %0,%%cr0" : : "r"(0x40031u)); /* AM */
    wrmsr(0xc0000080, 0, 0x801);
    wrmsr(0x277, 0x06060606, 0x06060606); /* PAT: write-back, whatever was asked for */
    asm volatile("mov %0,%%dr7" : : "r"(0x401u));
}

/* --- lines --- */

#define IO_APIC 0xfec00000u
#define HPET 0xfed00000u
#define LOCAL_APIC 0xfee00000u

static void redirect(unsigned line, uint32_t low)
{
    *reg(IO_APIC) = 0x11 + 2 * line;
    *reg(IO_APIC + 0x10) = 0;
    *reg(IO_APIC) = 0x10 + 2 * line;
    *reg(IO_APIC + 0x10) = low;
}

/* The PIT's line 2, edge, 1,000 times a second; the HPET's first timer on line 20, level, at once
 * and never served. */
static void leave_lines(void)
{
    out8(0x43, 0x34);
    out8(0x40, 1193 & 0xff);
    out8(0x40, 1193 >> 8);
    redirect(2, 0x41);
    *reg(HPET + 0x10) = 1;
    *reg(HPET + 0x108) = *reg(HPET + 0xf0) + 1000;
    *reg(HPET + 0x10c) = 0;
    *reg(HPET + 0x100) = 20u << 9 | 1u << 2 | 1u << 1;
    redirect(20, 1u << 15 | 0x42);
    redirect(23, 0x43); /* the last, which nothing raises */
    redirect(5, 0x400); /* the platform's own: an NMI, an SMI */
    redirect(6, 0x200);
    out8(0x21, 0);
    out8(0xa1, 0);
    *reg(LOCAL_APIC + 0xf0) = 0x1ff;
    *reg(LOCAL_APIC + 0x350) = 0x700;           /* the old controller, through LINT0 */
    *reg(LOCAL_APIC + 0x320) = 1u << 17 | 0x43; /* and the local timer */
    *reg(LOCAL_APIC + 0x3e0) = 0xb;
    *reg(LOCAL_APIC + 0x380) = 1000000;
}

/* --- service --- */

static void leave_in_service(void)
{
    static uint64_t idt[256] __attribute__((aligned(8)));
    struct __attribute__((packed)) {
        uint16_t limit;
        uint32_t base;
    } idtr = { sizeof idt - 1, (uint32_t)idt };
    uint64_t handler = (uint32_t)never_ended;
    idt[0xf8] = (handler & 0xffff) | 8u << 16 | UINT64_C(0x8e00) << 32 | (handler >> 16) << 48;
    asm volatile("lidt %0" : : "m"(idtr));
    out8(0x21, 0xff); /* nobody else is to come */
    out8(0xa1, 0xff);
    *reg(LOCAL_APIC + 0xf0) = 0x1ff;
    *reg(LOCAL_APIC + 0x300) = 1u << 18 | 0x40f8; /* to itself */
    asm volatile("sti" : : : "memory");
    for (unsigned i = 0; i < 1000000; i++)
        asm volatile("");
    asm volatile("cli" : : : "memory");
    if (!(*reg(LOCAL_APIC + 0x170) >> 24 & 1))
        stop("no interrupt is in service");
}

/* --- tables --- */

struct rsdp {
    char signature[8];
    uint8_t checksum;
    char oem[6];
    uint8_t revision;
    uint32_t rsdt, length;
    uint64_t xsdt;
    uint8_t extended_checksum, reserved[3];
} __attribute__((packed));

struct table {
    char signature[4];
    uint32_t length;
    uint8_t revision, checksum;
    char rest[26];
} __attribute__((packed));

#define NEW_RSDP 0x9f000u  /* named by the word at 40Eh */
#define WINDOW 0x40000000u /* here the pages of HIGH appear */
#define HIGH UINT64_C(0x100000000)
#define TABLES_LOW 0x800000u

static uint8_t sum_of(const void *data, unsigned count)
{
    uint8_t sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)data)[i]);
    return sum;
}

static struct rsdp *find_rsdp(void)
{
    for (physical p = 0xe0000; p < 0x100000; p += 16)
        if (equal((void *)p, "RSD PTR ", 8) && !sum_of((void *)p, 20))
            return (struct rsdp *)p;
    stop("no RSDP");
    return 0;
}

/* Identity for the first 4 GB in pages of 2 MB, but for WINDOW. */
static void map_window(void)
{
    static uint64_t pointers[4] __attribute__((aligned(32)));
    static uint64_t directories[2048] __attribute__((aligned(4096)));
    for (unsigned i = 0; i < 2048; i++)
        directories[i] = (uint64_t)i << 21 | 0x83;
    directories[WINDOW >> 21] = HIGH | 0x83;
    for (unsigned i = 0; i < 4; i++)
        pointers[i] = (uint32_t)(directories + 512 * i) | 1;
    asm volatile("mov %0,%%cr3" : : "r"(pointers));
    asm volatile("mov %0,%%cr4" : : "r"(0x20u));
    asm volatile("mov %%cr0,%%eax\nor $0x80000000,%%eax\nmov %%eax,%%cr0" : : : "eax", "memory");
}

static void unmap_window(void)
{
    asm volatile("mov %%cr0,%%eax\nand $0x7fffffff,%%eax\nmov %%eax,%%cr0" : : : "eax", "memory");
}

/* After the real ones. */
static void add_cpus(struct table *madt, unsigned count, uint32_t first_id)
{
    uint8_t *end = (uint8_t *)madt + madt->length;
    for (unsigned i = 0; i < count; i++) {
        const uint32_t entry[4] = { 9 | 16 << 8, first_id + i, 1, 0 };
        memcpy(end + 16 * i, entry, sizeof entry);
    }
    madt->length += 16 * count;
}

static void put_sum(struct table *t)
{
    t->checksum = 0;
    t->checksum = (uint8_t)-sum_of(t, t->length);
}

/* Copies all tables of the RSDT to `to`, which is seen by the CPU at `seen`, under a new RSDP. */
static void move_tables(const char *line, uint64_t to, physical seen)
{
    const struct rsdp *old = find_rsdp();
    const struct table *old_root = (const void *)old->rsdt;
    struct table *root = (void *)seen;
    unsigned count = (old_root->length - sizeof *root) / 4, at = 4096;
    memcpy(root, old_root, sizeof *root);
    memcpy(root->signature, "XSDT", 4);
    root->length = sizeof *root + 8 * count;
    for (unsigned i = 0; i < count; i++) {
        const struct table *t = (const void *)((const uint32_t *)(old_root + 1))[i];
        struct table *copy = (void *)(seen + at);
        uint64_t address = to + at;
        memcpy(copy, t, t->length);
        if (asked(line, "many") && equal(copy->signature, "APIC", 4))
            add_cpus(copy, 1000, 0x1000);
        if (asked(line, "ghosts") && equal(copy->signature, "APIC", 4))
            add_cpus(copy, 2, 0xd0);
        put_sum(copy);
        memcpy((uint8_t *)(root + 1) + 8 * i, &address, 8);
        at += (copy->length + 15) & ~15u;
    }
    put_sum(root);
    root->checksum = (uint8_t)(root->checksum + asked(line, "sum"));

    struct rsdp *rsdp = (void *)NEW_RSDP;
    memcpy(rsdp, old, 20);
    rsdp->revision = 2;
    rsdp->rsdt = asked(line, "sum") ? old->rsdt : 0;
    rsdp->length = sizeof *rsdp;
    rsdp->xsdt = to;
    rsdp->checksum = rsdp->extended_checksum = 0;
    rsdp->checksum = (uint8_t)-sum_of(rsdp, 20);
    rsdp->extended_checksum = (uint8_t)-sum_of(rsdp, sizeof *rsdp);
    asm volatile("movw %0,0x40e" : : "r"((uint16_t)(NEW_RSDP >> 4)) : "memory");
}

/* --- the kernel --- */

static uint32_t load(const struct module *m)
{
    for (physical p = m->start; p < m->start + 8192; p += 4) {
        const struct header *h = (const void *)p;
        if (h->magic != 0x1badb002 || h->magic + h->flags + h->checksum)
            continue;
        struct header copy = *h;
        memcpy((void *)copy.load_addr, (void *)(p - (copy.header_addr - copy.load_addr)),
               copy.load_end_addr - copy.load_addr);
        memset((void *)copy.load_end_addr, 0, copy.bss_end_addr - copy.load_end_addr);
        return copy.entry_addr;
    }
    stop("the module is no kernel");
    return 0;
}

void firmware_main(uint32_t magic, struct info *info)
{
    const char *line = (const char *)info->cmdline;
    if (magic != 0x2badb002 || !info->mods_count)
        stop("no kernel as module");
    uint32_t entry = load((const struct module *)info->mods_addr);
    if (asked(line, "high")) {
        map_window();
        move_tables(line, HIGH, WINDOW);
        unmap_window();
    } else if (asked(line, "sum") || asked(line, "many") || asked(line, "ghosts")) {
        move_tables(line, TABLES_LOW, TABLES_LOW);
    }
    if (asked(line, "lines"))
        leave_lines();
    if (asked(line, "service"))
        leave_in_service();
    if (asked(line, "registers"))
        leave_registers();
    for (const char *p = line; *p; p++)
        if (equal(p, "-- ", 3))
            info->cmdline = (uint32_t)(p + 3);
    info->flags &= ~(1u << 3);
    info->mods_count = 0;
    handover(entry, info);
}
