/* SPDX-License-Identifier: MIT */
/* Page tables. vm_lock guards every process's lower half, the windows and the direct map; all other
 * tables of the kernel's half are made once at boot. All processes share that half. Source: Intel
 * SDM vol. 3 "4-level paging". */
#include "kernel/mm/vm.h"
#include "kernel/base/boot_info.h"
#include "kernel/base/cpu.h"
#include "kernel/base/irql.h"
#include "kernel/base/sanitize/kasan.h"
#include "kernel/base/lock.h"
#include "kernel/base/msr.h"
#include "kernel/base/x86.h"
#include "kernel/mm/phys.h"

#define LARGE_PAGE (2ul << 20)
#define DIRECT_SIZE (4ul << 30)

extern char text_start[], text_end[], rodata_end[], image_start[], image_end[];

static struct lock vm_lock = LOCK("vm", DISPATCH_LEVEL);
uint64_t *vm_kernel_pml4;
static void (*call_cpus)(struct cpu_set among, void (*function)(void *),
                         void *argument); /* written at boot */
static uint64_t nx = PTE_NX;              /* 0 on a CPU without it */

void vm_call_by(void (*call)(struct cpu_set among, void (*function)(void *), void *argument))
{
    call_cpus = call;
}

/* The CPUs whose TLBs may have entries of the table: those that run with it, because a write of
 * CR3 empties the TLB; for the kernel's table all. The caller has changed an entry, and the fence
 * orders that before the loads. vm_switch stores before the CPU reads the table. So a CPU that is
 * not found here reads the entry as it is now. */
static struct cpu_set users_of(const uint64_t *pml4)
{
    struct cpu_set users = cpu_all();
    if (pml4 == vm_kernel_pml4)
        return users;
    fence();
    for (unsigned c = 0; c < cpu_count; c++)
        if (__atomic_load_n(&cpus[c]->pml4, __ATOMIC_RELAXED) != pml4)
            cpu_set_remove(&users, c);
    return users;
}

static void on_users(const uint64_t *pml4, void (*function)(void *), void *argument)
{
    if (call_cpus)
        call_cpus(users_of(pml4), function, argument);
    else
        function(argument);
}

/* An entry: processors that walk the tables set bits of theirs in it at any time. */
static uint64_t get_entry(const uint64_t *entry)
{
    return __atomic_load_n(entry, __ATOMIC_RELAXED);
}
static void set_entry(uint64_t *entry, uint64_t value)
{
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
}

static unsigned index_of(uint64_t address, unsigned level)
{
    return address >> (12 + 9 * level) & 511;
}

/* The entry for `address` at `level` (0: pages of 4 KB). Makes missing tables with the flags
 * `make`; returns NULL if that is 0. L: vm_lock */
static uint64_t *walk(uint64_t *table, uint64_t address, unsigned level, uint64_t make)
{
    for (unsigned l = 3; l > level; l--) {
        uint64_t *entry = &table[index_of(address, l)];
        if (!(get_entry(entry) & PTE_PRESENT)) {
            void *page = make ? phys_alloc(1) : NULL;
            if (!page)
                return NULL;
            set_entry(entry, virt_to_phys(page) | make);
        }
        if (get_entry(entry) & PTE_LARGE)
            return NULL;
        table = phys_to_virt(get_entry(entry) & PTE_ADDRESS);
    }
    return &table[index_of(address, level)];
}

/* L: vm_lock: when the kernel starts nobody else is there. */
static void map_kernel(uint64_t address, uint64_t physical, unsigned level, uint64_t flags)
{
    uint64_t *entry = walk(vm_kernel_pml4, address, level, PTE_PRESENT | PTE_WRITE);
    if (!entry)
        panic("no memory for the kernel's page tables");
    set_entry(entry, physical | flags | PTE_PRESENT | (level ? PTE_LARGE : 0));
}

/* W^X holds for both views of the image: text and constants are not writable through the direct map
 * either. */
static uint64_t image_flags(uint64_t address)
{
    if (address >= (uint64_t)text_start && address < (uint64_t)text_end)
        return 0;
    return nx | (address >= (uint64_t)text_end && address < (uint64_t)rodata_end ? 0 : PTE_WRITE);
}

static uint64_t screen_size(void)
{
    const struct screen *s = &boot_info.screen;
    return s->kind == SCREEN_PIXELS ? (uint64_t)s->pitch * s->height : 0;
}

/* Whether the framebuffer has some of [at, at + size). */
static bool is_screen(uint64_t at, uint64_t size)
{
    uint64_t start = boot_info.screen.address, bytes = screen_size();
    return bytes && at < start + bytes && at + size > start;
}

static uint64_t screen_flags(void)
{
    return PTE_WRITE | nx | (cpu_features.pat ? PTE_COMBINED : PTE_UNCACHED);
}

static bool is_image(uint64_t at, uint64_t size)
{
    return at < (uint64_t)image_end - KERNEL_VMA && at + size > (uint64_t)image_start - KERNEL_VMA;
}

