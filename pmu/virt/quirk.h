/* SPDX-License-Identifier: MIT */
/* Quirks: what processors and hypervisors do that their manuals do not say, each off unless the
 * word vpmu= names it. One row of the table in quirk.c for each. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { LVTMASK_NEVER = 1, LVTMASK_ALWAYS = 2 };
enum { V2BITS_KEEP = 1, V2BITS_FAULT = 2 };

/* What is off is 0, but for ipc and ref, which are then 1. Const once the guest runs. */
struct quirks {
    uint64_t step;     /* no instruction clock: step while something counts */
    uint64_t seed;     /* of everything below that is random */
    uint64_t irq3;     /* added to ring-3 instructions and branches by each interrupt, exception and
                        * NMI taken there */
    uint64_t ipc, ref; /* instructions in a cycle; cycles in a tick of event 3C/01 */
    uint64_t hybrid;   /* CPUs with odd numbers are small cores */
    uint64_t vmrun;    /* entering the guest again counts as one branch of its CPL */
    uint64_t noemul;   /* instructions that exit are not counted */
    uint64_t emulraw;  /* instructions that exit count 1, whatever CMASK, INV and EDGE say */
    uint64_t wrmsr;    /* signed: instructions added by the WRMSR that enables a counter */
    uint64_t anythread;  /* the AnyThread bits are legal */
    uint64_t metrics;    /* PERF_METRICS, by RDPMC 2000_0000h too */
    uint64_t gp;         /* general-purpose counters */
    uint64_t sticky;     /* reserved bits of an event select that keep what is written */
    uint64_t noset;      /* no C000_0303h */
    uint64_t v2alias;    /* C000_0300h to 0302h also at 38Eh to 390h */
    uint64_t v2bits;     /* reserved bits of AMD's global control keep what is written; or those of
                          * all global registers fault */
    uint64_t uncore;     /* below version 4, 391h and 392h are registers of the uncore */
    uint64_t fastrdpmc;  /* RDPMC with ECX[31] reads the low half; AMD's ignores ECX[30] */
    uint64_t misc;       /* what MISC_ENABLE reads */
    uint64_t ignoremsrs; /* absent MSRs read 0 and ignore writes */
    uint64_t hyperv; /* 4000_0000h is a Microsoft-compatible hypervisor's, which says that there are
                      * no counters; the leaves of own_leaf.c follow at 4000_0100h */
    uint64_t kvm;    /* 4000_0000h is KVM's; the leaves of own_leaf.c follow in the same way */
    uint64_t lvtmask;           /* whether a PMI masks its LVT entry, against the vendor's rule */
    uint64_t skid, skid_spread; /* instructions from an overflow to its PMI, more or less */
    uint64_t twice;             /* each PMI comes again a few instructions later */
    uint64_t lostpmi;           /* one PMI in so many is lost, while two or more counters run */
    uint64_t contend;           /* counters that the host has to give; the others stand still */
    uint64_t throttle; /* overflows of a counter in a millisecond; one more, and it stops until the
                          next */
    uint64_t left;     /* counters that firmware left enabled, as global control numbers them */
    uint64_t owned;    /* the same, and firmware enables them again every 10 ms */
    uint64_t dead;     /* counters that swallow writes, the same */
    uint64_t far;      /* added to instructions and branches by each far transfer */
    uint64_t wrap0;    /* a counter that is at 0 has not overflowed until the next event */
    uint64_t freeze_lag;      /* instructions from a PMI until counters freeze */
    uint64_t smi, smi_length; /* microseconds from SMI to SMI; instructions of its handler */
    uint64_t smi3;            /* its handler counts as ring 3's */
    uint64_t exitcost;        /* what an access to the PMU takes, in units of the clock */
    uint64_t pit;             /* the PIT's clock is gated */
    uint64_t pitjitter;       /* the CPU is sometimes away when the PIT's output rises */
    uint64_t c1e;             /* the local APIC's timer stands still in HLT */
    uint64_t debugctl;        /* bits 14:11 are ignored */
};

extern struct quirks virt_quirks;
#define DEBUGCTL_IGNORED (0xful << 11)

/* Reads "word,word=value,..." behind a model's name for a processor of this vendor. False after one
 * line that says what is wrong, and what there is. */
bool quirk_parse(const char *words, const char *vendor);
/* Quirk number n, as CPUID tells it: whether it is on, its name, padded with zeros to 12 bytes, and
 * two values. False: there is none. */
bool quirk_tell(unsigned n, bool *on, char name[12], uint64_t value[2]);
