/* SPDX-License-Identifier: MIT */
/* What the word vpmu= names: a machine, or a model and its quirks. A quirk that is a fact of the
 * processor changes a copy of the model. Boot CPU, before the guest starts; const from then on. */
#include "kernel/base/print.h"
#include "pmu/virt/machine.h"
#include "pmu/virt/quirk.h"

static struct model kinds[2];         /* of CPUs with even and odd numbers */
static const struct machine *machine; /* NULL: none was named */
static char words[512], text[600];    /* the whole command line has fewer than 512 characters */

static const struct model *find_model(const char *word)
{
    for (const struct model *m = all_models; m->name; m++)
        if (quirk_same_name(m->name, word))
            return m;
    return NULL;
}

static const struct machine *find_machine(const char *word)
{
    for (const struct machine *m = all_machines; m->name; m++)
        if (quirk_same_name(m->name, word))
            return m;
    return NULL;
}

static void list_all(const char *wrong)
{
    print("# vpmu: no model \"%s\"; there are", wrong);
    for (const struct model *m = all_models; m->name; m++)
        print(" %s", m->name);
    print("; machines");
    for (const struct machine *m = all_machines; m->name; m++)
        print(" %s", m->name);
    print("; each also with quirks: ,irq3=1,ipc=4 and so on\n");
}

static uint16_t low_bits(unsigned n) { return (uint16_t)((1u << n) - 1); }

static void apply_quirks(struct model *m, const struct quirks *q)
{
    if (q->gp) {
        m->gp = (uint8_t)q->gp;
        m->gp_map = 0;
    }
    m->gp_map = m->gp_map ? m->gp_map : low_bits(m->gp);
    m->fixed_map = m->fixed_map ? m->fixed_map : low_bits(m->fixed);
    m->any_thread |= q->anythread;
    m->metrics |= q->metrics;
    m->core_type = q->hybrid ? LARGE_CORE : m->core_type;
    m->max_leaf = m->version >= 6 || m->max_leaf == LEAF_PMU_EXTENDED ? LEAF_PMU_EXTENDED
                  : m->lbr_format == LBR_ARCHITECTURAL                ? LEAF_LBR
                  : q->hybrid                                         ? LEAF_CORE_TYPE
                                                                      : m->max_leaf;
}

static void apply_machine(struct model *m)
{
    m->brand = machine->brand;
    m->signature = machine->signature ? machine->signature : m->signature;
    m->events = machine->events ? machine->events : m->events;
    m->full_width |= machine->full_width;
    m->max_leaf = machine->max_leaf ? machine->max_leaf : m->max_leaf;
    m->lbr_format = machine->lbr_format ? machine->lbr_format : m->lbr_format;
    if (machine->small)
        model_small_core(m);
    if (machine->no_list)
        m->lbr_depth = m->lbr_format = m->pebs_format = 0;
}

bool machine_choose(const char *wanted)
{
    machine = find_machine(wanted);
    print_to(words, sizeof words, "%s%s", machine ? machine->words : "",
             wanted + (machine ? quirk_name_length(wanted) : 0));
    print_to(text, sizeof text, "%s%s%s", machine_name(), machine ? " = " : "", words);
    size_t length = quirk_name_length(words);
    const struct model *model = find_model(words);
    if (!model) {
        list_all(wanted);
        return false;
    }
    if (!quirk_parse(words + length + (words[length] == ','), model->ops->vendor))
        return false;
    kinds[0] = *model;
    if (machine)
        apply_machine(&kinds[0]);
    apply_quirks(&kinds[0], &virt_quirks);
    kinds[1] = kinds[0];
    if (virt_quirks.hybrid) {
        model_small_core(&kinds[1]);
        if (kinds[0].version < 6) { /* leaf 0Ah is of both */
            kinds[0].gp = kinds[1].gp;
            kinds[0].fixed = kinds[1].fixed;
        }
        kinds[1].lbr_depth >>= virt_quirks.smalllist;
    }
    return true;
}

const struct model *machine_model(unsigned cpu) { return &kinds[cpu % 2]; }

const char *machine_text(void) { return text; }
const char *machine_name(void) { return machine ? machine->name : ""; }