/* Pages of 2 MB; of 4 KB where one of them has part of the image or of the screen. */
static void map_direct(void)
{
    for (uint64_t p = 0; p < DIRECT_SIZE; p += LARGE_PAGE) {
        bool device = p >= VM_DEVICES && !phys_is_memory(p, LARGE_PAGE);
        uint64_t flags = PTE_WRITE | nx | (device ? PTE_UNCACHED : 0);
        if (!is_image(p, LARGE_PAGE) && !is_screen(p, LARGE_PAGE)) {
            map_kernel(DIRECT_MAP + p, p, 1, flags);
            continue;
        }
        for (uint64_t q = p; q < p + LARGE_PAGE; q += PAGE_SIZE)
            map_kernel(DIRECT_MAP + q, q, 0,
                       is_screen(q, PAGE_SIZE)  ? screen_flags()
                       : is_image(q, PAGE_SIZE) ? nx | (image_flags(KERNEL_VMA + q) & PTE_WRITE)
                                                : flags);
    }
    if (screen_size() && !vm_map_physical(boot_info.screen.address, screen_size(), screen_flags()))
        panic("no memory for the kernel's page tables");
}

/* L: vm_lock: as above. */
void vm_init(void)
{
    nx = cpu_features.nx ? PTE_NX : 0;
    vm_kernel_pml4 = phys_alloc(1);
    if (!vm_kernel_pml4)
        panic("no memory for the kernel's page tables");
    kasan_share(vm_kernel_pml4, nx);
    map_direct();
    for (uint64_t a = (uint64_t)text_start; a < (uint64_t)image_end; a += PAGE_SIZE)
        map_kernel(a, a - KERNEL_VMA, 0, image_flags(a));
    walk(vm_kernel_pml4, VM_WINDOW, 0, PTE_PRESENT | PTE_WRITE); /* 512 pages: 256 slots */
    vm_init_cpu();
}

/* 2 MB of the direct map. Drivers may ask on several CPUs at once. */
static bool map_device(uint64_t at, uint64_t flags)
{
    KIRQL irql = lock_acquire(&vm_lock);
    uint64_t *entry = walk(vm_kernel_pml4, DIRECT_MAP + at, 1, PTE_PRESENT | PTE_WRITE);
    /* Flags are only added: another range in this page may need those it has. */
    if (entry)
        set_entry(entry, get_entry(entry) | at | nx | flags | PTE_PRESENT | PTE_LARGE);
    lock_release(&vm_lock, irql);
    invlpg(DIRECT_MAP + at);
    return entry;
}

bool vm_map_physical(uint64_t physical, uint64_t size, uint64_t flags)
{
    uint64_t end, last = 1ul << cpu_features.physical_bits;
    if (__builtin_add_overflow(physical, size, &end) || end > last || end > VM_WINDOW - DIRECT_MAP)
        return false;
    if (!vm_kernel_pml4) /* before vm_init() */
        return end <= DIRECT_SIZE;
    uint64_t first = physical & ~(LARGE_PAGE - 1);
    bool mapped = true;
    for (uint64_t p = first > DIRECT_SIZE ? first : DIRECT_SIZE; mapped && p < end; p += LARGE_PAGE)
        mapped = map_device(p, flags);
    return mapped;
}

void vm_init_cpu(void)
{
    if (nx)
        wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_NXE);
    write_cr3(virt_to_phys(vm_kernel_pml4));
}

void vm_switch(const uint64_t *pml4)
{
    struct cpu *cpu = cpu_current();
    if (cpu->pml4 == pml4)
        return;
    __atomic_store_n(&cpu->pml4, pml4, __ATOMIC_RELEASE);
    write_cr3(virt_to_phys(pml4)); /* serializes: the store is seen before the table is read */
}

uint64_t *vm_create(void)
{
    uint64_t *pml4 = phys_alloc(1);
    for (unsigned i = 256; pml4 && i < 512; i++)
        pml4[i] = get_entry(&vm_kernel_pml4[i]);
    return pml4;
}

static void destroy_level(uint64_t *table, unsigned level, unsigned entries)
{
    for (unsigned i = 0; i < entries; i++)
        if (get_entry(&table[i]) & PTE_ADDRESS) {
            uint64_t *below = phys_to_virt(get_entry(&table[i]) & PTE_ADDRESS);
            if (level)
                destroy_level(below, level - 1, 512);
            else if (!(get_entry(&table[i]) & PTE_VIEW) &&
                     ((uint64_t)below - DIRECT_MAP >= (uint64_t)image_end - KERNEL_VMA ||
                      (uint64_t)below - DIRECT_MAP < (uint64_t)image_start - KERNEL_VMA))
                phys_free(below, 1); /* pages of the image are shared and stay */
        }
    phys_free(table, 1);
}

void vm_destroy(uint64_t *pml4) { destroy_level(pml4, 3, 256); }

bool vm_map(uint64_t *pml4, uint64_t address, uint64_t physical, uint64_t flags)
{
    KIRQL irql = lock_acquire(&vm_lock);
    uint64_t *entry = walk(pml4, address, 0, PTE_PRESENT | PTE_WRITE | PTE_USER);
    if (entry)
        set_entry(entry, physical | (flags & ~PTE_NX) | (flags & nx) | PTE_PRESENT);
    lock_release(&vm_lock, irql);
    return entry;
}

