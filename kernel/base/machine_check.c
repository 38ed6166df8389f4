/* SPDX-License-Identifier: MIT */
/* Machine checks: the registers of each bank that has an error. The first CPU's are kept: on Intel
 * all CPUs get the exception at the same time. No lock, any IRQL. Source: Intel SDM vol. 3
 * "Machine-Check Architecture"; AMD APM vol. 2 "Machine Check Architecture". */
#include "kernel/base/machine_check.h"
#include "kernel/base/cpu.h"
#include "kernel/base/print.h"
#include "kernel/base/x86.h"

#define MCG_CAP 0x179
#define MCG_STATUS 0x17a
#define MC_STATUS(bank) (0x401 + 4 * (bank))
#define MC_ADDR(bank) (0x402 + 4 * (bank))
#define MC_MISC(bank) (0x403 + 4 * (bank))
#define STATUS_VALID (1ul << 63)
#define STATUS_MISC (1ul << 59)
#define STATUS_ADDR (1ul << 58)
#define BANKS 64u

static struct {
    uint64_t status, address, misc;
} noted[BANKS]; /* the CPU by_cpu writes them */
static uint64_t global_status;
static unsigned banks;
static unsigned by_cpu = MAX_CPUS; /* atomic; MAX_CPUS: there was none */

static uint64_t read_or_0(uint32_t msr)
{
    uint64_t value = 0;
    return rdmsr_fault(msr, &value) ? 0 : value;
}

static void read_banks(void)
{
    global_status = read_or_0(MCG_STATUS);
    banks = (unsigned)read_or_0(MCG_CAP) & 0xff;
    banks = banks > BANKS ? BANKS : banks;
    for (unsigned i = 0; i < banks; i++) {
        noted[i].status = read_or_0(MC_STATUS(i));
        if (noted[i].status & STATUS_VALID && noted[i].status & STATUS_ADDR)
            noted[i].address = read_or_0(MC_ADDR(i));
        if (noted[i].status & STATUS_VALID && noted[i].status & STATUS_MISC)
            noted[i].misc = read_or_0(MC_MISC(i));
    }
}

bool machine_check_note(void)
{
    unsigned nobody = MAX_CPUS;
    bool first = __atomic_compare_exchange_n(&by_cpu, &nobody, cpu_number(), false,
                                             __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (first)
        read_banks();
    wrmsr_fault(MCG_STATUS, 0); /* MCIP: while it is set the next one shuts the processor down */
    if (!first && nobody != cpu_number())
        for (;;)
            cli_hlt();
    return first;
}

void machine_check_print(void)
{
    if (__atomic_load_n(&by_cpu, __ATOMIC_ACQUIRE) != cpu_number())
        return;
    unsigned valid = 0;
    print("# machine check on CPU %u: MCG_STATUS %lx, %u banks\n", by_cpu, global_status, banks);
    for (unsigned i = 0; i < banks; i++) {
        if (!(noted[i].status & STATUS_VALID))
            continue;
        valid++;
        print("#   bank %u: status %lx, address %lx, misc %lx\n", i, noted[i].status,
              noted[i].address, noted[i].misc);
    }
    if (!valid)
        print("#   no bank has a valid error\n");
}
