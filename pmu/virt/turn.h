/* SPDX-License-Identifier: MIT */
/* The token: which CPU runs its guest. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* A CPU's part; other CPUs see what is atomic. */
struct token {
    unsigned member;
    uint64_t slice_end;
    bool awake;      /* L: the token; that of the holder who asked: its guest does not halt */
    bool parked;     /* L: the token; its guest waits for STARTUP, which alone wakes it */
    uint32_t taken;  /* the interrupt that woke it, as svm_take_interrupt returns it */
    uint32_t halted; /* atomic: in svm_wait */
    uint32_t asked;  /* atomic: whether it is awake */
    uint32_t nmi;    /* atomic: an NMI was sent by another host */
};

/* Returns when its guest may run. */
void token_join(struct vcpu *v);
/* How many have joined, and who. */
unsigned token_members(void);
struct vcpu *token_member(unsigned number);
/* Whether more than one CPU runs a guest. */
bool token_needed(void);
void token_pause(struct vcpu *v);
void token_halt(struct vcpu *v);
/* Before an entry: passes the token on if the slice is over. Returns when the next one is over. */
uint64_t token_slice(struct vcpu *v);
void token_collect_nmis(struct vcpu *v);