static void flush_page(void *address) { invlpg((uint64_t)address); }

uint64_t vm_unmap(uint64_t *pml4, uint64_t address)
{
    KIRQL irql = lock_acquire(&vm_lock);
    uint64_t *entry = walk(pml4, address, 0, 0);
    uint64_t old = entry ? __atomic_exchange_n(entry, 0, __ATOMIC_ACQ_REL) : 0;
    lock_release(&vm_lock, irql);
    if (!(old & PTE_PRESENT))
        return 0;
    on_users(pml4, flush_page, (void *)address);
    return old & PTE_ADDRESS;
}

uint64_t vm_entry(const uint64_t *pml4, uint64_t address)
{
    KIRQL irql = lock_acquire(&vm_lock);
    const uint64_t *entry = walk((uint64_t *)pml4, address, 0, 0);
    uint64_t value = entry ? get_entry(entry) : 0;
    lock_release(&vm_lock, irql);
    return value & PTE_PRESENT ? value : 0;
}

uint64_t vm_raw(const uint64_t *pml4, uint64_t address)
{
    KIRQL irql = lock_acquire(&vm_lock);
    const uint64_t *entry = walk((uint64_t *)pml4, address, 0, 0);
    uint64_t value = entry ? get_entry(entry) : 0;
    lock_release(&vm_lock, irql);
    return value;
}

bool vm_put(uint64_t *pml4, uint64_t address, uint64_t value)
{
    KIRQL irql = lock_acquire(&vm_lock);
    uint64_t *entry = walk(pml4, address, 0, PTE_PRESENT | PTE_WRITE | PTE_USER);
    if (entry)
        set_entry(entry, (value & ~PTE_NX) | (value & nx));
    lock_release(&vm_lock, irql);
    return entry;
}

uint64_t vm_next(const uint64_t *pml4, uint64_t from, uint64_t end, uint64_t *entry)
{
    KIRQL irql = lock_acquire(&vm_lock);
    while (from < end) {
        const uint64_t *table = pml4;
        unsigned level = 3;
        for (*entry = get_entry(&table[index_of(from, level)]); level && (*entry & PTE_PRESENT);
             *entry = get_entry(&table[index_of(from, level)])) {
            table = phys_to_virt(*entry & PTE_ADDRESS);
            level--;
        }
        if (*entry)
            break;
        uint64_t covered = (uint64_t)PAGE_SIZE << 9 * level;
        from = (from & ~(covered - 1)) + covered;
    }
    lock_release(&vm_lock, irql);
    return from < end ? from : end;
}

static void flush_all(void *) { write_cr3(read_cr3()); }

void vm_flush(const uint64_t *pml4) { on_users(pml4, flush_all, NULL); }

static bool is_writable(uint64_t entry)
{
    const uint64_t wanted = PTE_PRESENT | PTE_USER | PTE_WRITE;
    return (entry & wanted) == wanted;
}

uint64_t vm_hold_writable(const uint64_t *pml4, uint64_t address)
{
    KIRQL irql = lock_acquire(&vm_lock);
    const uint64_t *entry = walk((uint64_t *)pml4, address, 0, 0);
    uint64_t physical = entry && is_writable(get_entry(entry)) && !(get_entry(entry) & PTE_VIEW)
                            ? get_entry(entry) & PTE_ADDRESS
                            : 0;
    if (physical)
        phys_hold(physical);
    lock_release(&vm_lock, irql);
    return physical;
}

bool vm_user_writable(const uint64_t *pml4, uint64_t address, size_t size)
{
    if (!user_range((const void *)address, size))
        return false;
    for (uint64_t a = address & ~(uint64_t)(PAGE_SIZE - 1); a < address + size; a += PAGE_SIZE)
        if (!is_writable(vm_entry(pml4, a)))
            return false;
    return true;
}

static uint64_t window_address(unsigned slot)
{
    return VM_WINDOW + (uint64_t)slot * VM_WINDOW_PAGES * PAGE_SIZE;
}

void *vm_window_map(unsigned slot, uint64_t physical1, uint64_t physical2)
{
    uint64_t address = window_address(slot);
    vm_map(vm_kernel_pml4, address, physical1, PTE_WRITE | PTE_NX);
    if (physical2)
        vm_map(vm_kernel_pml4, address + PAGE_SIZE, physical2, PTE_WRITE | PTE_NX);
    return (void *)address;
}

void vm_window_unmap(unsigned slot)
{
    uint64_t address = window_address(slot);
    for (unsigned i = 0; i < VM_WINDOW_PAGES; i++) {
        uint64_t physical = vm_unmap(vm_kernel_pml4, address + i * PAGE_SIZE);
        if (physical)
            phys_free(phys_to_virt(physical), 1);
    }
}

bool user_range(const void *user, size_t size)
{
    uint64_t start = (uint64_t)user;
    return start < USER_END && size <= USER_END - start;
}
