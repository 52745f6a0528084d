// Threads take folders from one stack, the last one first, so that few wait; a bounded queue brings
// what they found to the caller.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "walk.h"

#include "memory.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

// The caller is woken for many objects at once, and threads wait when it falls behind.
enum { BATCH_OBJECTS = 1 << 12, QUEUE_OBJECTS = 1 << 16 };

struct walk {
    const struct tree *tree;
    unsigned thread_count;
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t work, room, news;
    struct found *batch; // the caller's alone

    // under the lock
    struct folder **stack;
    size_t stack_size, stack_room;
    size_t unread; // folders on the stack or being read
    struct found *first, **last;
    size_t queued; // objects
    bool stopped;
    struct tally tally;
};

static void push(struct walk *walk, struct folder *folder) {
    if (walk->stack_size == walk->stack_room) {
        walk->stack_room = walk->stack_room ? 2 * walk->stack_room : 1024;
        walk->stack = memory(walk->stack, walk->stack_room * sizeof *walk->stack);
    }
    walk->stack[walk->stack_size++] = folder;
    walk->unread++;
}

static void push_folders(struct walk *walk, struct folder *parent, const struct found *found) {
    for (size_t i = found->count; i-- > 0;) {
        const struct object *one = &found->objects[i];
        if (S_ISDIR(one->mode))
            push(walk, folder_new(parent, found->names + one->name_at, one->ino));
    }
}

static void enqueue(struct walk *walk, struct found *found) {
    while (walk->queued > QUEUE_OBJECTS && !walk->stopped)
        pthread_cond_wait(&walk->room, &walk->lock);
    walk->queued += found->count + 1;
    *walk->last = found;
    walk->last = &found->next;
    if (walk->queued >= BATCH_OBJECTS)
        pthread_cond_signal(&walk->news);
}

// The next folder; NULL: there will be none.
static struct folder *pop(struct walk *walk) {
    while (!walk->stack_size && walk->unread && !walk->stopped)
        pthread_cond_wait(&walk->work, &walk->lock);
    return walk->stack_size && !walk->stopped ? walk->stack[--walk->stack_size] : NULL;
}

static void add_tally(struct tally *sum, const struct tally *one) {
    sum->denied += one->denied;
    sum->failed += one->failed;
    sum->moved += one->moved;
    sum->mounts += one->mounts;
}

static void *read_folders(void *context) {
    struct walk *walk = context;
    struct tally tally = {0};
    pthread_mutex_lock(&walk->lock);
    for (struct folder *folder; (folder = pop(walk));) {
        pthread_mutex_unlock(&walk->lock);
        struct found *found = folder_read(walk->tree, folder, &tally);
        pthread_mutex_lock(&walk->lock);
        push_folders(walk, folder, found);
        pthread_cond_broadcast(&walk->work);
        enqueue(walk, found);
        folder_release(folder);
        if (--walk->unread == 0) {
            pthread_cond_broadcast(&walk->work);
            pthread_cond_signal(&walk->news);
        }
    }
    add_tally(&walk->tally, &tally);
    pthread_mutex_unlock(&walk->lock);
    return NULL;
}

struct walk *walk_begin(const struct tree *tree, uint64_t root_ino, unsigned threads) {
    struct walk *walk = memory(NULL, sizeof *walk);
    *walk = (struct walk){.tree = tree, .last = &walk->first};
    pthread_mutex_init(&walk->lock, NULL);
    pthread_cond_init(&walk->work, NULL);
    pthread_cond_init(&walk->room, NULL);
    pthread_cond_init(&walk->news, NULL);
    walk->threads = memory(NULL, threads * sizeof *walk->threads);
    push(walk, folder_new(NULL, "", root_ino));
    int error = 0;
    while (walk->thread_count < threads && !error) {
        error = pthread_create(&walk->threads[walk->thread_count], NULL, read_folders, walk);
        walk->thread_count += !error;
    }
    if (walk->thread_count)
        return walk; // fewer do, too
    walk_end(walk);
    errno = error;
    return NULL;
}

// Waits for what makes a batch, or for the last.
static struct found *next_batch(struct walk *walk) {
    pthread_mutex_lock(&walk->lock);
    while (walk->queued < BATCH_OBJECTS && walk->unread)
        pthread_cond_wait(&walk->news, &walk->lock);
    struct found *batch = walk->first;
    walk->first = NULL;
    walk->last = &walk->first;
    walk->queued = 0;
    pthread_cond_broadcast(&walk->room);
    pthread_mutex_unlock(&walk->lock);
    return batch;
}

struct found *walk_next(struct walk *walk) {
    if (!walk->batch)
        walk->batch = next_batch(walk);
    struct found *found = walk->batch;
    if (found)
        walk->batch = found->next;
    return found;
}

static void free_all(struct found *found) {
    while (found) {
        struct found *next = found->next;
        found_free(found);
        found = next;
    }
}

struct tally walk_end(struct walk *walk) {
    pthread_mutex_lock(&walk->lock);
    walk->stopped = true;
    pthread_cond_broadcast(&walk->work);
    pthread_cond_broadcast(&walk->room);
    pthread_mutex_unlock(&walk->lock);
    for (unsigned i = 0; i < walk->thread_count; i++)
        pthread_join(walk->threads[i], NULL);
    while (walk->stack_size)
        folder_release(walk->stack[--walk->stack_size]);
    free_all(walk->batch);
    free_all(walk->first);
    const struct tally tally = walk->tally;
    pthread_mutex_destroy(&walk->lock);
    pthread_cond_destroy(&walk->work);
    pthread_cond_destroy(&walk->room);
    pthread_cond_destroy(&walk->news);
    free(walk->threads);
    free(walk->stack);
    free(walk);
    return tally;
}
