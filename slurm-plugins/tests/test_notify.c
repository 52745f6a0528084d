// SPDX-License-Identifier: GPL-2.0-or-later
// systemd's socket, played by the test: what it is told of the server, and how often.
#include "node.h"
#include "notify.h"
#include "server.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int manager;

/* name: a path, or behind an @ one that is not in the file system. */
static void listen_at(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    expect(jm_format(address.sun_path, sizeof address.sun_path, "%s", name));
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    size_t size = offsetof(struct sockaddr_un, sun_path) + strlen(name);
    expect_equal(bind(manager, (struct sockaddr *)&address, (socklen_t)size), 0, "%s", name);
    setenv("NOTIFY_SOCKET", name, 1);
}

static const char *heard(void) {
    static char text[64];
    ssize_t length = recv(manager, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static void end(void) {
    if (manager > 0)
        close(manager);
    manager = 0;
    FOR_TEXTS (name, "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
        unsetenv(name);
    test_end_folder();
}

TEST(both_kinds_of_sockets_are_known) {
    listen_at(test_path("notify"));
    jm_notify("READY=1");
    expect_text(heard(), "READY=1");
    close(manager);
    listen_at(test_text("@joulemark-test-%d", getpid()));
    jm_notify("STOPPING=1");
    expect_text(heard(), "STOPPING=1");
}

TEST(where_nobody_asked_or_listens_nothing_happens) {
    jm_notify("READY=1");
    setenv("NOTIFY_SOCKET", test_path("nobody"), 1);
    jm_notify("READY=1");
    setenv("NOTIFY_SOCKET", "", 1);
    jm_notify("READY=1");
    static char longest[200];
    memset(longest, '/', sizeof longest - 1);
    setenv("NOTIFY_SOCKET", longest, 1);
    jm_notify("READY=1");
}

TEST(the_watchdog_is_shown_life_thrice_in_its_time) {
    expect_equal(jm_notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "3000000", 1);
    expect_equal(jm_notify_watchdog_ns(), SECOND);
    setenv("WATCHDOG_PID", test_text("%d", getpid()), 1);
    expect_equal(jm_notify_watchdog_ns(), SECOND);
    setenv("WATCHDOG_PID", "1", 1); /* of whoever started us */
    expect_equal(jm_notify_watchdog_ns(), 0);
    unsetenv("WATCHDOG_PID");
    FOR_TEXTS (wrong, "0", "-3", "soon", "") {
        setenv("WATCHDOG_USEC", wrong, 1);
        expect_equal(jm_notify_watchdog_ns(), 0, "%s", wrong);
    }
}

static jm_listeners listeners;

static void *serve(void *unused) {
    (void)unused;
    expect_equal(jm_server_run(&node, &listeners), 0);
    return NULL;
}

/* Also where its own period is an hour. */
TEST(a_server_says_that_it_is_there_and_lives_and_ends) {
    jm_message why;
    sigset_t ending;
    pthread_t thread;
    listen_at(test_path("notify"));
    setenv("WATCHDOG_USEC", "30000", 1);
    start_first_daemon(3600, "");
    expect_equal(jm_server_listen(&node, &listeners, &why), 0);
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    expect_equal(pthread_create(&thread, NULL, serve, NULL), 0);
    expect_text(heard(), "READY=1");
    for (int i = 0; i < 3; i++)
        expect_text(heard(), "WATCHDOG=1");
    kill(getpid(), SIGTERM);
    const char *last = heard();
    while (strcmp(last, "WATCHDOG=1") == 0)
        last = heard();
    expect_text(last, "STOPPING=1");
    pthread_join(thread, NULL);
    stop_daemon();
    alarm(0);
}

int main(int argc, char **argv) {
    (void)argv;
    return all_with_daemon(argc, test_begin_folder, end);
}
