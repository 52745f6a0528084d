// SPDX-License-Identifier: GPL-2.0-or-later
// Regions: what an account was charged while at least one of its threads was inside a marked part.
#include "ledger.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 * JM_REGIONS_MAX }; /* a power of two */

void jm_region_free(jm_region_book *book) {
    free(book->list);
    free(book->slots);
    *book = (jm_region_book){0};
}

static uint32_t hash_of(int parent, const char *name) {
    uint32_t hash = 2166136261u ^ (uint32_t)(parent + 1);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash ^ (hash >> 15);
}

static int add_region(jm_region_book *book, int parent, const char *name) {
    if (book->n == JM_REGIONS_MAX)
        return -1;
    if ((book->n & (book->n - 1)) == 0) { /* full at every power of two */
        size_t room = book->n ? 2 * (size_t)book->n : 1;
        jm_region *list = realloc(book->list, room * sizeof *list);
        if (!list)
            return -1;
        book->list = list;
    }
    jm_region *region = &book->list[book->n];
    *region = (jm_region){.parent = parent};
    strncpy(region->name, name, JM_REGION_NAME_MAX - 1);
    return book->n++;
}

int jm_region_find(jm_region_book *book, int parent, const char *name) {
    if (!book->slots && !(book->slots = calloc(SLOTS, sizeof *book->slots)))
        return -1;
    uint32_t at = hash_of(parent, name) % SLOTS;
    for (; book->slots[at]; at = (at + 1) % SLOTS) {
        const jm_region *region = &book->list[book->slots[at] - 1];
        if (region->parent == parent && strcmp(region->name, name) == 0)
            return book->slots[at] - 1;
    }
    int region = add_region(book, parent, name);
    if (region >= 0)
        book->slots[at] = (uint16_t)(region + 1);
    return region;
}

static void enter(jm_meter *meter, int64_t boot_ns) {
    if (meter->users++ == 0)
        meter->since_ns = boot_ns;
}

static void leave(jm_meter *meter, int64_t boot_ns) {
    if (--meter->users == 0)
        meter->tick_ns += boot_ns - meter->since_ns;
}

static double part_of(const jm_interval *tick, int64_t ns) {
    int64_t dt_ns = tick->to_ns - tick->from_ns;
    if (ns <= 0 || dt_ns <= 0)
        return ns <= 0 ? 0 : 1;
    return ns >= dt_ns ? 1 : (double)ns / (double)dt_ns;
}

/* How far a load that is not even may be off at part f of the tick. */
static double doubt(const jm_interval *tick, double f) {
    double energy_uj = (double)tick->gained.energy_uj;
    return energy_uj * energy_uj * f * (1 - f) / 3;
}

/* Of a power that was held wrongly a region has as much as it is long. */
static double error_of(const jm_edge *edge, int64_t ran_ns) {
    double part = ran_ns < edge->held_ns ? (double)ran_ns / (double)edge->held_ns : 1;
    return edge->stamp_uj2 + edge->held_uj * part * edge->held_uj * part;
}

static jm_charge charge_at(const jm_interval *tick, int64_t boot_ns) {
    double f = part_of(tick, boot_ns - tick->from_ns);
    jm_charge at = tick->before;
    at.energy_uj += llround((double)tick->gained.energy_uj * f);
    at.samples += boot_ns >= tick->to_ns ? tick->gained.samples : 0;
    at.systematic_uj += tick->gained.systematic_uj * f;
    at.variance_uj2 += tick->gained.variance_uj2 * f;
    return at;
}

bool jm_region_begin(jm_region_book *book, jm_region_stack *stack, const char *name,
                     int64_t boot_ns, const jm_interval *tick) {
    int outer = stack->depth > 0 ? stack->visits[stack->depth - 1].region : -1;
    int region = stack->depth < JM_REGION_DEPTH_MAX ? jm_region_find(book, outer, name) : -1;
    if (region < 0) {
        book->refused++;
        return false;
    }
    if (outer >= 0)
        leave(&book->list[outer].exclusive, boot_ns);
    enter(&book->list[region].inclusive, boot_ns);
    enter(&book->list[region].exclusive, boot_ns);
    stack->visits[stack->depth++] = (jm_visit){
        .region = region,
        .begun_ns = boot_ns,
        .tick_ns = tick->to_ns,
        .at = charge_at(tick, boot_ns),
        .edge = tick->edge,
        .doubt_uj2 = doubt(tick, part_of(tick, boot_ns - tick->from_ns)),
    };
    return true;
}

static void pop(jm_region_book *book, jm_region_stack *stack, int64_t boot_ns) {
    jm_region *region = &book->list[stack->visits[--stack->depth].region];
    leave(&region->inclusive, boot_ns);
    leave(&region->exclusive, boot_ns);
    region->count++;
    if (stack->depth > 0)
        enter(&book->list[stack->visits[stack->depth - 1].region].exclusive, boot_ns);
}

static jm_visit_sum sum_up(const jm_visit *visit, int64_t boot_ns, const jm_interval *tick) {
    jm_charge end = charge_at(tick, boot_ns);
    int64_t ran_ns = boot_ns - visit->begun_ns;
    double variance = fmax(0, end.variance_uj2 - visit->at.variance_uj2);
    variance += error_of(&visit->edge, ran_ns) + error_of(&tick->edge, ran_ns);
    if (visit->tick_ns == tick->to_ns)
        variance += doubt(tick, part_of(tick, ran_ns));
    else
        variance += visit->doubt_uj2 + doubt(tick, part_of(tick, boot_ns - tick->from_ns));
    double systematic_uj = fmax(0, end.systematic_uj - visit->at.systematic_uj);
    return (jm_visit_sum){
        .region = visit->region,
        .duration_ns = ran_ns,
        .energy_uj = end.energy_uj > visit->at.energy_uj
                         ? (uint64_t)(end.energy_uj - visit->at.energy_uj)
                         : 0,
        .samples = end.samples - visit->at.samples,
        .uncertainty_uj = 2 * hypot(systematic_uj, sqrt(variance)),
    };
}

