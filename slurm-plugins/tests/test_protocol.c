// SPDX-License-Identifier: GPL-2.0-or-later
// The socket's words: whatever is put into a packet comes out of it; rubbish is refused.
#include "bk_expect.h"
#include "protocol.h"
#include "random.h"

TEST(any_value_comes_through) {
    for (int round = 0; round < 5000; round++) {
        char value[64], text[JM_PACKET_MAX];
        size_t n = random_below(sizeof value - 1);
        for (size_t i = 0; i < n; i++)
            value[i] = (char)(1 + random_below(255));
        value[n] = '\0';
        jm_packet packet;
        jm_packet_begin(text, sizeof text, "open");
        jm_packet_add(text, sizeof text, "name", "%s", value);
        jm_packet_add(text, sizeof text, "job", "%d", 7);
        expect(jm_packet_parse(text, strlen(text), &packet));
        expect_text(packet.verb, "open");
        expect_text(jm_packet_get(&packet, "name"), value);
        expect_equal(jm_packet_u64(&packet, "job", 0), 7);
    }
}

TEST(a_field_that_does_not_fit_is_left_out_whole) {
    char text[32];
    jm_packet packet;
    jm_packet_begin(text, sizeof text, "ok");
    jm_packet_add(text, sizeof text, "a", "1");
    jm_packet_add(text, sizeof text, "long", "%s", "                              ");
    expect(jm_packet_parse(text, strlen(text), &packet));
    expect_equal(packet.n_fields, 1);
}

TEST(rubbish_is_refused) {
    jm_packet packet;
    FOR_TEXTS (bad, "", " ", "verb x", "verb a=%", "verb a=%2", "verb a=%zz", "verb a=%00")
        expect(!jm_packet_parse(bad, strlen(bad), &packet));
}

TEST(a_number_that_is_none_is_the_fallback) {
    jm_packet packet;
    const char *text = "ok a=12x b=-1 c=1.5";
    expect(jm_packet_parse(text, strlen(text), &packet));
    expect_equal(jm_packet_u64(&packet, "a", 99), 99);
    expect_equal(jm_packet_u64(&packet, "b", 99), 99);
    expect_equal(jm_packet_u64(&packet, "missing", 99), 99);
    expect_equal(jm_packet_double(&packet, "c", 0), 1.5);
}

static jm_speaker speaker_of(const char *text, jm_packet *packet) {
    expect(jm_packet_parse(text, strlen(text), packet), "%s", text);
    return jm_packet_take_speaker(packet);
}

TEST(who_signs_is_known_and_his_signature_is_no_field) {
    char text[JM_PACKET_MAX];
    jm_packet packet;
    jm_packet_begin(text, sizeof text, "open");
    jm_packet_add(text, sizeof text, "job", "7");
    jm_packet_sign(text, sizeof text);
    const jm_speaker speaker = speaker_of(text, &packet);
    expect(jm_speaker_is_ours(&speaker));
    expect_equal(packet.n_fields, 1);
    expect_equal(jm_packet_u64(&packet, "job", 0), 7);
}

TEST(who_says_no_version_is_of_the_first) {
    jm_packet packet;
    FOR_TEXTS (text, "open", "open job=7", "open speaks=x", "open speaks=:1-2",
               "open speaks=0.1.0:2", "open speaks=0.1.0:1-2 job=7") {
        const jm_speaker speaker = speaker_of(text, &packet);
        expect_text(speaker.release, "");
        expect_equal(speaker.oldest, 1);
        expect_equal(speaker.newest, 1);
    }
}

TEST(those_with_a_version_in_common_talk) {
    jm_message why;
    const jm_speaker earlier = {"", 1, 1}, later = {"9.9.9", JM_PROTOCOL, 8};
    expect(jm_speaker_fits(&earlier, &why) == (JM_PROTOCOL_OLDEST == 1));
    expect(jm_speaker_fits(&later, &why) && !jm_speaker_is_ours(&later));
}

TEST(those_with_none_are_both_named_with_the_fix) {
    jm_message why;
    const jm_speaker far = {"9.9.9", JM_PROTOCOL + 1, JM_PROTOCOL + 5};
    expect(!jm_speaker_fits(&far, &why));
    expect_part(why.text, "joulemark 9.9.9, protocol 3-7: this is joulemark " JOULEMARK_VERSION);
    expect_part(why.text, ", protocol 1-2, and they do not understand each other: install ");
}

int main(void) {
    random_begin();
    return expect_all();
}
