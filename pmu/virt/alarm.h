/* SPDX-License-Identifier: MIT */
/* The alarm: one HPET comparator, through the IO-APIC, as an NMI to the CPU that runs its guest;
 * and the local APIC. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* A CPU's part. */
struct alarm {
    uint64_t at;       /* when its NMI comes, by the clock; 0: none is coming */
    bool rang;         /* it ended the last run of the guest */
    bool aimed;        /* set for this entry */
    uint64_t aimed_at; /* the clock at that time */
    uint64_t way_in;   /* the least that the clock ever advanced from there to the guest */
};

extern uint64_t alarm_tick; /* clock units */
extern uint64_t clock_us;   /* clock units in a microsecond; a guess without HPET */

/* Finds a comparator and a pin that work; v is this CPU, on its host stack. */
bool alarm_init(struct vcpu *v);
/* Whether this CPU's alarm has gone off, or may go off before another one is set. Then there
 * would be two NMIs, and one of them would be taken for the guest's. */
bool alarm_is_near(const struct vcpu *v);
/* Requests an NMI at `at` of the clock, or earlier; returns whether the comparator was set. */
bool alarm_want(struct vcpu *v, uint64_t at);
/* Requests it only if the alarm is still directed to another CPU: it would wake that CPU, and the
 * clock, which all CPUs share, would add its instructions to those of the guest here. For runs that
 * need no alarm of their own. */
void alarm_claim(struct vcpu *v, uint64_t at);
/* Whether an NMI may be the alarm's; true at most once for each alarm. */
bool alarm_due(struct vcpu *v);
/* Sets the HPET back by so much, in units of the clock; returns how much it was. */
uint64_t alarm_set_back(uint64_t clock);

#define HOST_APIC 0xfee00000ul
#define HPET 0xfed00000ul

/* Sends a PMI as the guest's LVT entry says, and masks the entry if `mask`. */
void host_apic_pmi(struct vcpu *v, bool mask);
/* A command to the CPU with this id; ICR2 stays the guest's. */
#define ICR_NMI 0x4400u
#define ICR_INIT 0x4500u
#define ICR_STARTUP 0x4600u /* and the number of the page */
void host_apic_send(uint32_t id, uint32_t command);
void host_apic_send_self(uint32_t vector);
uint32_t host_apic_read(unsigned at);
void host_apic_write(unsigned at, uint32_t value);
uint32_t host_apic_id(void);
