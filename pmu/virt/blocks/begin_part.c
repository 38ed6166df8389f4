/* SPDX-License-Identifier: MIT */
/* What a block's part does beside its code, and before: the access to memory, jumps, pushes. */
#include "kernel/base/layout.h"
#include "pmu/virt/blocks/blocks.h"
#include "pmu/virt/blocks/places.h"

/* Whether it surely raises no #DE: the quotient fits. */
static bool may_divide(const uint64_t r[], const struct part *p, const uint8_t *operand)
{
    uint64_t divisor = get64(operand), low = p->wide ? r[RAX] : (uint32_t)r[RAX];
    uint64_t high = p->wide ? r[RDX] : (uint32_t)r[RDX];
    if (!p->wide)
        divisor = (uint32_t)divisor;
    if (!p->is_signed)
        return high < divisor;
    uint64_t minus_one = p->wide ? UINT64_MAX : UINT32_MAX, sign = minus_one / 2 + 1;
    return divisor && divisor != minus_one && high == (low & sign ? minus_one : 0);
}

/* Whether the block may write there: not in its own code. */
static bool may_store(const struct block *b, const uint8_t *memory, unsigned size)
{
    if (!place_may_hold_code((uint64_t)memory))
        return true;
    places_time++;
    blocks_unlink();
    return (uint64_t)(memory - b->code + size - 1) >= b->length + size - 1;
}

static bool push_value(struct vcpu *v, const struct block *b, uint64_t value)
{
    uint64_t *rsp = &v->stack.state.r[RSP];
    bool fits = ((*rsp - 8) & (PAGE_SIZE - 1)) <= PAGE_SIZE - 8;
    uint8_t *memory = fits ? place_find(v, *rsp - 8, ACCESS_WRITE) : NULL;
    if (!memory || !may_store(b, memory, 8))
        return false;
    put64(memory, value);
    *rsp -= 8;
    return true;
}

/* What the part does beside its code; false: it must be stepped. memory: what it accesses, or
 * the register that is its operand. */
static bool do_special(struct vcpu *v, const struct part *p, uint8_t *memory, struct block *b)
{
    uint64_t *r = v->stack.state.r, *target = &b->way[true].rip;
    switch (p->special) {
    case DIVIDE: return may_divide(r, p, memory);
    case LEAVE: r[RSP] = r[RBP] + 8; return true;
    case STRING: return strings_run_part(v, p);
    case PUSH_LOADED: return push_value(v, b, get64(memory));
    case CALL: put64(memory, b->way[false].rip); return true;
    case JUMP_LOADED: *target = get64(memory); return guest_is_canonical(v, *target);
    case CALL_LOADED:
        *target = get64(memory);
        return guest_is_canonical(v, *target) && push_value(v, b, b->way[false].rip);
    case JUMP_REGISTER:
    case CALL_REGISTER:
        *target = r[p->operand];
        if (guest_is_canonical(v, *target) && p->special == CALL_REGISTER)
            put64(memory, b->way[false].rip);
        return guest_is_canonical(v, *target);
    }
    return true;
}

/* The access that a part begins with; NULL: it must be stepped. */
static inline uint8_t *find_access(const struct vcpu *v, const struct part *p,
                                   const struct block *b, uint64_t address)
{
    enum access access = p->store ? ACCESS_WRITE : ACCESS_READ;
    const struct place *place = place_entry(address, access);
    uint64_t at = address - place->page;
    if (address & p->aligned)
        return NULL;
    if (at <= PAGE_SIZE - (uint64_t)p->size)
        return place->host + at;
    if ((address & (PAGE_SIZE - 1)) + p->size > PAGE_SIZE)
        return NULL;
    uint8_t *memory = place_look_up(v, address, access);
    return memory && (!p->store || may_store(b, memory, p->size)) ? memory : NULL;
}

static void begin_access(struct vcpu *v, const struct part *p, uint8_t *memory, uint64_t address)
{
    struct block_state *s = &v->stack.state;
    s->pointer = (uint64_t)memory;
    s->r[RSP] += (uint64_t)(int64_t)p->stack;
    if (!v->pmu.caches || !v->pmu.decoding[v->vmcb.cpl == 3])
        return;
    uint32_t missed = predict_access(&v->caches, address - p->after);
    if (missed & EFFECT(EVENT_REFERENCES))
        count_event(v, EVENT_REFERENCES);
    if (missed & EFFECT(EVENT_MISSES))
        count_event(v, EVENT_MISSES);
}

bool part_begin(struct vcpu *v, const struct part *p, struct block *b)
{
    const uint64_t *r = v->stack.state.r;
    uint64_t address = p->displacement + r[p->base] + (r[p->index] << p->scale) + r[p->segment];
    uint8_t *memory =
        p->access ? find_access(v, p, b, address) : (uint8_t *)&v->stack.state.r[p->operand];
    if (!memory || (p->special && !do_special(v, p, memory, b)))
        return false;
    if (p->access)
        begin_access(v, p, memory, address);
    return true;
}
