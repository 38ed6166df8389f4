/* SPDX-License-Identifier: MIT */
/* The virtual PMU's own structures: one struct vcpu per CPU, touched by that CPU's host side only.
 * Source: AMD64 APM volume 2, "VMCB Layout", "SVM Intercept Exit Codes". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pmu/virt/model.h"

#define HOST_STACK_SIZE 16384

/* Attributes: bits 40 to 47 and 52 to 55 of a descriptor. Flat, present, accessed. */
#define SEGMENT_CODE64 0xa9bu
#define SEGMENT_CODE32 0xc9bu
#define SEGMENT_DATA 0xc93u
#define SEGMENT_LONG (1u << 9)
#define SEGMENT_BIG (1u << 10)
#define SEGMENT_RING3 0x60u /* DPL 3 */

struct segment {
    uint16_t selector, attributes;
    uint32_t limit;
    uint64_t base;
};

/* Control area first, saved state from 400h. */
struct vmcb {
    uint32_t intercept_cr, intercept_dr, intercept_exceptions, intercept_misc, intercept_svm;
    uint8_t unused0[0x2c];
    uint64_t io_map;
    uint64_t msr_map;
    uint64_t tsc_offset;
    uint32_t asid, tlb_control;
    uint64_t vintr, shadow;
    uint64_t exit_code, exit_info1, exit_info2, exit_int_info;
    uint64_t nested_paging;
    uint8_t unused1[0x10];
    uint64_t inject;
    uint8_t unused2[0x400 - 0xb0];
    struct segment es, cs, ss, ds, fs, gs, gdtr, ldtr, idtr, tr;
    uint8_t unused3[0x2b], cpl;
    uint32_t unused4;
    uint64_t efer;
    uint8_t unused5[0x70];
    uint64_t cr4, cr3, cr0, dr7, dr6, rflags, rip;
    uint8_t unused6[0x58];
    uint64_t rsp;
    uint8_t unused7[0x18];
    uint64_t rax;
    uint8_t unused8[0x40];
    uint64_t cr2;
    uint8_t unused9[0x1000 - 0x648];
};
_Static_assert(offsetof(struct vmcb, io_map) == 0x40, "APM");
_Static_assert(offsetof(struct vmcb, msr_map) == 0x48, "APM");
_Static_assert(offsetof(struct vmcb, exit_code) == 0x70, "APM");
_Static_assert(offsetof(struct vmcb, inject) == 0xa8, "APM");
_Static_assert(offsetof(struct vmcb, es) == 0x400, "APM");
_Static_assert(offsetof(struct vmcb, cpl) == 0x4cb, "APM");
_Static_assert(offsetof(struct vmcb, efer) == 0x4d0, "APM");
_Static_assert(offsetof(struct vmcb, cr4) == 0x548, "APM");
_Static_assert(offsetof(struct vmcb, rip) == 0x578, "APM");
_Static_assert(offsetof(struct vmcb, rsp) == 0x5d8, "APM");
_Static_assert(offsetof(struct vmcb, rax) == 0x5f8, "APM");
_Static_assert(offsetof(struct vmcb, cr2) == 0x640, "APM");
_Static_assert(sizeof(struct vmcb) == 4096, "APM");

/* clang-format off */
enum {
    EXIT_WRITE_DR5 = 0x35, EXIT_WRITE_DR7 = 0x37,
    EXIT_EXCEPTION = 0x40, EXIT_INTR = 0x60, EXIT_NMI = 0x61, EXIT_RDPMC = 0x6f, EXIT_CPUID = 0x72,
    EXIT_IRET = 0x74, EXIT_SOFT_INT = 0x75, EXIT_PAUSE = 0x77, EXIT_HLT = 0x78, EXIT_INVLPGA = 0x7a,
    EXIT_IO = 0x7b, EXIT_MSR = 0x7c, EXIT_SHUTDOWN = 0x7f, EXIT_VMRUN = 0x80, EXIT_VMMCALL = 0x81, EXIT_SKINIT = 0x86,
    EXIT_MONITOR = 0x8a, EXIT_MWAIT = 0x8b,
};
/* clang-format on */

