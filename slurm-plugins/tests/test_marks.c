// SPDX-License-Identifier: GPL-2.0-or-later
// Rings of marks: written from threads, drained into regions, and whatever a hostile process does.
#include "books.h"
#include "clock.h"
#include "marks.h"
#include "random.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

/* A ring that the process of a node's one step has. */
static jm_account *step;
static jm_marks *marks;
static jm_source *source;
static jm_ring *ring; /* the process's own mapping */
static int fds[2];
static int64_t now_ns;

static int visits;

static void count_visit(void *context, const jm_account *holder, const jm_mark *mark) {
    (void)context, (void)holder;
    visits += mark->kind;
    expect(mark->path[0] != '\0');
}

static jm_ring *map_ring(int fd) {
    void *mapped = mmap(NULL, sizeof(jm_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        test_die("mmap");
    return mapped;
}

static void begin(void) {
    test_begin_folder();
    begin_node(4, 0);
    step = open_step(7, "0", 100, 4);
    step->job->mode = JM_MODE_PROFILE;
    marks = jm_marks_new(count_visit, NULL);
    now_ns = jm_clock_ns(CLOCK_BOOTTIME);
    jm_message why;
    source = jm_marks_attach(marks, &ledger, step, 3, now_ns, fds, &why);
    if (!source)
        test_die(why.text);
    ring = map_ring(fds[0]);
}

static void end(void) {
    munmap(ring, sizeof *ring);
    close(fds[0]);
    jm_marks_free(marks);
    end_books();
}

/* The tick up to now: a watt a second. */
static void tick(void) {
    int64_t then_ns = jm_clock_ns(CLOCK_BOOTTIME);
    jm_gain gain = {.energy_uj = (uint64_t)(then_ns - now_ns), .covered_ns = then_ns - now_ns};
    jm_ledger_tick(&ledger, &gain, then_ns - now_ns);
    now_ns = then_ns;
    jm_marks_drain(marks, &ledger, 0, now_ns);
}

static void name(int index, const char *text) {
    snprintf(ring->names[index], JM_RING_NAME, "%s", text);
}

static bool put(jm_ring *to, uint32_t thread, int kind, int index) {
    uint64_t place = atomic_load(&to->head);
    do
        if (place - atomic_load(&to->tail) >= JM_RING_SLOTS) {
            atomic_fetch_add(&to->lost, 1);
            return false;
        }
    while (!atomic_compare_exchange_weak(&to->head, &place, place + 1));
    jm_ring_slot *slot = &to->slots[place % JM_RING_SLOTS];
    slot->time_ns = jm_clock_ns(CLOCK_MONOTONIC);
    slot->thread = thread;
    slot->kind = (uint16_t)kind;
    slot->name = (uint16_t)index;
    atomic_store_explicit(&slot->ticket, place + 1, memory_order_release);
    return true;
}

TEST(marks_reach_their_regions) {
    visits = 0;
    name(0, "outer");
    name(1, "inner");
    put(ring, 1, JM_MARK_BEGIN, 0);
    put(ring, 1, JM_MARK_BEGIN, 1);
    expect(jm_marks_pending(marks));
    tick();
    expect(!jm_marks_pending(marks));
    put(ring, 1, JM_MARK_END, 1);
    tick();
    jm_visit_sum sum;
    expect(jm_marks_last(source, &ledger, 1, &sum));
    expect(!jm_marks_last(source, &ledger, 1, &sum));
    put(ring, 1, JM_MARK_END, 0);
    tick();
    expect_equal(step->regions.n, 2);
    expect_text(step->regions.list[0].name, "outer");
    expect_equal(step->regions.list[0].count, 1);
    expect_equal(visits, 2 * JM_MARK_BEGIN + 2 * JM_MARK_END);
    const jm_meter *outer = &step->regions.list[0].inclusive;
    expect(outer->energy_uj + 2 >= outer->duration_ns &&
           outer->energy_uj <= outer->duration_ns + 2);
}

static void *drain(void *unused) {
    jm_marks_drain(marks, &ledger, 0, now_ns);
    return unused;
}

/* Three jobs of 40 000 steps, on a stack that is as much smaller. */
TEST(many_accounts_need_no_stack) {
    enum { STEPS = 4000, STACK = 256 * 1024 };
    pthread_attr_t small;
    pthread_t thread;
    for (int i = 0; i < STEPS; i++)
        open_step(8, test_text("%d", i), 1000 + i, 1);
    name(0, "solve");
    put(ring, 1, JM_MARK_BEGIN, 0);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    expect_equal(pthread_create(&thread, &small, drain, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&small);
    expect_equal(step->regions.n, 1);
}

typedef struct {
    uint32_t id;
    int marks;
    int kept;
} writer;

static void *write_marks(void *argument) {
    writer *w = argument;
    for (int i = 0; i < w->marks; i++)
        w->kept += put(ring, w->id, i % 2 ? JM_MARK_END : JM_MARK_BEGIN, 0);
    return NULL;
}

TEST(no_mark_of_many_threads_is_lost) {
    enum { THREADS = 4, MARKS = 40000 };
    name(0, "loop");
    pthread_t threads[THREADS];
    writer writers[THREADS];
    for (int round = 0; round < MARKS / 2000; round++) {
        for (uint32_t t = 0; t < THREADS; t++) {
            writers[t] = (writer){t, 2000, 0};
            pthread_create(&threads[t], NULL, write_marks, &writers[t]);
        }
        for (int t = 0; t < THREADS; t++) {
            pthread_join(threads[t], NULL);
            expect_equal(writers[t].kept, 2000);
        }
        tick();
    }
    expect_equal(step->regions.list[0].count, THREADS * MARKS / 2);
    expect_equal(step->regions.refused, 0);
}

TEST(what_overflows_is_counted) {
    name(0, "loop");
    for (int i = 0; i < JM_RING_SLOTS + 100; i++)
        expect_equal(put(ring, 1, i % 2 ? JM_MARK_END : JM_MARK_BEGIN, 0), (i < JM_RING_SLOTS));
    while (jm_marks_pending(marks))
        tick();
    expect_equal(step->regions.refused, 100);
    expect_equal(step->regions.list[0].count, JM_RING_SLOTS / 2);
    expect(put(ring, 1, JM_MARK_BEGIN, 0));
}

TEST(a_process_that_ends_leaves_no_region_open) {
    name(0, "killed");
    put(ring, 1, JM_MARK_BEGIN, 0);
    uint64_t place = atomic_fetch_add(&ring->head, 1); /* killed before it filled its place */
    expect_equal(place, 1);
    tick();
    expect(jm_marks_pending(marks));
    jm_marks_detach(source);
    tick();
    expect(!jm_marks_pending(marks));
    expect_equal(step->regions.list[0].inclusive.users, 0);
    int64_t energy_uj = step->regions.list[0].inclusive.energy_uj;
    tick();
    expect_equal(step->regions.list[0].inclusive.energy_uj, energy_uj);
    expect(energy_uj > 0);
}

TEST(shells_have_no_ring) {
    jm_visit_sum sum;
    expect(jm_marks_put(marks, &ledger, step, 55, JM_MARK_BEGIN, "shell", now_ns, now_ns));
    tick();
    expect(jm_marks_put(marks, &ledger, step, 55, JM_MARK_END, "shell", now_ns, now_ns));
    tick();
    jm_source *shells = jm_marks_of_shells(marks, step);
    expect(shells && jm_marks_last(shells, &ledger, 55, &sum));
    expect_equal(step->regions.list[0].count, 1);
    for (int i = 0; i < 5000; i++)
        jm_marks_put(marks, &ledger, step, 56, JM_MARK_BEGIN, "many", now_ns, now_ns);
    tick();
}

TEST(a_job_has_only_so_many_rings) {
    jm_message why;
    int more[2], attached = 0;
    while (jm_marks_attach(marks, &ledger, step, -1, now_ns, more, &why)) {
        close(more[0]);
        attached++;
    }
    expect_part(why.text, "too many processes");
    expect_equal(attached + 1, 4 * 4 + 16);
}

/* With ring `at`, that of another process of the job. */
static jm_ring *attach(jm_account *to, int at[2]) {
    jm_message why;
    if (!jm_marks_attach(marks, &ledger, to, -1, now_ns, at, &why))
        test_die(why.text);
    jm_ring *mapped = map_ring(at[0]);
    strcpy(mapped->names[0], "solve");
    return mapped;
}

static void let_go(jm_ring *mapped, const int at[2]) {
    munmap(mapped, sizeof *mapped);
    close(at[0]);
}

/* Each costs the daemon 3 kB. */
TEST(a_job_has_only_so_many_threads_within_regions) {
    enum { RINGS = 8, THREADS = 1000, MOST = 4 * 4 + 64 };
    jm_ring *rings[RINGS];
    int of_ring[RINGS][2], of_other[2];
    for (int r = 0; r < RINGS; r++) {
        rings[r] = attach(step, of_ring[r]);
        for (uint32_t t = 0; t < THREADS; t++)
            put(rings[r], t, JM_MARK_BEGIN, 0);
    }
    jm_account *other = open_step(8, "0", 200, 1);
    jm_ring *honest = attach(other, of_other);
    put(honest, 1, JM_MARK_BEGIN, 0);
    while (jm_marks_pending(marks))
        tick();
    expect_equal(step->regions.list[0].inclusive.users, MOST);
    expect_equal(step->regions.refused, RINGS * THREADS - MOST);
    expect_equal(other->regions.list[0].inclusive.users, 1);
    for (int r = 0; r < RINGS; r++)
        let_go(rings[r], of_ring[r]);
    let_go(honest, of_other);
}

TEST(threads_that_come_and_go_are_all_heard) {
    enum { THREADS = 1000 };
    int more[2];
    jm_ring *second = attach(step, more);
    name(0, "solve");
    for (uint32_t t = 0; t < THREADS; t++)
        for (int r = 0; r < 2; r++) {
            put(r ? ring : second, t, JM_MARK_BEGIN, 0);
            put(r ? ring : second, t, JM_MARK_END, 0);
        }
    while (jm_marks_pending(marks))
        tick();
    expect_equal(step->regions.list[0].count, 2 * THREADS);
    expect_equal(step->regions.refused, 0);
    let_go(second, more);
}

TEST(a_ring_can_be_neither_shrunk_nor_grown) {
    expect(ftruncate(fds[0], 0) != 0 && errno == EPERM);
    expect(ftruncate(fds[0], 1 << 30) != 0 && errno == EPERM);
}

static void scribble(void) {
    uint8_t *bytes = (uint8_t *)ring;
    switch (random_below(8)) {
    case 0:
        atomic_store(&ring->head, random_u64());
        break;
    case 1:
        atomic_store(&ring->head, atomic_load(&ring->tail) + random_below(JM_RING_SLOTS + 9));
        break;
    case 2:
        atomic_store(&ring->lost, random_u64());
        break;
    case 3:
        atomic_store(&ring->tail, random_u64());
        break;
    case 4:
        for (int i = 0; i < 5000; i++)
            bytes[random_below(sizeof *ring)] = (uint8_t)random_u64();
        break;
    default:
        for (int i = 0; i < 300; i++) {
            uint64_t place = atomic_load(&ring->head);
            jm_ring_slot *slot = &ring->slots[place % JM_RING_SLOTS];
            *slot = (jm_ring_slot){place + 1,
                                   (int64_t)random_u64() >> random_below(64),
                                   (uint32_t)random_below(5000),
                                   (uint16_t)random_below(4),
                                   (uint16_t)random_u64(),
                                   0};
            atomic_store(&ring->head, place + 1);
        }
        memset(ring->names[random_below(JM_RING_NAMES)], (int)random_below(256), JM_RING_NAME);
        strcpy(ring->names[random_below(16)], "good");
        eventfd_write(fds[1], UINT64_MAX - 1);
        jm_marks_heard(marks);
    }
}

/* Whatever is in the ring: no crash, times stay in their ticks, another job's regions stand. */
TEST(a_hostile_ring_harms_its_own_step_alone) {
    jm_account *other = open_step(8, "0", 200, 1);
    int theirs[2];
    jm_message why;
    expect(jm_marks_attach(marks, &ledger, other, 0, now_ns, theirs, &why) != NULL);
    jm_ring *honest = map_ring(theirs[0]);
    strcpy(honest->names[0], "honest");
    uint64_t rounds = 400;
    for (uint64_t i = 0; i < rounds; i++) {
        put(honest, 1, JM_MARK_BEGIN, 0);
        scribble();
        put(honest, 1, JM_MARK_END, 0);
        tick();
    }
    expect_equal(other->regions.n, 1);
    expect_equal(other->regions.refused, 0);
    expect_equal(other->regions.list[0].count, rounds);
    for (int i = 0; i < step->regions.n; i++) {
        expect(step->regions.list[i].inclusive.duration_ns >= 0);
        expect(step->regions.list[i].inclusive.duration_ns <= step->active_ns);
        expect(step->regions.list[i].inclusive.energy_uj <=
               (int64_t)(step->balance[0].energy_uj + rounds));
    }
    munmap(honest, sizeof *honest);
    close(theirs[0]);
}

int main(void) {
    random_begin();
    return expect_each(begin, end);
}
