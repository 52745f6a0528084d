// SPDX-License-Identifier: GPL-2.0-or-later
// Rings of marks: written from threads, drained into regions, and whatever a hostile process does.
#include "bk_fixtures.h"
#include "clock.h"
#include "marks.h"
#include "random.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

static const int64_t SECOND = 1000000000;

/* A node with one channel, one step, and a ring that the step's process has. */
typedef struct {
    jm_ledger ledger;
    jm_account *step;
    jm_marks *marks;
    jm_source *source;
    jm_ring *ring; /* the process's own mapping */
    int fds[2];
    int64_t now_ns;
} node;

static int visits;

static void count_visit(void *context, const jm_account *holder, const jm_mark *mark) {
    (void)context, (void)holder;
    visits += mark->kind;
    expect(mark->path[0] != '\0');
}

static jm_ring *map_ring(int fd) {
    jm_ring *ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) {
        perror("mmap");
        exit(EXIT_FAILURE);
    }
    return ring;
}

static void node_begin(node *n) {
    memset(n, 0, sizeof *n);
    jm_ledger_init(&n->ledger, 4, SECOND);
    jm_channel channel = {.parent = -1, .outermost = true, .name = "node"};
    channel.info.domain = JM_DOMAIN_NODE;
    jm_ledger_add_channel(&n->ledger, &channel);
    jm_open_request request = {.job_id = 7, .step = "0", .pid = 100, .pid_start = 1, .job_cpus = 4};
    n->step = jm_ledger_open(&n->ledger, &request, 1);
    n->step->job->mode = JM_MODE_PROFILE;
    n->marks = jm_marks_new(count_visit, NULL);
    n->now_ns = jm_clock_ns(CLOCK_BOOTTIME);
    jm_message why;
    n->source = jm_marks_attach(n->marks, &n->ledger, n->step, 3, n->now_ns, n->fds, &why);
    if (!n->source) {
        fprintf(stderr, "%s\n", why.text);
        exit(EXIT_FAILURE);
    }
    n->ring = map_ring(n->fds[0]);
}

static void node_end(node *n) {
    munmap(n->ring, sizeof *n->ring);
    close(n->fds[0]);
    jm_marks_free(n->marks);
    jm_ledger_free(&n->ledger);
}

/* The tick up to now: a watt a second. */
static void tick(node *n) {
    int64_t now_ns = jm_clock_ns(CLOCK_BOOTTIME);
    jm_gain gain = {.energy_uj = (uint64_t)(now_ns - n->now_ns), .covered_ns = now_ns - n->now_ns};
    jm_ledger_tick(&n->ledger, &gain, now_ns - n->now_ns);
    n->now_ns = now_ns;
    jm_marks_drain(n->marks, &n->ledger, now_ns);
}

static void name(node *n, int index, const char *text) {
    snprintf(n->ring->names[index], JM_RING_NAME, "%s", text);
}

static bool put(jm_ring *ring, uint32_t thread, int kind, int index) {
    uint64_t place = atomic_load(&ring->head);
    do
        if (place - atomic_load(&ring->tail) >= JM_RING_SLOTS) {
            atomic_fetch_add(&ring->lost, 1);
            return false;
        }
    while (!atomic_compare_exchange_weak(&ring->head, &place, place + 1));
    jm_ring_slot *slot = &ring->slots[place % JM_RING_SLOTS];
    slot->time_ns = jm_clock_ns(CLOCK_MONOTONIC);
    slot->thread = thread;
    slot->kind = (uint16_t)kind;
    slot->name = (uint16_t)index;
    atomic_store_explicit(&slot->ticket, place + 1, memory_order_release);
    return true;
}

static void marks_reach_their_regions(void) {
    node n;
    node_begin(&n);
    visits = 0;
    name(&n, 0, "outer");
    name(&n, 1, "inner");
    put(n.ring, 1, JM_MARK_BEGIN, 0);
    put(n.ring, 1, JM_MARK_BEGIN, 1);
    expect(jm_marks_pending(n.marks));
    tick(&n);
    expect(!jm_marks_pending(n.marks));
    put(n.ring, 1, JM_MARK_END, 1);
    tick(&n);
    jm_visit_sum sum;
    expect(jm_marks_last(n.source, &n.ledger, 1, &sum));
    expect(!jm_marks_last(n.source, &n.ledger, 1, &sum));
    put(n.ring, 1, JM_MARK_END, 0);
    tick(&n);
    expect_equal(n.step->regions.n, 2);
    expect_text(n.step->regions.list[0].name, "outer");
    expect_equal(n.step->regions.list[0].count, 1);
    expect_equal(visits, 2 * JM_MARK_BEGIN + 2 * JM_MARK_END);
    const jm_meter *outer = &n.step->regions.list[0].inclusive;
    expect(outer->energy_uj + 2 >= (uint64_t)outer->duration_ns &&
           outer->energy_uj <= (uint64_t)outer->duration_ns + 2);
    node_end(&n);
}

