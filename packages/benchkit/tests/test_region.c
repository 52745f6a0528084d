// The region client against a real SOCK_SEQPACKET peer: rings, reconnection, hanging, absence.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "clock.h"
#include "fake_daemon.h"
#include "instruments.h"
#include "joulemark.h"

#include <errno.h>
#include <locale.h>
#include <sys/wait.h>

static struct fake_daemon daemon_;

static double seconds_since(uint64_t start_ns) {
    return (double)(clock_now_ns() - start_ns) * 1e-9;
}

TEST(without_a_socket_nothing_happens) {
    struct joulemark_energy energy = {.energy_uj = 1};
    unsetenv("JOULEMARK_SOCKET");
    expect(!joulemark_region_begin("solve"));
    expect(!joulemark_region_end_energy("solve", &energy));
    expect_equal(energy.energy_uj, 0);
}

TEST(marks_go_into_one_ring) {
    setenv("SLURM_PROCID", "5", 1);
    fake_start(&daemon_);
    expect_text(joulemark_instruments(), "");
    struct joulemark_energy energy;
    for (int i = 0; i < 3; i++) {
        expect(joulemark_region_begin("copy/1048576"));
        expect(joulemark_region_end_energy("copy/1048576", &energy));
    }
    expect(daemon_.connections == 1 && daemon_.n_rings == 1);
    expect_text(daemon_.packet[0], "marks rank=5");
    expect_text(joulemark_instruments(), "powercap/cpu nvml/gpu");
    expect_text(joulemark_channels(), "rapl/package-0 gpu 1");
    expect_equal(strncmp(daemon_.packet[1], "region_last thread=", 19), 0);
    expect_equal(daemon_.rings[0]->head, 6);
    expect_text(fake_mark(&daemon_, 0, 0), "begin copy/1048576");
    expect_text(fake_mark(&daemon_, 0, 5), "end copy/1048576");
    expect_equal(daemon_.rings[0]->slots[0].name, daemon_.rings[0]->slots[5].name);
    expect(daemon_.rings[0]->slots[0].time_ns <= daemon_.rings[0]->slots[1].time_ns);
    expect(energy.energy_uj == 5000000 && energy.samples == 7 && !energy.estimated);
    expect(energy.seconds > 0.4999 && energy.seconds < 0.5001);
    expect(energy.uncertainty_uj > 40000.4 && energy.uncertainty_uj < 40000.6);
    unsetenv("SLURM_PROCID");
}

TEST(names_are_bounded) {
    expect(joulemark_region_begin("a b%\n\xc3\xa9="));
    expect_text(fake_mark(&daemon_, 0, 6), "begin a b%\n\xc3\xa9=");
    char longest[JOULEMARK_REGION_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[JOULEMARK_REGION_NAME_MAX + 1] = '\0';
    expect(!joulemark_region_begin(longest));
    longest[JOULEMARK_REGION_NAME_MAX] = '\0';
    expect(joulemark_region_begin(longest));
    expect(!joulemark_region_begin(""));
    expect(!joulemark_region_begin(NULL));
    expect_equal(daemon_.rings[0]->head, 8);
    char name[32];
    int taken = 0;
    for (int i = 0; i < JM_RING_NAMES; i++) {
        snprintf(name, sizeof name, "name %d", i);
        taken += joulemark_region_begin(name);
    }
    expect_equal(taken, JM_RING_NAMES - 3);
    expect(joulemark_region_end("name 7"));
}

TEST(a_full_ring_loses_marks_and_counts_them) {
    jm_ring *ring = daemon_.rings[0];
    while (joulemark_region_begin("name 1"))
        ;
    expect(ring->head - ring->tail == JM_RING_SLOTS && ring->lost == 1);
    ring->tail = ring->head;
    expect(joulemark_region_begin("name 1"));
}

// The daemon is woken by marks, but not by each of them.
TEST(the_daemon_is_woken_now_and_then) {
    eventfd_t times = 0;
    atomic_store(&daemon_.rings[0]->next_wake_ns, 0);
    eventfd_read(daemon_.events[0], &times);
    uint64_t start_ns = clock_now_ns();
    for (int i = 0; i < 1000; i++)
        joulemark_region_begin("name 2");
    double seconds = seconds_since(start_ns);
    expect_equal(eventfd_read(daemon_.events[0], &times), 0);
    expect(times >= 1 && (double)times <= seconds / 0.02 + 1);
}

static void *mark_in_a_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 1000; i++)
        joulemark_region_begin("name 3");
    return NULL;
}