#define EXIT_INVALID 0xffffffffu /* VMRUN refused the guest's state; the upper half may be 0 */

/* intercept_misc */
#define CATCH_INTR (1u << 0)
#define CATCH_NMI (1u << 1)
#define CATCH_RDPMC (1u << 15)
#define CATCH_CPUID (1u << 18)
#define CATCH_IRET (1u << 20)
#define CATCH_SOFT_INT (1u << 21)
#define CATCH_PAUSE (1u << 23)
#define CATCH_HLT (1u << 24)
#define CATCH_INVLPGA (1u << 26)
#define CATCH_IO (1u << 27)
#define CATCH_MSR (1u << 28)
#define CATCH_SHUTDOWN (1u << 31)
#define CATCH_DR7 (1u << 21 | 1u << 23) /* intercept_dr: writes of DR5 and DR7 */
#define CATCH_SVM 0xc7fu                /* intercept_svm: VMRUN to SKINIT, MONITOR, MWAIT */
#define CATCH_EXCEPTIONS 0xfffffffbu    /* all but vector 2 */

/* inject, exit_int_info */
#define INJECT_INTERRUPT (0ul << 8)
#define INJECT_NMI (2ul << 8)
#define INJECT_EXCEPTION (3ul << 8)
#define INJECT_SOFT_INT (4ul << 8)
#define INJECT_TYPE (7ul << 8)
#define INJECT_HAS_CODE (1ul << 11)
#define INJECT_VALID (1ul << 31)

enum { VECTOR_DB = 1, VECTOR_BP = 3, VECTOR_UD = 6, VECTOR_DF = 8, VECTOR_GP = 13, VECTOR_PF = 14 };
#define DR6_SINGLE_STEP (1u << 14)

/* In the order of the register numbers; RAX and RSP are in the VMCB, and svm.asm uses their
 * places here. */
struct registers {
    uint64_t vmcb, rcx, rdx, rbx, start, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15;
};
_Static_assert(offsetof(struct registers, r11) == 88, "svm.asm");

/* blocks.c: the guest's registers while the host executes blocks of its code with RSP here. */
enum { SLOT_ZERO = 16, SLOT_FS, SLOT_GS, SLOTS };
struct block_state {
    uint64_t r[SLOTS]; /* by number; then those of addresses: 0, and the bases of FS and GS */
    uint64_t flags;    /* as LAHF and SETO AL give them: OF is bit 0, SF ZF AF PF CF from bit 8 */
    uint64_t pointer;  /* the host's address of the memory operand */
    uint64_t host_rsp;
};

/* decode.c */
struct instruction {
    uint32_t effects; /* EFFECT(event), all but what predict.c adds */
    uint64_t address; /* of its load or store */
    uint64_t next;    /* of a conditional branch: where RIP is if it is not taken */
    bool flush;       /* CLFLUSH of address */
};

/* predict.c */
enum { PREDICTED = 256, FIRST_LINES = 128, LAST_LINES = 2048 };
struct predictor {
    uint8_t taken[PREDICTED];
};
struct caches {
    uint64_t first[FIRST_LINES], last[LAST_LINES];
};

struct vcpu {
    struct vmcb vmcb;
    uint8_t host_save[4096];
    struct {
        uint32_t nmis;       /* NMIs that the host took; svm_nmi finds the count below its stack */
        uint8_t below[1020]; /* of an NMI, while RSP is at `state` */
        struct block_state state;
        uint8_t bytes[HOST_STACK_SIZE - 1024 - sizeof(struct block_state)];
    } stack __attribute__((aligned(HOST_STACK_SIZE)));
    struct registers r;
    unsigned number;
    uint32_t host_apic_id, pkru; /* pkru: the guest's, for blocks.c; 0 without protection keys */
    uint32_t nmis_seen;          /* of stack.nmis */

    /* What the guest believes. */
    bool sce;             /* the guest's EFER.SCE; the real one is clear while something counts */
    uint16_t sysenter_cs; /* the guest's; the real one is 0 while something counts */
    bool sysenter_hidden; /* the real SYSENTER_CS is 0 now */
    bool nmi_blocked;     /* an injected NMI has not reached its IRET */
    bool nmi_pending;
    struct pmu pmu;
    struct predictor predictor;
    struct caches caches;