typedef struct {
    node *n;
    uint32_t id;
    int marks;
    int kept;
} writer;

static void *write_marks(void *argument) {
    writer *w = argument;
    for (int i = 0; i < w->marks; i++)
        w->kept += put(w->n->ring, w->id, i % 2 ? JM_MARK_END : JM_MARK_BEGIN, 0);
    return NULL;
}

static void no_mark_of_many_threads_is_lost(void) {
    enum { THREADS = 4, MARKS = 40000 };
    node n;
    node_begin(&n);
    name(&n, 0, "loop");
    pthread_t threads[THREADS];
    writer writers[THREADS];
    for (int round = 0; round < MARKS / 2000; round++) {
        for (uint32_t t = 0; t < THREADS; t++) {
            writers[t] = (writer){&n, t, 2000, 0};
            pthread_create(&threads[t], NULL, write_marks, &writers[t]);
        }
        for (int t = 0; t < THREADS; t++) {
            pthread_join(threads[t], NULL);
            expect_equal(writers[t].kept, 2000);
        }
        tick(&n);
    }
    expect_equal(n.step->regions.list[0].count, THREADS * MARKS / 2);
    expect_equal(n.step->regions.refused, 0);
    node_end(&n);
}

static void what_overflows_is_counted(void) {
    node n;
    node_begin(&n);
    name(&n, 0, "loop");
    for (int i = 0; i < JM_RING_SLOTS + 100; i++)
        expect_equal(put(n.ring, 1, i % 2 ? JM_MARK_END : JM_MARK_BEGIN, 0), (i < JM_RING_SLOTS));
    while (jm_marks_pending(n.marks))
        tick(&n);
    expect_equal(n.step->regions.refused, 100);
    expect_equal(n.step->regions.list[0].count, JM_RING_SLOTS / 2);
    expect(put(n.ring, 1, JM_MARK_BEGIN, 0));
    node_end(&n);
}

static void a_process_that_ends_leaves_no_region_open(void) {
    node n;
    node_begin(&n);
    name(&n, 0, "killed");
    put(n.ring, 1, JM_MARK_BEGIN, 0);
    uint64_t place = atomic_fetch_add(&n.ring->head, 1); /* killed before it filled its place */
    expect_equal(place, 1);
    tick(&n);
    expect(jm_marks_pending(n.marks));
    jm_marks_detach(n.source);
    tick(&n);
    expect(!jm_marks_pending(n.marks));
    expect_equal(n.step->regions.list[0].inclusive.users, 0);
    uint64_t energy_uj = n.step->regions.list[0].inclusive.energy_uj;
    tick(&n);
    expect_equal(n.step->regions.list[0].inclusive.energy_uj, energy_uj);
    expect(energy_uj > 0);
    node_end(&n);
}

static void shells_have_no_ring(void) {
    node n;
    node_begin(&n);
    jm_visit_sum sum;
    expect(
        jm_marks_put(n.marks, &n.ledger, n.step, 55, JM_MARK_BEGIN, "shell", n.now_ns, n.now_ns));
    tick(&n);
    expect(jm_marks_put(n.marks, &n.ledger, n.step, 55, JM_MARK_END, "shell", n.now_ns, n.now_ns));
    tick(&n);
    jm_source *shells = jm_marks_of_shells(n.marks, n.step);
    expect(shells && jm_marks_last(shells, &n.ledger, 55, &sum));
    expect_equal(n.step->regions.list[0].count, 1);
    for (int i = 0; i < 5000; i++)
        jm_marks_put(n.marks, &n.ledger, n.step, 56, JM_MARK_BEGIN, "many", n.now_ns, n.now_ns);
    tick(&n);
    node_end(&n);
}

