/* SPDX-License-Identifier: MIT */
/* The service fuzz in ring 3: one thread in a process of its own calls services with arguments that
 * are right, nearly right or hostile, and knows of each call what it must answer: by a model of the
 * objects, the handles and what they may do. A call is written so: arguments are drawn by the
 * functions here, each says what is wrong with what it drew, and FUZZ_ANSWER compares. */
#pragma once
#include "tests/ring3/etw.h"

enum fuzz_kind { FUZZ_NONE, FUZZ_THREAD, FUZZ_PROFILE, FUZZ_CONSUMER, FUZZ_PROCESS };

/* An object. */
struct fuzz_thing {
    enum fuzz_kind kind;
    unsigned handles; /* of the model; 0: free */
    bool started;     /* a profile */
    bool slow;        /* a profile that is not to be started */
    LONG session;     /* a consumer's, by number */
};

struct fuzz_slot {
    HANDLE handle;
    ACCESS_MASK access;
    struct fuzz_thing *thing; /* NULL: free */
};

struct fuzz_op {
    void (*call)(void);
    unsigned weight;
};
extern const struct fuzz_op fuzz_counter_ops[], fuzz_trace_ops[];

void fuzz_seed(uint64_t seed);
uint64_t fuzz_random(void);
unsigned fuzz_below(unsigned n);
bool fuzz_one_in(unsigned n);
/* One of the array's. */
#define FUZZ_ONE_OF(array) ((array)[fuzz_below(ARRAYSIZE(array))])

/* What the call must answer: this, unless something is wrong with an argument. STATUS_SUCCESS if
 * not said. */
void fuzz_expect(NTSTATUS status);
/* The call must fail; this is a reason. With several, any of them may be returned. */
void fuzz_refuse(NTSTATUS status);
/* The call may fail so for what others do. */
void fuzz_allow(NTSTATUS status);
bool fuzz_refused(void);
/* Compares and forgets; true: the call did what it should do. */
bool fuzz_answered(NTSTATUS status, const char *file, int line, const char *text);
#define FUZZ_ANSWER(call) fuzz_answered(call, __FILE__, __LINE__, #call)

/* Where to write so many bytes to: the caller's memory with guards around, seldom something bad,
 * which is a reason. */
void *fuzz_out(size_t size);
/* fuzz_out, or NULL, which is no reason. */
void *fuzz_out_optional(size_t size);
/* Nothing that is not there is written to: only whether it is bad is said. */
void *fuzz_late(size_t size, bool *bad);
/* Where these bytes can be read from, seldom something bad. */
const void *fuzz_in(const void *bytes, size_t size);
/* Not the caller's to read or write. */
void *fuzz_bad_pointer(void);

/* A handle: mostly to an object of the kind (FUZZ_NONE: any), which is returned if `wanted` access
 * is there too. Else NULL, and the reason is known. */
struct fuzz_slot *fuzz_handle(enum fuzz_kind kind, ACCESS_MASK wanted, HANDLE *handle);
/* A handle that there is not. */
HANDLE fuzz_no_handle(void);
struct fuzz_thing *fuzz_thing(enum fuzz_kind kind); /* a free one, NULL: none */
bool fuzz_full(void);
/* The kernel gave this handle. */
void fuzz_given(HANDLE handle, struct fuzz_thing *thing, ACCESS_MASK access);
/* And has closed it. */
void fuzz_taken(struct fuzz_slot *slot);
extern struct fuzz_thing fuzz_me;
extern unsigned fuzz_cpus, fuzz_number; /* the second: of this process among those that fuzz */
extern bool fuzz_pmu;
void fuzz_end_session(void);
extern bool fuzz_privileged; /* SeSystemProfilePrivilege is on */
