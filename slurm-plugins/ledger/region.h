// SPDX-License-Identifier: GPL-2.0-or-later
// Regions: what an account was charged while at least one of its threads was inside a marked part.
//
// Marks lie between two ticks, and so does what is known of the account: energy is taken to flow
// evenly within a tick. A region's time in a tick, as a part f of it, gives it f of the tick's
// energy; how far a real load may be from even is in its variance, (tick's energy)^2 f (1 - f) / 3,
// which is 0 for a region that fills the tick and uniform over all of the tick's energy at f = 1/2.
// However many marks lie in one tick, their error is that of its one tick.
#ifndef JOULEMARK_REGION_H
#define JOULEMARK_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JM_REGION_NAME_MAX = 96, JM_REGIONS_MAX = 4096, JM_REGION_DEPTH_MAX = 32 };

/* What an account was charged up to some moment, or between two; k=1. Where a tick was charged too
 * much, for a power was held that had fallen, the next ones give that back. */
typedef struct {
    int64_t energy_uj;
    uint64_t samples;
    double systematic_uj, variance_uj2;
} jm_charge;

/* Random error of the instruments at one mark. */
typedef struct {
    double stamp_uj2; /* of where their values lie */
    double held_uj;   /* of the power held since then, in held_ns: the account's part */
    int64_t held_ns;
} jm_edge;

/* One tick of an account. */
typedef struct {
    int64_t from_ns, to_ns; /* CLOCK_BOOTTIME */
    jm_charge before, gained;
    jm_edge edge;
} jm_interval;

/* Runs while it has users; what was charged meanwhile adds up. */
typedef struct {
    int users;
    int64_t since_ns; /* with users: CLOCK_BOOTTIME of the first's coming, in this tick */
    int64_t tick_ns;  /* ran in this tick before that */
    int64_t duration_ns;
    int64_t energy_uj; /* below 0: as yet it gives back more than it has */
    double systematic_uj, variance_uj2;
} jm_meter;

/*
 * inclusive: at least one thread was inside. exclusive: at least one was inside and in no region
 * further in. For one thread, exclusive is inclusive less the regions within; for several, a moment
 * may belong to the exclusive part of one region and the inclusive of another, each counted once.
 */
typedef struct {
    char name[JM_REGION_NAME_MAX];
    int parent;     /* index in the book, -1: none; it comes before this one */
    uint64_t count; /* visits of all threads */
    jm_meter inclusive, exclusive;
} jm_region;

/* All regions of an account. Zeroed is empty. */
typedef struct {
    jm_region *list;
    int n;
    uint16_t *slots; /* hash of (parent, name) to index + 1 */
    bool watched;    /* marks may come: `seen` is kept up to date */
    int64_t seen_ns;
    jm_charge seen;   /* charged since, up to the last tick */
    jm_interval tick; /* the one whose marks are being taken in */
    uint64_t refused; /* marks that could not be taken: no such region open, or too many */
} jm_region_book;

/* Where one thread is: regions begun and not yet ended, outermost first. */
typedef struct {
    int region;
    int64_t begun_ns;
    int64_t tick_ns; /* the tick's end: marks of one tick share their error */
    jm_charge at;
    jm_edge edge;
    double doubt_uj2;
} jm_visit;

typedef struct {
    int depth;
    jm_visit visits[JM_REGION_DEPTH_MAX];
} jm_region_stack;

/* One visit of one thread: what its account was charged from its begin to its end. */
typedef struct {
    int region; /* -1: none */
    int64_t duration_ns;
    uint64_t energy_uj, samples;
    double uncertainty_uj; /* k=2 */
} jm_visit_sum;

void jm_region_free(jm_region_book *book);

/* Index of the region of this name within parent (-1: outermost), made when it is new; -1: too many
 * regions, or memory is out. */
int jm_region_find(jm_region_book *book, int parent, const char *name);

/*
 * A thread's marks, in the order of time, within the tick. begin: false when the book or the stack
 * is full. end: ends the innermost region of that name and those begun inside it; false when none
 * is open. sum may be NULL.
 */
bool jm_region_begin(jm_region_book *book, jm_region_stack *stack, const char *name,
                     int64_t boot_ns, const jm_interval *tick);
bool jm_region_end(jm_region_book *book, jm_region_stack *stack, const char *name, int64_t boot_ns,
                   const jm_interval *tick, jm_visit_sum *sum);
/* The thread is gone: what it has open ends. */
void jm_region_end_all(jm_region_book *book, jm_region_stack *stack, int64_t boot_ns);

/* The tick is over, all its marks are in: charge the regions. */
void jm_region_settle(jm_region_book *book, const jm_interval *tick);

/* "outer/inner": the names on the way in, joined by a slash; cut to size. */
void jm_region_path(const jm_region_book *book, int region, char *path, size_t size);

/*
 * A user's bytes as a name: up to size bytes or the first NUL; control characters and what is not
 * UTF-8 become '?', so that a record stays JSON whatever is in it. False: empty, or too long.
 */
bool jm_region_clean_name(const char *bytes, size_t size, char name[JM_REGION_NAME_MAX]);

#endif