TEST(threads_share_the_ring_and_lose_nothing) {
    jm_ring *ring = daemon_.rings[0];
    ring->tail = ring->head;
    uint64_t first = ring->head;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, mark_in_a_thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    expect_equal(ring->head, first + 4000);
    for (uint64_t place = first; place < first + 4000; place++)
        expect_text(fake_mark(&daemon_, 0, place), "begin name 3");
    expect_equal(daemon_.connections, 1);
}

TEST(a_child_has_a_ring_of_its_own) {
    uint64_t head = daemon_.rings[0]->head;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(joulemark_region_begin("child") ? 0 : 1);
    int status;
    expect(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect(daemon_.connections == 2 && daemon_.n_rings == 2);
    expect_text(fake_mark(&daemon_, 1, 0), "begin child");
    expect_equal(daemon_.rings[0]->head, head);
}

// Taking the child's connection, the fake dropped ours.
TEST(a_restarted_daemon_is_found_again) {
    uint64_t deadline_ns = clock_now_ns() + UINT64_C(20000000000);
    while (daemon_.n_rings < 3 && clock_now_ns() < deadline_ns) {
        atomic_store(&daemon_.rings[0]->next_wake_ns, 0);
        joulemark_region_begin("name 4");
    }
    expect_equal(daemon_.n_rings, 3);
    expect_text(fake_mark(&daemon_, 2, 0), "begin name 4");
}

TEST(refusals_and_nonsense_are_false) {
    static const char *const answers[] = {
        "error no such region",
        "okay",
        "ok",
        "ok energy_uj=1 uncertainty_uj=1 seconds=1 estimated=0",
        "ok energy_uj=nan uncertainty_uj=1 seconds=1 estimated=0 samples=1",
        "ok energy_uj=-1 uncertainty_uj=1 seconds=1 estimated=0 samples=1",
        "ok energy_uj=12x uncertainty_uj=1 seconds=1 estimated=0 samples=1",
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct joulemark_energy energy;
        daemon_.last_answer = answers[i];
        expect(!joulemark_region_end_energy("solve", &energy));
        expect_equal(energy.energy_uj, 0);
    }
    daemon_.last_answer = "ok energy_uj=5 uncertainty_uj=1 seconds=0.5 estimated=1 samples=7";
}

TEST(numbers_do_not_follow_the_users_locale) {
    // Only where a locale with a decimal comma is installed can this differ.
    setlocale(LC_ALL, "de_DE.UTF-8");
    struct joulemark_energy energy;
    expect(joulemark_region_end_energy("solve", &energy));
    expect(energy.seconds > 0.4999 && energy.seconds < 0.5001 && energy.estimated);
    setlocale(LC_ALL, "C");
}

// Last: it leaves the client silent for a while.
TEST(a_hanging_daemon_costs_little) {
    daemon_.hang = true;
    uint64_t start_ns = clock_now_ns();
    struct joulemark_energy energy;
    expect(!joulemark_region_end_energy("solve", &energy));
    expect(seconds_since(start_ns) >= 0.49);
    for (int i = 0; i < 1000; i++)
        joulemark_region_begin("solve");
    // A thousand more marks wait for one answer; generous for a busy machine.
    expect(seconds_since(start_ns) < 3);
}

TEST(without_a_daemon_nothing_happens) {
    fake_stop(&daemon_);
    setenv("JOULEMARK_SOCKET", "/nonexistent/socket", 1);
    errno = ENOTTY;
    expect(!joulemark_region_begin("solve"));
    expect_equal(errno, ENOTTY);
}

int main(void) {
    return expect_all();
}