static void a_job_has_only_so_many_rings(void) {
    node n;
    node_begin(&n);
    jm_message why;
    int fds[2], attached = 0;
    while (jm_marks_attach(n.marks, &n.ledger, n.step, -1, n.now_ns, fds, &why)) {
        close(fds[0]);
        attached++;
    }
    expect_part(why.text, "too many processes");
    expect_equal(attached + 1, 4 * 4 + 16);
    node_end(&n);
}

static void a_ring_can_be_neither_shrunk_nor_grown(void) {
    node n;
    node_begin(&n);
    expect(ftruncate(n.fds[0], 0) != 0 && errno == EPERM);
    expect(ftruncate(n.fds[0], 1 << 30) != 0 && errno == EPERM);
    node_end(&n);
}

static void scribble(node *n) {
    uint8_t *bytes = (uint8_t *)n->ring;
    switch (random_below(8)) {
    case 0:
        atomic_store(&n->ring->head, random_u64());
        break;
    case 1:
        atomic_store(&n->ring->head, atomic_load(&n->ring->tail) + random_below(JM_RING_SLOTS + 9));
        break;
    case 2:
        atomic_store(&n->ring->lost, random_u64());
        break;
    case 3:
        atomic_store(&n->ring->tail, random_u64());
        break;
    case 4:
        for (int i = 0; i < 5000; i++)
            bytes[random_below(sizeof *n->ring)] = (uint8_t)random_u64();
        break;
    default:
        for (int i = 0; i < 300; i++) {
            uint64_t place = atomic_load(&n->ring->head);
            jm_ring_slot *slot = &n->ring->slots[place % JM_RING_SLOTS];
            *slot = (jm_ring_slot){place + 1,
                                   (int64_t)random_u64() >> random_below(64),
                                   (uint32_t)random_below(5000),
                                   (uint16_t)random_below(4),
                                   (uint16_t)random_u64(),
                                   0};
            atomic_store(&n->ring->head, place + 1);
        }
        memset(n->ring->names[random_below(JM_RING_NAMES)], (int)random_below(256), JM_RING_NAME);
        strcpy(n->ring->names[random_below(16)], "good");
        eventfd_write(n->fds[1], UINT64_MAX - 1);
        jm_marks_heard(n->marks);
    }
}

/* Whatever is in the ring: no crash, times stay in their ticks, another job's regions stand. */
static void a_hostile_ring_harms_its_own_step_alone(void) {
    node n;
    node_begin(&n);
    jm_open_request request = {.job_id = 8, .step = "0", .pid = 200, .pid_start = 1, .job_cpus = 1};
    jm_account *other = jm_ledger_open(&n.ledger, &request, 1);
    int fds[2];
    jm_message why;
    jm_source *source = jm_marks_attach(n.marks, &n.ledger, other, 0, n.now_ns, fds, &why);
    expect(source != NULL);
    jm_ring *ring = map_ring(fds[0]);
    strcpy(ring->names[0], "honest");
    uint64_t rounds = 400;
    for (uint64_t i = 0; i < rounds; i++) {
        put(ring, 1, JM_MARK_BEGIN, 0);
        scribble(&n);
        put(ring, 1, JM_MARK_END, 0);
        tick(&n);
    }
    expect_equal(other->regions.n, 1);
    expect_equal(other->regions.refused, 0);
    expect_equal(other->regions.list[0].count, rounds);
    for (int i = 0; i < n.step->regions.n; i++) {
        expect(n.step->regions.list[i].inclusive.duration_ns >= 0);
        expect(n.step->regions.list[i].inclusive.duration_ns <= n.step->active_ns);
        expect(n.step->regions.list[i].inclusive.energy_uj <=
               n.step->balance[0].energy_uj + rounds);
    }
    munmap(ring, sizeof *ring);
    close(fds[0]);
    node_end(&n);
}

int main(void) {
    random_begin();
    RUN(marks_reach_their_regions);
    RUN(no_mark_of_many_threads_is_lost);
    RUN(what_overflows_is_counted);
    RUN(a_process_that_ends_leaves_no_region_open);
    RUN(shells_have_no_ring);
    RUN(a_job_has_only_so_many_rings);
    RUN(a_ring_can_be_neither_shrunk_nor_grown);
    RUN(a_hostile_ring_harms_its_own_step_alone);
    return expect_result();
}