    /* The exit being handled. */
    bool stepping;                     /* TF is ours */
    bool guest_tf;                     /* ... and this is the guest's */
    bool step_iret;                    /* the step is over the guest's IRET */
    uint8_t step_op[3], step_prefixes; /* opcode of the instruction stepped, bytes before it */
    struct instruction step_code;      /* ... decoded, if some counter needs it */
    bool step_done;                    /* the instruction was completed */
    bool io_alone;                     /* the next is INS or OUTS, and accesses ports itself */
    bool entry_user;                   /* CPL 3 at entry */
    bool inject_failed;                /* the delivery of `injected` raised an exception */
    uint64_t entry_rip, entry_dr6,
        injected;         /* injected: vmcb.inject at entry; entry_dr6: the guest's */
    uint64_t run_length;  /* instructions the guest retired from its entry to the exit */
    unsigned soft_length; /* of the INT n that is injected */
    bool reentry;         /* any hypervisor's guest would have had this exit */
    bool soft_user;       /* the INT n came from ring 3 */

    uint64_t retired[2]; /* kernel, user; while something counts or several CPUs run */
    struct statistics {
        uint64_t rdpmc, rdmsr, wrmsr, pmi, exits, steps, alarms, passes;
    } statistics;

    /* clock.c */
    bool hides;                     /* the guest must not see how long its step takes */
    uint64_t hidden;                /* time that it has not seen */
    uint64_t left_at, left_retired; /* since then its time is not accounted for; instructions */

    /* quirks: firmware.c by the clock, platform.c */
    uint64_t random;
    uint64_t smi_at, owner_at, tick_at; /* next */
    bool pit_armed; /* channel 2 was written since its output was read as high */
    unsigned pit_windows;
    uint32_t timer_left, timer_period; /* of the timer that C1E stopped; 0: none */

    /* alarm.c */
    uint64_t alarm_at; /* when its NMI comes, by the clock; 0: none is coming */
    bool alarm_rang;   /* it ended the last run of the guest */
    bool aimed;        /* set for this entry */
    uint64_t aimed_at,
        way_in; /* the clock at that time; the least it ever advanced from there to the guest */

    /* baton.c; the atomic ones are seen by other CPUs */
    unsigned member;
    uint64_t slice_end;
    bool awake;         /* L: the baton; that of the holder who asked: its guest does not halt */
    uint32_t taken;     /* the interrupt that woke it, as svm_take_interrupt returns it */
    uint32_t halted;    /* atomic: in svm_wait */
    uint32_t asked;     /* atomic: whether it is awake */
    uint32_t baton_nmi; /* atomic: an NMI was sent by another host */
};

/* svm.asm */
#define SVM_NOT_RUN UINT64_MAX
uint64_t svm_run(uint64_t vmcb, struct registers *r, const uint32_t *nmis, uint32_t seen);
void svm_launch(struct vcpu *v, void *host_stack_top, uint64_t *rsp, uint64_t *rip,
                void (*host)(struct vcpu *v));
void svm_run_call(void);
void svm_run_int(void);
void svm_run_undefined(void);
#define TAKEN 256u /* added to a vector */
uint32_t svm_take_interrupt(void);
uint32_t svm_halt(void);
void svm_wait(uint32_t *halted, const uint32_t *nmis, uint32_t seen);
void svm_nmi(void);
/* VMSAVE: the guest's TR, LDTR, FS and GS into its VMCB. */
void svm_save(uint64_t vmcb);
extern char svm_stubs[];

/* host.c */
/* Starts the virtual PMU; returns the first CPU, or NULL after one line: unknown model, no SVM. */
struct vcpu *virt_start(const char *text);

/* Runs the guest whose whole state is in the VMCB. */
__attribute__((noreturn)) void virt_enter(struct vcpu *v);

