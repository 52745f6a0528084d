// SPDX-License-Identifier: GPL-2.0-or-later
// Asking a daemon that is late, hangs, or is not there.
#include "bk_fixtures.h"
#include "client.h"
#include "clock.h"

#include <pthread.h>

enum { TIMEOUT_MS = 20 };
static const int64_t HOUR_NS = 3600 * INT64_C(1000000000);

static jm_client client;
static int listener;
static jm_message why;

/* Who connects is heard and gets no answer, until somebody runs answer_all(). */
static void begin(void) {
    test_begin_folder();
    client = (jm_client)JM_CLIENT_INIT;
    snprintf(client.socket, sizeof client.socket, "%s/s", test_folder);
    listener = test_listen(client.socket);
}

static void end(void) {
    jm_client_close(&client);
    close(listener);
    test_end_folder();
}

static const char *said = "ok";

/* `said` to whatever comes, until the listener is shut down. */
static void *answer_all(void *unused) {
    char request[256];
    int fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        while (recv(fd, request, sizeof request, 0) > 0)
            if (send(fd, said, strlen(said), MSG_NOSIGNAL) < 0)
                break;
        close(fd);
    }
    return unused;
}

/* Says when it was sent, how long its sender waits, and who that is. */
TEST(a_request_is_dated) {
    jm_packet reply, packet;
    char text[JM_PACKET_MAX];
    for (int told = 0; told < 2; told++) {
        int64_t before_ns = jm_clock_ns(CLOCK_BOOTTIME);
        if (told)
            expect_equal(jm_client_tell(&client, "close quiet=1", &why), 0);
        else
            expect_equal(jm_client_ask(&client, "open job=7", TIMEOUT_MS, &reply, &why), -1);
        int fd = accept(listener, NULL, NULL);
        ssize_t n = recv(fd, text, sizeof text, 0);
        expect(n > 0 && jm_packet_parse(text, (size_t)n, &packet));
        uint64_t sent_ns = jm_packet_u64(&packet, "sent_ns", 0);
        expect(sent_ns >= (uint64_t)before_ns && sent_ns <= (uint64_t)jm_clock_ns(CLOCK_BOOTTIME));
        expect_equal(jm_packet_u64(&packet, "wait_ms", 0), told ? 0 : TIMEOUT_MS);
        expect_text(packet.verb, told ? "close" : "open");
        const jm_speaker us = jm_packet_take_speaker(&packet);
        expect(jm_speaker_is_ours(&us));
        close(fd);
    }
}

static int ask(void) {
    jm_packet reply;
    return jm_client_ask(&client, "read", TIMEOUT_MS, &reply, &why);
}

TEST(one_late_reply_does_not_silence_for_long) {
    pthread_t thread;
    expect_equal(ask(), -1);
    expect_part(why.text, "no reply in time");
    expect_equal(client.silence_ms, JM_SILENCE_MS);
    client.retry_after_ns += HOUR_NS; /* however late this program goes on */
    expect_equal(ask(), -1);
    expect_part(why.text, "lately");
    client.retry_after_ns -= HOUR_NS;
    pthread_create(&thread, NULL, answer_all, NULL);
    test_pause_ms(JM_SILENCE_MS + 10);
    jm_packet reply;
    expect_equal(jm_client_ask(&client, "read", 10000, &reply, &why), 0);
    expect_equal(client.silence_ms, 0);
    jm_client_close(&client);
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
}

TEST(a_daemon_that_hangs_is_asked_ever_more_rarely) {
    int64_t before_ms = 0;
    for (int times = 0; times < 6; times++) {
        expect_equal(ask(), -1);
        expect_part(why.text, "no reply in time");
        int64_t silence_ns = client.retry_after_ns - jm_clock_ns(CLOCK_MONOTONIC);
        expect(client.silence_ms > before_ms || client.silence_ms == JM_SILENCE_MAX_MS);
        expect(silence_ns <= JM_SILENCE_MAX_MS * INT64_C(1000000));
        before_ms = client.silence_ms;
        client.retry_after_ns = 1; /* as if that time had passed */
    }
    expect_equal(client.silence_ms, JM_SILENCE_MAX_MS);
}

TEST(a_daemon_that_is_not_there_silences_nobody) {
    unlink(client.socket);
    for (int times = 0; times < 2; times++) {
        expect_equal(ask(), -1);
        expect_part(why.text, "joulemarkd does not answer at");
        expect_equal(client.retry_after_ns, 0);
    }
}

/* Of an earlier release, of ours, of later ones; the last has nothing in common with us. */
TEST(a_daemon_of_another_release_is_understood_or_named) {
    static const char *const ANSWERS[] = {"ok watts=7", "ok watts=7 speaks=9.9.9:2-8",
                                          "ok watts=7 speaks=9.9.9:7-8"};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        jm_packet reply;
        said = ANSWERS[i];
        if (i > 0)
            end(), begin();
        pthread_create(&thread, NULL, answer_all, NULL);
        expect_equal(jm_client_ask(&client, "node", 10000, &reply, &why), i < 2 ? 0 : -1);
        expect_equal(jm_packet_u64(&reply, "watts", 0), 7);
        expect_equal(reply.n_fields, 1);
        jm_client_close(&client);
        shutdown(listener, SHUT_RDWR);
        pthread_join(thread, NULL);
    }
    expect_part(why.text, "joulemark 9.9.9, protocol 7-8: this is joulemark");
    said = "ok";
}

int main(void) {
    return expect_each(begin, end);
}