bool jm_region_end(jm_region_book *book, jm_region_stack *stack, const char *name, int64_t boot_ns,
                   const jm_interval *tick, jm_visit_sum *sum) {
    int depth = stack->depth;
    while (depth > 0 && strcmp(book->list[stack->visits[depth - 1].region].name, name) != 0)
        depth--;
    if (depth == 0) {
        book->refused++;
        return false;
    }
    if (sum)
        *sum = sum_up(&stack->visits[depth - 1], boot_ns, tick);
    while (stack->depth >= depth)
        pop(book, stack, boot_ns);
    return true;
}

void jm_region_end_all(jm_region_book *book, jm_region_stack *stack, int64_t boot_ns) {
    while (stack->depth > 0)
        pop(book, stack, boot_ns);
}

static void settle(jm_meter *meter, const jm_interval *tick) {
    if (meter->users == 0 && meter->tick_ns == 0)
        return;
    int64_t ran_ns = meter->tick_ns;
    if (meter->users > 0) {
        ran_ns += tick->to_ns - meter->since_ns;
        meter->since_ns = tick->to_ns;
    }
    meter->tick_ns = 0;
    meter->duration_ns += ran_ns;
    double f = part_of(tick, ran_ns);
    meter->energy_uj += llround((double)tick->gained.energy_uj * f);
    meter->systematic_uj += tick->gained.systematic_uj * f;
    meter->variance_uj2 += tick->gained.variance_uj2 * f + doubt(tick, f);
    if (f < 1)
        meter->variance_uj2 += 2 * error_of(&tick->edge, ran_ns);
}

void jm_region_settle(jm_region_book *book, const jm_interval *tick) {
    for (int i = 0; i < book->n; i++) {
        settle(&book->list[i].inclusive, tick);
        settle(&book->list[i].exclusive, tick);
    }
}

static void see(const jm_ledger *ledger, jm_account *account, int64_t boot_ns) {
    size_t size = (size_t)ledger->n_channels * sizeof *account->balance;
    memcpy(account->seen, account->balance, size);
    for (int c = 0; c < ledger->n_channels; c++)
        account->seen[c].over_uj = jm_account_over_uj(ledger, account, c);
    account->regions.seen_ns = boot_ns;
    account->regions.seen.samples = account->samples;
}

void jm_ledger_watch_regions(const jm_ledger *ledger, jm_account *account, int64_t boot_ns) {
    if (account->regions.watched)
        return;
    if (!account->seen && !(account->seen = jm_ledger_new_balances(ledger)))
        return;
    account->regions.watched = true;
    see(ledger, account, boot_ns);
}

jm_interval jm_ledger_region_tick(const jm_ledger *ledger, const jm_account *account,
                                  int64_t boot_ns) {
    const jm_region_book *book = &account->regions;
    jm_interval tick = {
        .from_ns = book->seen_ns,
        .to_ns = boot_ns,
        .before = book->seen,
        .gained = jm_account_gained(ledger, account),
        .edge = jm_account_edge(ledger, account, boot_ns - book->seen_ns),
    };
    tick.gained.samples = account->samples - book->seen.samples;
    return tick;
}

void jm_ledger_settle_regions(const jm_ledger *ledger, jm_account *account,
                              const jm_interval *tick) {
    jm_region_book *book = &account->regions;
    jm_region_settle(book, tick);
    book->seen.energy_uj += tick->gained.energy_uj;
    book->seen.systematic_uj += tick->gained.systematic_uj;
    book->seen.variance_uj2 += tick->gained.variance_uj2;
    see(ledger, account, tick->to_ns);
}

void jm_region_path(const jm_region_book *book, int region, char *path, size_t size) {
    int way[JM_REGION_DEPTH_MAX], depth = 0;
    for (; region >= 0 && depth < JM_REGION_DEPTH_MAX; region = book->list[region].parent)
        way[depth++] = region;
    size_t used = 0;
    path[0] = '\0';
    while (depth-- > 0 && used < size) {
        int n = snprintf(path + used, size - used, "%s%s", used ? "/" : "",
                         book->list[way[depth]].name);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Bytes of the UTF-8 character at text, of at most `left`; 0: it is none. */
static size_t utf8_length(const unsigned char *text, size_t left) {
    static const struct {
        unsigned char first, last; /* of the first byte */
        unsigned char low, high;   /* of the second */
        size_t length;
    } FORMS[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (text[0] >= ' ' && text[0] < 0x7f)
        return 1;
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        if (text[0] < FORMS[i].first || text[0] > FORMS[i].last || FORMS[i].length > left ||
            text[1] < FORMS[i].low || text[1] > FORMS[i].high)
            continue;
        for (size_t k = 2; k < FORMS[i].length; k++)
            if (text[k] < 0x80 || text[k] > 0xbf)
                return 0;
        return FORMS[i].length;
    }
    return 0;
}

bool jm_region_clean_name(const char *bytes, size_t size, char name[JM_REGION_NAME_MAX]) {
    size_t length = strnlen(bytes, size);
    if (length == 0 || length >= JM_REGION_NAME_MAX)
        return false;
    for (size_t i = 0; i < length;) {
        size_t n = utf8_length((const unsigned char *)bytes + i, length - i);
        if (n == 0)
            name[i++] = '?';
        else
            for (; n > 0; n--, i++)
                name[i] = bytes[i];
    }
    name[length] = '\0';
    return true;
}
