// SPDX-License-Identifier: GPL-2.0-or-later
// Marks of users' programs: rings of shared memory, drained at ticks into the accounts'
// regions.
#include "marks.h"

#include "clock.h"
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    SOURCES_MAX = 4096,     /* of the node */
    SOURCES_SPARE = 16,     /* of a job, beside four for each of its CPUs */
    THREADS_MAX = 16384,    /* of the node, 3 kB each: with regions open, or that ended one last */
    THREADS_SPARE = 64,     /* of a job, beside four for each of its CPUs */
    BUDGET = 16384,         /* marks a drain takes in, shared by all rings */
    BUDGET_LEAST = 256,     /* of each ring, however many there are */
    SHELL_MARKS_MAX = 1024, /* of one step, between two ticks */
    EVENTS_MAX = 64,
};

/* A place that was taken and is not filled for so long belongs to a thread that was killed. */
static const int64_t STUCK_NS = 1000000000;

typedef struct {
    uint32_t id;
    jm_region_stack stack;
    jm_visit_sum last; /* region -1: none */
} thread;

typedef struct {
    int64_t boot_ns;
    uint64_t order; /* among marks of the same time */
    jm_source *source;
    uint32_t thread;
    uint16_t kind, name; /* name: index in the ring, or in the shells' names */
} mark;

struct jm_source {
    jm_marks *marks;
    int32_t step_pid; /* the account, which may go before us */
    uint64_t step_start;
    uint32_t job_id;
    int threads_max; /* of all the job's sources */
    int rank;
    bool gone;

    jm_ring *ring; /* NULL: shells */
    int event;     /* -1: shells */
    uint64_t tail, lost;
    int64_t stuck_since_ns;

    mark *shell_marks; /* with their names */
    char (*shell_names)[JM_REGION_NAME_MAX];
    int n_shell;

    thread **threads;
    int n_threads;
};

struct jm_marks {
    jm_mark_visit visit;
    void *context;
    int epoll;
    jm_source **sources;
    int n_sources, capacity;
    mark *batch;
    size_t n_batch, batch_capacity;
    uint32_t full_job; /* it has as many threads as it may, all within regions; 0: none is known */
};

/* Each ring keeps a descriptor, and its process's connection another. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

jm_marks *jm_marks_new(jm_mark_visit visit, void *context) {
    jm_marks *marks = calloc(1, sizeof *marks);
    if (!marks)
        return NULL;
    *marks = (jm_marks){.visit = visit, .context = context, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (marks->epoll < 0) {
        free(marks);
        return NULL;
    }
    raise_descriptor_limit();
    return marks;
}

static void free_source(jm_source *source) {
    if (source->ring)
        munmap(source->ring, sizeof *source->ring);
    if (source->event >= 0)
        close(source->event);
    free(source->shell_marks);
    free(source->shell_names);
    for (int i = 0; i < source->n_threads; i++)
        free(source->threads[i]);
    free(source->threads);
    free(source);
}

void jm_marks_free(jm_marks *marks) {
    if (!marks)
        return;
    for (int i = 0; i < marks->n_sources; i++)
        free_source(marks->sources[i]);
    close(marks->epoll);
    free(marks->sources);
    free(marks->batch);
    free(marks);
}

/* ---- sources ---- */

static uint64_t cpus_of(const jm_ledger *ledger, const jm_account *step) {
    return step->job && step->job->cpus > 0 ? step->job->cpus : ledger->cpus;
}

static jm_source *add_source(jm_marks *marks, const jm_ledger *ledger, const jm_account *step) {
    if (marks->n_sources == marks->capacity) {
        int capacity = marks->capacity ? 2 * marks->capacity : 16;
        jm_source **sources = realloc(marks->sources, (size_t)capacity * sizeof *sources);
        if (!sources)
            return NULL;
        marks->sources = sources;
        marks->capacity = capacity;
    }
    jm_source *source = calloc(1, sizeof *source);
    if (!source)
        return NULL;
    *source = (jm_source){.marks = marks,
                          .step_pid = step->pid,
                          .step_start = step->pid_start,
                          .job_id = step->job_id,
                          .threads_max = 4 * (int)cpus_of(ledger, step) + THREADS_SPARE,
                          .rank = -1,
                          .event = -1};
    marks->sources[marks->n_sources++] = source;
    return source;
}

