// The region client against a real SOCK_SEQPACKET peer: protocol, reconnection, hanging, absence.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "clock.h"
#include "expect.h"
#include "fake_daemon.h"
#include "joulemark.h"

#include <errno.h>
#include <locale.h>
#include <sys/wait.h>

static struct fake_daemon daemon_;

static double seconds_since(uint64_t start_ns) {
    return (double)(clock_now_ns() - start_ns) * 1e-9;
}

static void without_a_socket_nothing_happens(void) {
    struct joulemark_energy energy = {.energy_uj = 1};
    unsetenv("JOULEMARK_SOCKET");
    EXPECT(!joulemark_region_begin("solve"));
    EXPECT(!joulemark_region_end_energy("solve", &energy));
    EXPECT(energy.energy_uj == 0);
    setenv("JOULEMARK_SOCKET", "/nonexistent/socket", 1);
    errno = ENOTTY;
    EXPECT(!joulemark_region_begin("solve"));
    EXPECT(errno == ENOTTY);
}

static void marks_reach_the_daemon_on_one_connection(void) {
    fake_start(&daemon_);
    struct joulemark_energy energy;
    for (int i = 0; i < 3; i++) {
        EXPECT(joulemark_region_begin("copy/1048576"));
        EXPECT(joulemark_region_end_energy("copy/1048576", &energy));
    }
    EXPECT(daemon_.connections == 1);
    EXPECT(daemon_.packets == 6);
    EXPECT_TEXT(daemon_.packet[0], "region_begin name=copy/1048576");
    EXPECT_TEXT(daemon_.packet[5], "region_end name=copy/1048576");
    EXPECT(energy.energy_uj == 5000000 && energy.samples == 7 && !energy.estimated);
    EXPECT(energy.seconds > 0.4999 && energy.seconds < 0.5001);
    EXPECT(energy.uncertainty_uj > 40000.4 && energy.uncertainty_uj < 40000.6);
    fake_stop(&daemon_);
}

static void names_are_encoded_and_bounded(void) {
    fake_start(&daemon_);
    EXPECT(joulemark_region_begin("a b%\n\xc3\xa9="));
    EXPECT_TEXT(daemon_.packet[0], "region_begin name=a%20b%25%0A%C3%A9=");
    char longest[JOULEMARK_REGION_NAME_MAX + 2];
    memset(longest, ' ', sizeof longest);
    longest[JOULEMARK_REGION_NAME_MAX + 1] = '\0';
    EXPECT(!joulemark_region_begin(longest));
    longest[JOULEMARK_REGION_NAME_MAX] = '\0';
    EXPECT(joulemark_region_begin(longest));
    EXPECT(strlen(daemon_.packet[1]) == strlen("region_begin name=") + 3 * 255);
    EXPECT(!joulemark_region_begin(""));
    EXPECT(!joulemark_region_begin(NULL));
    EXPECT(daemon_.packets == 2);
    fake_stop(&daemon_);
}

static void a_restarted_daemon_is_found_again(void) {
    fake_start(&daemon_);
    daemon_.hang_up = true;
    EXPECT(joulemark_region_begin("solve"));
    EXPECT(joulemark_region_end("solve"));
    EXPECT(daemon_.connections == 2);
    fake_stop(&daemon_);
}

static void refusals_and_nonsense_are_false(void) {
    static const char *const answers[] = {
        "error no such region",
        "okay",
        "ok",
        "ok energy_uj=1 uncertainty_uj=1 seconds=1 estimated=0",
        "ok energy_uj=nan uncertainty_uj=1 seconds=1 estimated=0 samples=1",
        "ok energy_uj=-1 uncertainty_uj=1 seconds=1 estimated=0 samples=1",
        "ok energy_uj=12x uncertainty_uj=1 seconds=1 estimated=0 samples=1",
    };
    fake_start(&daemon_);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct joulemark_energy energy;
        daemon_.end_answer = answers[i];
        EXPECT(!joulemark_region_end_energy("solve", &energy));
        EXPECT(energy.energy_uj == 0);
    }
    fake_stop(&daemon_);
}

static void a_child_speaks_for_itself(void) {
    fake_start(&daemon_);
    EXPECT(joulemark_region_begin("parent"));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(joulemark_region_begin("child") ? 0 : 1);
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(daemon_.connections == 2);
    fake_stop(&daemon_);
}

static void numbers_do_not_follow_the_users_locale(void) {
    // Only where a locale with a decimal comma is installed can this differ.
    setlocale(LC_ALL, "de_DE.UTF-8");
    fake_start(&daemon_);
    struct joulemark_energy energy;
    EXPECT(joulemark_region_end_energy("solve", &energy));
    EXPECT(energy.seconds > 0.4999 && energy.seconds < 0.5001);
    fake_stop(&daemon_);
    setlocale(LC_ALL, "C");
}

// Last: it leaves the client silent for a while.
static void a_hanging_daemon_costs_little(void) {
    fake_start(&daemon_);
    daemon_.hang = true;
    uint64_t start_ns = clock_now_ns();
    EXPECT(!joulemark_region_begin("solve"));
    EXPECT(seconds_since(start_ns) >= 0.099);
    for (int i = 0; i < 1000; i++)
        EXPECT(!joulemark_region_end("solve"));
    // A thousand more marks wait for no answer; generous for a busy machine.
    EXPECT(seconds_since(start_ns) < 2);
    EXPECT(daemon_.packets == 1);
    fake_stop(&daemon_);
}

int main(void) {
    without_a_socket_nothing_happens();
    marks_reach_the_daemon_on_one_connection();
    names_are_encoded_and_bounded();
    a_restarted_daemon_is_found_again();
    refusals_and_nonsense_are_false();
    a_child_speaks_for_itself();
    numbers_do_not_follow_the_users_locale();
    a_hanging_daemon_costs_little();
    return expect_result();
}
