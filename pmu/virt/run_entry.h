/* SPDX-License-Identifier: MIT */
/* From an exit to the next entry (run_entry.c), with a delivery in software (deliver.c), and the
 * exits themselves (exits.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "kernel/base/insn.h"
#include "kernel/base/layout.h"
#include "pmu/virt/decode.h"

/* The guest's run: from its entry to its exit. */
struct run {
    uint64_t rip, rflags; /* at entry */
    uint64_t injected;    /* vmcb.inject at entry */
    bool user;            /* CPL 3 at entry */
    bool inject_failed;   /* the delivery of `injected` raised an exception */
    bool reentry;         /* any hypervisor's guest would have had the exit */
    bool soft_user;       /* the INT n that is injected came from ring 3 */
    unsigned soft_length; /* its bytes */
    uint64_t length;      /* instructions that the guest retired */
};

/* A single step by TF. */
struct step {
    bool active;             /* the run is one: TF is the host's */
    bool guest_tf;           /* the guest's own TF, meanwhile */
    bool guest_if;           /* the guest's IF before it */
    bool iret;               /* over the guest's IRET, which ends its NMI */
    bool alone;              /* of what an exit came for, which the guest is to execute itself */
    bool done;               /* the instruction was completed */
    struct insn insn;        /* its instruction */
    struct instruction code; /* the instruction decoded, if some counter needs it */
    uint64_t reaches;        /* of a foreign guest: the physical address of its access */
    uint64_t dr6;            /* the guest's, at entry */
};

/* Whether the instruction accesses this page of registers. */
static inline bool step_touches(const struct step *step, uint64_t page)
{
    return step->reaches / PAGE_SIZE == page / PAGE_SIZE;
}

void entry_prepare(struct vcpu *v);
void entry_account(struct vcpu *v, uint64_t clock);
/* Called when the entry that entry_prepare prepared did not take place. */
void entry_cancel(struct vcpu *v);
/* Whether a PMI that is due comes before the exit. */
bool entry_pmi_first(const struct vcpu *v);

/* Delivers what vmcb.inject holds. False: nothing changed, the processor must do it. */
bool deliver_in_software(struct vcpu *v);

void exit_handle(struct vcpu *v);
