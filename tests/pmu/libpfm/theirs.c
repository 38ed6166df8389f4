/* SPDX-License-Identifier: MIT */
/* A program for the host: prints what libpfm4 knows of x86 cores, for tests/pmu/libpfm.t.
 *
 * pmu PMU GENERAL FIXED MODEL,MODEL...                      counters; Intel's models of family 6
 * event PMU NAME ENCODING COUNTERS                          an event with its default unit masks
 * event PMU NAME:UMASK ENCODING COUNTERS                    and with one unit mask
 *
 * Fields are apart by tabs, numbers are hexadecimal; "-" where there is none. The encoding is
 * libpfm4's own for an event select. Its interface does not say which counters count an event:
 * they are read from the tables in libpfm.a, whose layout is proved by names that both ways must
 * find at the same address. */
#include <perfmon/pfmlib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tables as libpfm4 4.13 has them. */
struct umask {
    const char *name, *description, *equivalent;
    uint64_t counters, code, filters[2];
    unsigned flags;
    unsigned short model, group;
    unsigned modifiers, required;
};
struct entry {
    const char *name, *description, *equivalent;
    uint64_t counters;
    unsigned code, umask_count, flags, modifiers, required;
    unsigned short groups, model;
    const struct umask *umasks;
};
struct heading {
    const char *description, *name;
    uint64_t perf_names[]; /* one in 4.13, five in what came after it; then struct pmu */
};
struct pmu {
    int pmu, event_count, max_encoding, flags, revision, general, fixed, levels, type;
    const struct entry *entries;
    const void *attributes;
    int family;
    const int *models;
};

/* clang-format off */
#define INTEL(X) \
    X(core) X(atom) X(nhm) X(nhm_ex) X(wsm_sp) X(wsm_dp) X(snb) X(snb_ep) X(ivb) X(ivb_ep) X(hsw) \
    X(hsw_ep) X(bdw) X(bdw_ep) X(skl) X(skx) X(clx) X(icl) X(icx) X(spr) X(slm) X(glm) X(tmt) \
    X(knl) X(knm)
/* clang-format on */
#define DECLARE(name) extern const struct heading intel_##name##_support;
#define ADDRESS(name) &intel_##name##_support,
INTEL(DECLARE)
static const struct heading *const intel[] = { INTEL(ADDRESS) };
#define INTEL_COUNT (sizeof intel / sizeof *intel)

static const struct pmu *intel_pmu(const pfm_pmu_info_t *info)
{
    for (unsigned i = 0; i < INTEL_COUNT; i++) {
        const uint64_t *at = intel[i]->perf_names;
        for (int n = 0; n < 8 && strcmp(intel[i]->name, info->name) == 0; n++, at++)
            if ((uint32_t)*at == info->pmu)
                return (const struct pmu *)at;
    }
    return NULL;
}

static const struct entry *entry_of(const struct pmu *pmu, const char *name)
{
    for (int i = 0; pmu && i < pmu->event_count; i++)
        if (pmu->entries[i].name == name &&
            (!pmu->entries[i].model || pmu->entries[i].model == pmu->pmu))
            return &pmu->entries[i];
    if (!pmu)
        return NULL;
    fprintf(stderr, "libpfm.a has other tables than libpfm4 4.13: no %s\n", name);
    exit(1);
}

static uint64_t counters_of(const struct pmu *pmu, const struct entry *entry, const char *umask)
{
    for (unsigned i = 0; umask && i < entry->umask_count; i++)
        if (entry->umasks[i].name == umask &&
            (!entry->umasks[i].model || entry->umasks[i].model == pmu->pmu))
            return entry->umasks[i].counters ? entry->umasks[i].counters : entry->counters;
    if (umask) {
        fprintf(stderr, "libpfm.a has other tables than libpfm4 4.13: no %s of %s\n", umask,
                entry->name);
        exit(1);
    }
    return entry->counters;
}

static void event_line(const pfm_pmu_info_t *info, const char *event, const char *umask,
                       const struct entry *entry)
{
    char name[256];
    uint64_t codes[4], *code = codes;
    int count = 4;
    const char *colon = umask ? ":" : "";
    const char *mask = umask ? umask : "";
    snprintf(name, sizeof name, "%s::%s%s%s", info->name, event, colon, mask);
    int error = pfm_get_event_encoding(name, PFM_PLM0 | PFM_PLM3, NULL, NULL, &code, &count);
    printf("event\t%s\t%s%s%s\t", info->name, event, colon, mask);
    if (error == PFM_SUCCESS)
        printf("%lx\t", (unsigned long)code[0]);
    else
        printf("-\t");
    if (entry)
        printf("%lx\n", (unsigned long)counters_of(intel_pmu(info), entry, umask));
    else
        printf("-\n");
}

static void event_lines(const pfm_pmu_info_t *pmu, int index)
{
    pfm_event_info_t info = { .size = sizeof info };
    if (pfm_get_event_info(index, PFM_OS_NONE, &info) != PFM_SUCCESS)
        return;
    const struct entry *entry = entry_of(intel_pmu(pmu), info.name);
    event_line(pmu, info.name, NULL, entry);
    for (int i = 0; i < info.nattrs; i++) {
        pfm_event_attr_info_t attribute = { .size = sizeof attribute };
        if (pfm_get_event_attr_info(index, i, PFM_OS_NONE, &attribute) == PFM_SUCCESS &&
            attribute.type == PFM_ATTR_UMASK)
            event_line(pmu, info.name, attribute.name, entry);
    }
}

static void pmu_lines(const pfm_pmu_info_t *info)
{
    const struct pmu *pmu = intel_pmu(info);
    printf("pmu\t%s\t%x\t%x\t", info->name, info->num_cntrs, info->num_fixed_cntrs);
    for (const int *model = pmu ? pmu->models : NULL; model && *model; model++)
        printf("%s%x", model == pmu->models ? "" : ",", *model);
    printf("\n");
    for (int i = info->first_event; i != -1; i = pfm_get_event_next(i))
        event_lines(info, i);
}

int main(void)
{
    setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
    if (pfm_initialize() != PFM_SUCCESS)
        return 1;
    int i;
    pfm_for_all_pmus(i)
    {
        pfm_pmu_info_t info = { .size = sizeof info };
        if (pfm_get_pmu_info(i, &info) == PFM_SUCCESS && info.type == PFM_PMU_TYPE_CORE &&
            (strncmp(info.name, "amd64_", 6) == 0 || intel_pmu(&info)))
            pmu_lines(&info);
    }
    return 0;
}