/* vcpu.c */
uint64_t virt_physical(const void *p);
/* A number below 2^31, by the seed. */
uint64_t virt_random(struct vcpu *v);
/* Ends the machine after a line about this CPU. */
__attribute__((noreturn)) void virt_die(const struct vcpu *v, const char *why);
/* The guest did what resets a processor. */
__attribute__((noreturn)) void virt_end_guest(const struct vcpu *v, const char *why);
extern bool virt_foreign; /* the guest is not this kernel */
__attribute__((noreturn)) void virt_host_fault(unsigned vector, const uint64_t *frame);
/* Long mode segments by their selectors; CS decides the CPL. */
void virt_set_segment(struct segment *s, uint16_t selector, uint16_t attributes);
void virt_set_cpl(struct vcpu *v, uint16_t cs, uint16_t ss);
/* The guest raises this at its next entry. */
void virt_raise(struct vcpu *v, unsigned vector, uint32_t code);
/* Called when an intercepted instruction is done: raises #DB if the guest's own TF is set. */
void virt_trap(struct vcpu *v);

/* vmcb.c */
bool vmcb_has_svm(void);
/* Makes the tables that all CPUs share. Once, before the two below. */
void vmcb_init(void);
void vmcb_enable_svm(struct vcpu *v);
/* The guest starts with the state that this CPU has now. */
void vmcb_make(struct vcpu *v);

/* machine.c */
/* Reads what vpmu= says: a model, then quirks. False after one line that says what is wrong. */
bool machine_choose(const char *text);
/* The model of this CPU; vpmu= as it is printed; the machine's name, or "". */
const struct model *machine_model(unsigned cpu);
const char *machine_text(void);
const char *machine_name(void);
/* clock.c */
extern bool virt_step;      /* no instruction clock: step while something counts */
extern uint64_t clock_cost; /* what svm_run returns for a run of 0 instructions */
/* 1 if the clock counts an INT n, or an undefined opcode, although the exit comes first; else 0. */
extern uint64_t clock_soft_int, clock_undefined;
extern bool clock_dr6_stays; /* an intercepted #DB does not set DR6 */
/* Measures them with v's VMCB, which is unchanged afterwards; decides virt_step and prints it. */
void clock_start(struct vcpu *v);
/* Before and behind each run of the guest: what time it sees. clock: what svm_run returned. */
void clock_enter(struct vcpu *v);
void clock_leave(struct vcpu *v, uint64_t clock);

/* entry.c: from an exit to the next entry. */
void entry_prepare(struct vcpu *v);
void entry_account(struct vcpu *v, uint64_t clock);
/* Called when the entry that entry_prepare prepared did not take place. */
void entry_cancel(struct vcpu *v);
/* Whether a PMI that is due comes before the exit. */
bool entry_pmi_first(const struct vcpu *v);

/* INT n and INT3. */
#define EFFECTS_SOFT_INT (EFFECT(EVENT_BRANCHES) | EFFECT(EVENT_FAR) | EFFECT(EVENT_STORES))

/* decode.c: the one at RIP. */
void instruction_decode(const struct vcpu *v, struct instruction *i);

/* predict.c: all effects of the instruction that was decoded at entry_rip and is done. */
uint32_t instruction_effects(struct vcpu *v, const struct instruction *i);

/* deliver.c: delivers what vmcb.inject holds. False: nothing changed, the processor must do it. */
bool deliver_in_software(struct vcpu *v);

/* exit.c */
void exit_handle(struct vcpu *v);

/* guest.c */
/* Copies from the guest's address space; how many bytes could be read. */
unsigned guest_read(const struct vcpu *v, uint64_t address, void *to, unsigned size);
bool guest_write64(const struct vcpu *v, uint64_t address, uint64_t value);
/* The physical address; UINT64_MAX: not mapped, or out of reach. */
uint64_t guest_physical(const struct vcpu *v, uint64_t address);
bool guest_in_long_mode(const struct vcpu *v);
/* Returns how many prefixes the opcode at RIP has; op: zeros where it cannot be read. */
unsigned guest_code(const struct vcpu *v, uint8_t op[3]);

