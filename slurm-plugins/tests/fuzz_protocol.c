// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzzer of the packets that any user can send to the daemon.
#include "protocol.h"

#include "bk_fuzz.h"

FUZZ(data, size) {
    jm_packet packet, again;
    char text[2 * JM_PACKET_MAX];
    if (size > JM_PACKET_MAX || !jm_packet_parse((const char *)data, size, &packet))
        return;
    jm_packet_begin(text, sizeof text, "again");
    for (int i = 0; i < packet.n_fields; i++)
        jm_packet_add(text, sizeof text, "key", "%s", packet.fields[i].value);
    abort_if(!jm_packet_parse(text, strlen(text), &again));
    jm_message why;
    const jm_speaker speaker = jm_packet_take_speaker(&packet);
    abort_if(jm_speaker_fits(&speaker, &why) && !(speaker.oldest <= JM_PROTOCOL));
}
