// SPDX-License-Identifier: GPL-2.0-or-later
// Regions: what an account was charged between two marks of a program.
#include "ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double NS_PER_S = 1e9;
static const double UJ_PER_J = 1e6;

static jm_region_mark *find_mark(jm_account *account, int32_t pid, const char *name) {
    for (int i = account->n_marks - 1; i >= 0; i--)
        if (account->marks[i].pid == pid && strcmp(account->marks[i].name, name) == 0)
            return &account->marks[i];
    return NULL;
}

static jm_region_mark mark_now(const jm_ledger *ledger, const jm_account *account, int32_t pid,
                               const char *name, int64_t boot_ns, int64_t age_ns) {
    jm_estimate estimate = jm_ledger_estimate(ledger, account);
    double power_w = account->current_w > 0 ? account->current_w : estimate.mean_w;
    double edge_uj2 = 0;
    for (int c = 0; c < ledger->n_channels; c++)
        if (ledger->channels[c].outermost)
            edge_uj2 += jm_channel_edge_variance(&ledger->channels[c], power_w);
    jm_region_mark mark = {
        .pid = pid,
        .boot_ns = boot_ns,
        .energy_uj = estimate.energy_uj,
        .systematic_uj = estimate.systematic_uj,
        /* Only the random error gathered since counts, and that of the two ends. */
        .samples = account->samples,
        .age_uj = power_w * UJ_PER_J * (double)age_ns / NS_PER_S,
    };
    for (int c = 0; c < ledger->n_channels; c++)
        if (ledger->channels[c].outermost)
            mark.variance_uj2 += account->balance[c].variance_uj2;
    mark.age_uj = sqrt(mark.age_uj * mark.age_uj / 3 + edge_uj2);
    strncpy(mark.name, name, JM_REGION_NAME_MAX - 1);
    return mark;
}

bool jm_ledger_region_begin(jm_ledger *ledger, jm_account *account, int32_t pid, const char *name,
                            int64_t boot_ns, int64_t age_ns) {
    account = jm_account_holder(account);
    if (account->n_marks == JM_MARKS_MAX)
        return false;
    if (!account->marks && !(account->marks = calloc(JM_MARKS_MAX, sizeof *account->marks)))
        return false;
    account->marks[account->n_marks++] = mark_now(ledger, account, pid, name, boot_ns, age_ns);
    return true;
}

static jm_region *region_named(jm_account *account, const char *name) {
    for (int i = 0; i < account->n_regions; i++)
        if (strcmp(account->regions[i].name, name) == 0)
            return &account->regions[i];
    if (account->n_regions == JM_REGIONS_MAX)
        return NULL;
    jm_region *regions =
        realloc(account->regions, (size_t)(account->n_regions + 1) * sizeof *regions);
    if (!regions)
        return NULL;
    account->regions = regions;
    jm_region *region = &regions[account->n_regions++];
    *region = (jm_region){0};
    strncpy(region->name, name, JM_REGION_NAME_MAX - 1);
    return region;
}

bool jm_ledger_region_end(jm_ledger *ledger, jm_account *account, int32_t pid, const char *name,
                          int64_t boot_ns, int64_t age_ns, jm_region *single) {
    account = jm_account_holder(account);
    jm_region_mark *begin = find_mark(account, pid, name);
    if (!begin)
        return false;
    jm_region_mark end = mark_now(ledger, account, pid, name, boot_ns, age_ns);
    *single = (jm_region){
        .count = 1,
        .duration_ns = end.boot_ns - begin->boot_ns,
        .energy_uj = end.energy_uj - begin->energy_uj,
        .systematic_uj = fmax(0, end.systematic_uj - begin->systematic_uj),
        .variance_uj2 = fmax(0, end.variance_uj2 - begin->variance_uj2) +
                        begin->age_uj * begin->age_uj + end.age_uj * end.age_uj,
        .samples = end.samples - begin->samples,
    };
    memcpy(single->name, end.name, sizeof single->name);
    *begin = account->marks[--account->n_marks];

    jm_region *sum = region_named(account, name);
    if (!sum)
        return false;
    sum->count += single->count;
    sum->duration_ns += single->duration_ns;
    sum->energy_uj += single->energy_uj;
    sum->systematic_uj += single->systematic_uj;
    sum->variance_uj2 += single->variance_uj2;
    sum->samples += single->samples;
    account->dirty = true;
    return true;
}