/* debug.c */
/* Turn the guest's breakpoints on before each entry and off behind it. */
void debug_enter(const struct vcpu *v);
void debug_leave(const struct vcpu *v);
/* Executes the guest's MOV to DR5 or DR7; false: it raised an exception. */
bool debug_write_dr7(struct vcpu *v, unsigned number);
/* Keep DR6 right over a step. The second returns whether the instruction was completed. */
void debug_begin_step(struct vcpu *v);
bool debug_end_step(struct vcpu *v);
/* After a #DB exit: whether the guest has to see it. */
bool debug_is_guests(struct vcpu *v);

/* emulate.c */
/* Executes the SYSCALL, SYSRET, SYSENTER or SYSEXIT at RIP, or raises what the model's processor
 * raises. False: there is none of them. */
bool emulate_syscall(struct vcpu *v);
/* Makes them fault, or not; returns the exceptions by which they do. */
uint32_t emulate_hide_syscalls(struct vcpu *v, bool hide);
/* The guest's WRMSR of SYSENTER_CS. */
void emulate_set_sysenter_cs(struct vcpu *v, uint64_t value);

/* cpuid.c */
void virt_cpuid(struct vcpu *v);

/* own_leaf.c */
/* The virtual PMU's own leaves; false: this is none of them. */
bool own_leaf(const struct vcpu *v, uint32_t leaf, uint32_t subleaf, uint32_t r[4]);

/* firmware.c */
/* Called after reset: what firmware leaves in the registers. */
void firmware_start(struct vcpu *v);
/* Before each entry: does what is due by the clock. firmware_next: when the next is due. */
void firmware_run(struct vcpu *v);
uint64_t firmware_next(const struct vcpu *v);

/* platform.c */
void platform_find_pm_timer(void); /* of a foreign guest; before platform_io_map */
uint64_t platform_io_map(void);
bool platform_io(struct vcpu *v);   /* false: the guest must do it, in a step */
void platform_spin(uint64_t clock); /* lets so much time pass */
/* Around HLT; and before the guest takes an interrupt. */
void platform_timer_stop(struct vcpu *v);
void platform_timer_go_on(struct vcpu *v);
void platform_interrupt(struct vcpu *v, uint32_t vector);

/* baton.c */
void baton_join(struct vcpu *v);
/* Whether more than one CPU runs a guest. */
bool baton_needed(void);
void baton_pause(struct vcpu *v);
void baton_halt(struct vcpu *v);
/* Before an entry: passes the baton on if the slice is over. Returns when the next one is over. */
uint64_t baton_slice(struct vcpu *v);
void baton_collect_nmis(struct vcpu *v);

/* alarm.c: one HPET comparator, through the IO-APIC, as an NMI to the CPU that runs its guest. */
extern uint64_t alarm_tick; /* clock units */
extern uint64_t clock_us;   /* clock units in a microsecond; a guess without HPET */
/* Finds a comparator and a pin that work; v is this CPU, on its host stack. */
bool alarm_init(struct vcpu *v);
/* Whether this CPU's alarm has gone off, or may go off before another one is set. Then there
 * would be two NMIs, and one of them would be taken for the guest's. */
bool alarm_is_near(const struct vcpu *v);
/* Requests an NMI at `at` of the clock, or earlier; returns whether the comparator was set. */
bool alarm_want(struct vcpu *v, uint64_t at);
/* Takes the alarm over, for `at`, if it is still directed to another CPU. It would wake that
 * CPU, and the clock, which all CPUs share, would add its instructions to those of the guest
 * here. For runs that need no alarm of their own. */
void alarm_claim(struct vcpu *v, uint64_t at);
/* Whether an NMI may be the alarm's; true at most once for each alarm. */
bool alarm_due(struct vcpu *v);
/* Whether the instruction that is stepped accesses the HPET. */
bool alarm_is_touched(const struct vcpu *v);
/* Sets the HPET back by so much, in units of the clock; returns how much it was. */
uint64_t alarm_set_back(uint64_t clock);
/* Sends a PMI as the guest's LVT entry says, and masks the entry if `mask`. */
void host_apic_pmi(struct vcpu *v, bool mask);
void host_apic_nmi(uint32_t id);
uint32_t host_apic_read(unsigned at);
void host_apic_write(unsigned at, uint32_t value);
uint32_t host_apic_id(void);
