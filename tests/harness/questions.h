/* SPDX-License-Identifier: MIT */
/* Questions that must change nothing, for whoever asks them: ring 0, ring 3. */
#pragma once
#include <stdint.h>

#define QUESTIONS_FIRST 0x40000000u
#define QUESTIONS_LAST 0x400001ffu
#define QUESTIONS_STATISTICS 1u /* the low byte of the leaf that counts exits, this one too */
#define QUESTIONS_TRIES 100u

/* What was answered twice; before and after that: what an exact RDPMC adds to an exact one, and how
 * many instructions one lacks that need not wait for the loop before it. */
struct questions {
    uint64_t answers[2], exact[2], lacking[2];
};

/* Instructions from one RDPMC to the next, which LFENCE makes exact; which instruction of three
 * bytes precedes the first: another LFENCE, or none that waits. */
#define QUESTIONS_WAITS ".byte 0x0f,0xae,0xe8"
#define QUESTIONS_NOP ".byte 0x0f,0x1f,0x00"
#define QUESTIONS_LOOK(selector, three_bytes)                                                      \
    __extension__({                                                                                \
        uint32_t low_, high_, first_;                                                              \
        asm volatile("mov $100,%%eax\n1: dec %%eax\njnz 1b\n.fill 16,1,0x90\n" three_bytes         \
                     "\nrdpmc\nmov %%eax,%2\nlfence\nrdpmc"                                        \
                     : "=&a"(low_), "=&d"(high_), "=&r"(first_)                                    \
                     : "c"(selector)                                                               \
                     : "memory", "cc");                                                            \
        low_ - first_;                                                                             \
    })

/* CPUID of each leaf of hypervisors; returns a sum of all answers. */
static inline uint64_t questions_answers(void)
{
    static const uint32_t subleaves[] = { 0, 1, 0xffffffff };
    uint64_t sum = 0;
    for (uint32_t leaf = QUESTIONS_FIRST; leaf <= QUESTIONS_LAST; leaf++)
        for (unsigned i = 0; i < sizeof subleaves / sizeof *subleaves; i++) {
            uint32_t a = leaf, b, c = subleaves[i], d;
            asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
            const uint32_t answer[] = { a, b, c, d };
            for (unsigned word = 0; (leaf & 0xff) != QUESTIONS_STATISTICS && word < 4; word++)
                sum = sum * 0x9e3779b97f4a7c15 + answer[word];
        }
    return sum;
}

/* An interrupt in between adds some: the least of three times. */
static inline void questions_look(struct questions *q, unsigned time, uint32_t selector)
{
    q->exact[time] = q->lacking[time] = UINT64_MAX;
    for (unsigned turn = 0; turn < 3; turn++) {
        uint64_t most = 0, least = UINT64_MAX, exact = QUESTIONS_LOOK(selector, QUESTIONS_WAITS);
        for (unsigned i = 0; i < QUESTIONS_TRIES; i++) {
            uint64_t added = QUESTIONS_LOOK(selector, QUESTIONS_NOP);
            most = added > most ? added : most;
            least = added < least ? added : least;
        }
        q->exact[time] = exact < q->exact[time] ? exact : q->exact[time];
        q->lacking[time] = most - least < q->lacking[time] ? most - least : q->lacking[time];
    }
}

/* The counter counts instructions of this ring. */
static inline struct questions questions_ask(uint32_t selector)
{
    struct questions q;
    questions_look(&q, 0, selector);
    q.answers[0] = questions_answers();
    q.answers[1] = questions_answers();
    questions_look(&q, 1, selector);
    return q;
}