/* One job's processes must not use up what all jobs of the node share. */
static bool has_room(const jm_marks *marks, const jm_ledger *ledger, const jm_account *step) {
    uint64_t of_job = 0;
    for (int i = 0; i < marks->n_sources; i++)
        of_job += marks->sources[i]->job_id == step->job_id;
    return marks->n_sources < SOURCES_MAX && of_job < 4 * cpus_of(ledger, step) + SOURCES_SPARE;
}

/* Sealed: the process can neither shrink it under our feet nor let it grow. */
static int make_memory(void) {
    int fd = memfd_create("joulemark", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, sizeof(jm_ring)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool make_ring(jm_source *source, int fds[2]) {
    fds[0] = make_memory();
    fds[1] = source->event = jm_descriptor_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    void *memory = fds[0] >= 0
                       ? mmap(NULL, sizeof(jm_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0)
                       : MAP_FAILED;
    /* Edges: nobody need read the event, which its process could make block. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    if (memory == MAP_FAILED || source->event < 0 ||
        epoll_ctl(source->marks->epoll, EPOLL_CTL_ADD, source->event, &event) != 0) {
        if (memory != MAP_FAILED)
            munmap(memory, sizeof(jm_ring));
        if (fds[0] >= 0)
            close(fds[0]);
        return false;
    }
    source->ring = memory;
    source->ring->magic = JM_RING_MAGIC;
    source->ring->slot_count = JM_RING_SLOTS;
    source->ring->name_count = JM_RING_NAMES;
    source->ring->name_size = JM_RING_NAME;
    return true;
}

jm_source *jm_marks_attach(jm_marks *marks, const jm_ledger *ledger, jm_account *step, int rank,
                           int64_t boot_ns, int fds[2], jm_message *why) {
    jm_source *source = has_room(marks, ledger, step) ? add_source(marks, ledger, step) : NULL;
    if (!source) {
        jm_message_set(why, "too many processes of this job mark regions");
        return NULL;
    }
    source->rank = rank;
    if (!make_ring(source, fds)) {
        jm_message_set(why, "no memory for marks: %s", strerror(errno));
        marks->n_sources--;
        free_source(source);
        return NULL;
    }
    jm_ledger_watch_regions(ledger, jm_account_holder(step), boot_ns);
    return source;
}

void jm_marks_detach(jm_source *source) {
    source->gone = true;
}

jm_source *jm_marks_of_shells(jm_marks *marks, const jm_account *step) {
    for (int i = 0; i < marks->n_sources; i++) {
        jm_source *source = marks->sources[i];
        if (!source->ring && !source->gone && source->step_pid == step->pid &&
            source->step_start == step->pid_start)
            return source;
    }
    return NULL;
}

static jm_source *make_shells(jm_marks *marks, const jm_ledger *ledger, const jm_account *step) {
    jm_source *source = add_source(marks, ledger, step);
    if (!source)
        return NULL;
    source->shell_marks = calloc(SHELL_MARKS_MAX, sizeof *source->shell_marks);
    source->shell_names = calloc(SHELL_MARKS_MAX, sizeof *source->shell_names);
    if (source->shell_marks && source->shell_names)
        return source;
    marks->n_sources--;
    free_source(source);
    return NULL;
}

bool jm_marks_put(jm_marks *marks, const jm_ledger *ledger, jm_account *step, uint32_t thread_id,
                  int kind, const char *name, int64_t boot_ns, int64_t tick_ns) {
    jm_source *source = jm_marks_of_shells(marks, step);
    if (!source && !(source = make_shells(marks, ledger, step)))
        return false;
    jm_ledger_watch_regions(ledger, jm_account_holder(step), tick_ns);
    int at = source->n_shell;
    if (at == SHELL_MARKS_MAX ||
        !jm_region_clean_name(name, strlen(name) + 1, source->shell_names[at]))
        return false;
    source->shell_marks[source->n_shell++] = (mark){.boot_ns = boot_ns,
                                                    .source = source,
                                                    .thread = thread_id,
                                                    .kind = (uint16_t)kind,
                                                    .name = (uint16_t)at};
    return true;
}

/* ---- threads ---- */

static thread *find_thread(const jm_source *source, uint32_t id) {
    for (int i = 0; i < source->n_threads; i++)
        if (source->threads[i]->id == id)
            return source->threads[i];
    return NULL;
}

/* Takes one that has no region open; NULL: each has. */
static thread *take_idle(jm_source *source) {
    for (int i = 0; i < source->n_threads; i++) {
        thread *idle = source->threads[i];
        if (idle->stack.depth > 0)
            continue;
        source->threads[i] = source->threads[--source->n_threads];
        return idle;
    }
    return NULL;
}

/* A new one, or at the job's or the node's bound one of the job's that is idle. */
static thread *spare_thread(const jm_source *source) {
    jm_marks *marks = source->marks;
    int of_job = 0, of_node = 0;
    if (marks->full_job == source->job_id)
        return NULL;
    for (int i = 0; i < marks->n_sources; i++) {
        of_node += marks->sources[i]->n_threads;
        of_job += marks->sources[i]->job_id == source->job_id ? marks->sources[i]->n_threads : 0;
    }
    if (of_job < source->threads_max && of_node < THREADS_MAX)
        return malloc(sizeof(thread));
    thread *idle = NULL;
    for (int i = 0; i < marks->n_sources && !idle; i++)
        if (marks->sources[i]->job_id == source->job_id)
            idle = take_idle(marks->sources[i]);
    marks->full_job = idle ? 0 : source->job_id;
    return idle;
}

static bool add_thread(jm_source *source, thread *added) {
    if ((source->n_threads & (source->n_threads - 1)) == 0) {
        size_t room = source->n_threads ? 2 * (size_t)source->n_threads : 1;
        thread **threads = realloc(source->threads, room * sizeof *threads);
        if (!threads)
            return false;
        source->threads = threads;
    }
    source->threads[source->n_threads++] = added;
    return true;
}

static thread *get_thread(jm_source *source, uint32_t id) {
    thread *found = find_thread(source, id);
    if (found || !(found = spare_thread(source)))
        return found;
    if (!add_thread(source, found)) {
        free(found);
        return NULL;
    }
    memset(found, 0, sizeof *found);
    found->id = id;
    found->last.region = -1;
    return found;
}

/* ---- draining ---- */

static mark *add_to_batch(jm_marks *marks) {
    if (marks->n_batch == marks->batch_capacity) {
        size_t capacity = marks->batch_capacity ? 2 * marks->batch_capacity : 1024;
        mark *batch = realloc(marks->batch, capacity * sizeof *batch);
        if (!batch)
            return NULL;
        marks->batch = batch;
        marks->batch_capacity = capacity;
    }
    return &marks->batch[marks->n_batch++];
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* A place that stays empty is given up, or one killed thread would stop its process's marks. */
static bool is_stuck(jm_source *source, int64_t boot_ns) {
    if (source->gone)
        return true;
    if (source->stuck_since_ns == 0)
        source->stuck_since_ns = boot_ns;
    return boot_ns - source->stuck_since_ns > STUCK_NS;
}

/* offset_ns: CLOCK_BOOTTIME less CLOCK_MONOTONIC. */
static void gather_ring(jm_source *source, uint64_t budget, int64_t boot_ns, int64_t offset_ns) {
    jm_ring *ring = source->ring;
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    if (head - source->tail > JM_RING_SLOTS) { /* no client of ours does that */
        source->lost++;
        source->tail = head;
    }
    for (; source->tail != head && budget > 0; source->tail++, budget--) {
        jm_ring_slot *slot = &ring->slots[source->tail % JM_RING_SLOTS];
        if (atomic_load_explicit(&slot->ticket, memory_order_acquire) != source->tail + 1) {
            if (!is_stuck(source, boot_ns))
                break;
            source->lost++;
            continue;
        }
        source->stuck_since_ns = 0;
        mark *taken = add_to_batch(source->marks);
        if (!taken)
            break;
        *taken = (mark){.source = source,
                        .order = source->marks->n_batch,
                        .thread = slot->thread,
                        .kind = slot->kind,
                        .name = slot->name % JM_RING_NAMES};
        /* Unsigned: any number may be there, and must not overflow. */
        taken->boot_ns = (int64_t)((uint64_t)slot->time_ns + (uint64_t)offset_ns);
    }
    atomic_store_explicit(&ring->tail, source->tail, memory_order_release);
    atomic_store_explicit(&ring->next_wake_ns, boot_ns - offset_ns + JM_RING_WAKE_NS,
                          memory_order_relaxed);
}

static void gather_shells(jm_source *source) {
    for (int i = 0; i < source->n_shell; i++) {
        mark *taken = add_to_batch(source->marks);
        if (!taken)
            break;
        *taken = source->shell_marks[i];
        taken->order = source->marks->n_batch;
    }
    source->n_shell = 0; /* their names stay until the next mark */
}

static int by_time(const void *left, const void *right) {
    const mark *a = left, *b = right;
    if (a->boot_ns != b->boot_ns)
        return a->boot_ns < b->boot_ns ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static jm_account *holder_of(const jm_ledger *ledger, const jm_source *source) {
    jm_account *step = jm_ledger_find(ledger, source->step_pid, source->step_start);
    return step && step->closed_ns == 0 ? jm_account_holder(step) : NULL;
}

static bool name_of(const mark *taken, char name[JM_REGION_NAME_MAX]) {
    const jm_source *source = taken->source;
    return jm_region_clean_name(source->ring ? source->ring->names[taken->name]
                                             : source->shell_names[taken->name],
                                JM_RING_NAME, name);
}

static void tell(jm_marks *marks, const jm_account *holder, const mark *taken, int region) {
    char path[JM_REGION_DEPTH_MAX * JM_REGION_NAME_MAX];
    const jm_account *job = holder->job ? holder->job : holder;
    if (!marks->visit || job->mode != JM_MODE_PROFILE)
        return;
    jm_region_path(&holder->regions, region, path, sizeof path);
    jm_mark told = {.boot_ns = taken->boot_ns,
                    .kind = taken->kind,
                    .path = path,
                    .rank = taken->source->rank,
                    .thread = taken->thread};
    marks->visit(marks->context, holder, &told);
}

static void take_in(jm_marks *marks, jm_account *holder, const mark *taken,
                    const jm_interval *tick) {
    char name[JM_REGION_NAME_MAX];
    jm_region_book *book = &holder->regions;
    thread *who = get_thread(taken->source, taken->thread);
    if (!who || !name_of(taken, name)) {
        book->refused++;
    } else if (taken->kind == JM_MARK_BEGIN) {
        if (jm_region_begin(book, &who->stack, name, taken->boot_ns, tick))
            tell(marks, holder, taken, who->stack.visits[who->stack.depth - 1].region);
    } else if (taken->kind == JM_MARK_END) {
        if (jm_region_end(book, &who->stack, name, taken->boot_ns, tick, &who->last))
            tell(marks, holder, taken, who->last.region);
        marks->full_job = 0;
    } else {
        book->refused++;
    }
}

/* What the client says it lost; one that says nonsense spoils its own step's count alone. */
static void count_lost(jm_source *source, jm_region_book *book) {
    uint64_t said =
        source->ring ? atomic_load_explicit(&source->ring->lost, memory_order_relaxed) : 0;
    uint64_t lost = source->lost + (said < UINT32_MAX ? said : UINT32_MAX);
    book->refused += lost;
    source->lost = 0;
    if (said > 0)
        atomic_fetch_sub_explicit(&source->ring->lost, said, memory_order_relaxed);
}

static bool is_asked(uint32_t asked, uint32_t job_id) {
    return asked == 0 || asked == job_id;
}

static void drop_gone(jm_marks *marks, const jm_ledger *ledger, uint32_t job_id, int64_t boot_ns) {
    int kept = 0;
    for (int i = 0; i < marks->n_sources; i++) {
        jm_source *source = marks->sources[i];
        if (!is_asked(job_id, source->job_id)) {
            marks->sources[kept++] = source;
            continue;
        }
        jm_account *holder = holder_of(ledger, source);
        bool over = source->gone ? !jm_source_pending(source) || !holder : !source->ring && !holder;
        if (!over) {
            marks->sources[kept++] = source;
            continue;
        }
        for (int t = 0; t < source->n_threads && holder; t++)
            jm_region_end_all(&holder->regions, &source->threads[t]->stack, boot_ns);
        free_source(source);
    }
    marks->n_sources = kept;
    marks->full_job = 0;
}

static void gather(jm_marks *marks, const jm_ledger *ledger, uint32_t job_id, int64_t boot_ns) {
    int64_t offset_ns = jm_boot_ns() - jm_clock_ns(CLOCK_MONOTONIC);
    uint64_t share = marks->n_sources > 0 ? BUDGET / (uint64_t)marks->n_sources : 0;
    uint64_t budget = share > BUDGET_LEAST ? share : BUDGET_LEAST;
    marks->n_batch = 0;
    for (int i = 0; i < marks->n_sources; i++) {
        jm_source *source = marks->sources[i];
        size_t first = marks->n_batch;
        if (!is_asked(job_id, source->job_id))
            continue;
        jm_account *holder = holder_of(ledger, source);
        if (holder && holder->regions.tick.to_ns == boot_ns) /* this tick's are in already */
            continue;
        if (source->ring)
            gather_ring(source, budget, boot_ns, offset_ns);
        else
            gather_shells(source);
        if (!holder) {
            marks->n_batch = first;
            continue;
        }
        count_lost(source, &holder->regions);
        /* A mark belongs to this tick: what was before it has been charged. */
        for (size_t k = first; k < marks->n_batch; k++)
            marks->batch[k].boot_ns =
                clamp(marks->batch[k].boot_ns, holder->regions.seen_ns, boot_ns);
    }
    if (marks->n_batch > 1)
        qsort(marks->batch, marks->n_batch, sizeof *marks->batch, by_time);
}

void jm_marks_drain(jm_marks *marks, jm_ledger *ledger, uint32_t job_id, int64_t boot_ns) {
    gather(marks, ledger, job_id, boot_ns);
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (account->regions.watched && is_asked(job_id, account->job_id))
            account->regions.tick = jm_ledger_region_tick(ledger, account, boot_ns);
    }
    const jm_source *source = NULL;
    jm_account *holder = NULL;
    for (size_t k = 0; k < marks->n_batch; k++) {
        if (marks->batch[k].source != source) {
            source = marks->batch[k].source;
            holder = holder_of(ledger, source);
        }
        take_in(marks, holder, &marks->batch[k], &holder->regions.tick);
    }
    drop_gone(marks, ledger, job_id, boot_ns);
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (account->regions.watched && account->closed_ns == 0 &&
            is_asked(job_id, account->job_id))
            jm_ledger_settle_regions(ledger, account, &account->regions.tick);
    }
}

bool jm_source_pending(const jm_source *source) {
    if (!source->ring)
        return source->n_shell > 0;
    return atomic_load_explicit(&source->ring->head, memory_order_relaxed) != source->tail;
}

bool jm_marks_pending(const jm_marks *marks) {
    for (int i = 0; i < marks->n_sources; i++)
        if (marks->sources[i]->gone || jm_source_pending(marks->sources[i]))
            return true;
    return false;
}

bool jm_marks_last(jm_source *source, const jm_ledger *ledger, uint32_t thread_id,
                   jm_visit_sum *sum) {
    thread *who = find_thread(source, thread_id);
    if (!who || who->last.region < 0 || !holder_of(ledger, source))
        return false;
    *sum = who->last;
    who->last.region = -1;
    return true;
}

int jm_marks_fd(const jm_marks *marks) {
    return marks->epoll;
}

void jm_marks_heard(jm_marks *marks) {
    struct epoll_event events[EVENTS_MAX];
    while (epoll_wait(marks->epoll, events, EVENTS_MAX, 0) == EVENTS_MAX) {
    }
}
