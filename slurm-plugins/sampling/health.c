// SPDX-License-Identifier: GPL-2.0-or-later
// Which instruments are sick, since when, and of what: judged once for all of them.
#include "health.h"

#include <string.h>

/* A counter that has run is stuck when a second reading finds it where it was: at the first, one
 * that counts as often as it is read may only be late. What it should have counted meanwhile must
 * be clear: so many of its own steps, and joules. */
static const double STILL_PERIODS = 1.5;
static const double STILL_STEPS = 3;

const char *jm_sickness_name(jm_sickness sickness) {
    static const char *const names[JM_SICKNESSES] = {
        [JM_SICK_HANGS] = "hangs", [JM_SICK_LATE] = "late",   [JM_SICK_SILENT] = "silent",
        [JM_SICK_FAILS] = "fails", [JM_SICK_JUMPS] = "jumps", [JM_SICK_STUCK] = "stuck"};
    return names[sickness];
}

void jm_health_init(jm_health *health) {
    memset(health, 0, sizeof *health);
    for (int i = 0; i < JM_EPISODES_MAX; i++)
        health->episodes[i].instrument = -1;
}

/* The oldest place of the ring; an episode that lasts is forgotten with it. */
static jm_episode *new_episode(jm_health *health) {
    jm_episode *episode = &health->episodes[health->next];
    if (episode->instrument >= 0 && episode->end_ns == 0)
        health->current[episode->instrument][episode->sickness] = 0;
    health->next = (health->next + 1) % JM_EPISODES_MAX;
    return episode;
}

bool jm_health_note(jm_health *health, int instrument, jm_sickness sickness, const char *text,
                    int64_t real_ns) {
    int *current = &health->current[instrument][sickness];
    bool is_new = *current == 0;
    health->shown[instrument][sickness] = true;
    if (is_new) {
        jm_episode *fresh = new_episode(health);
        *fresh = (jm_episode){.instrument = instrument, .sickness = sickness, .begin_ns = real_ns};
        *current = (int)(fresh - health->episodes) + 1;
    }
    jm_episode *episode = &health->episodes[*current - 1];
    episode->count++;
    jm_format(episode->text, sizeof episode->text, "%s", text);
    return is_new;
}

int jm_health_turn(jm_health *health, int instrument, int64_t real_ns) {
    int ended = 0;
    for (int s = 0; s < JM_SICKNESSES; s++) {
        int *current = &health->current[instrument][s];
        if (*current > 0 && !health->shown[instrument][s]) {
            health->episodes[*current - 1].end_ns = real_ns;
            *current = 0;
            ended++;
        }
        health->shown[instrument][s] = false;
    }
    return ended;
}

bool jm_health_is_sick(const jm_health *health, int instrument) {
    for (int s = 0; s < JM_SICKNESSES; s++)
        if (health->current[instrument][s])
            return true;
    return false;
}

static bool counter_is_stuck(const jm_pulse *pulse, const jm_channel_info *info, int64_t still_ns,
                             int64_t period_ns) {
    double missing_uj = pulse->moved_w * 1e6 * ((double)still_ns / 1e9);
    double patience_ns =
        STILL_PERIODS * (double)(period_ns > pulse->step_ns ? period_ns : pulse->step_ns);
    return (double)still_ns > patience_ns &&
           missing_uj > STILL_STEPS * (info->error.resolution_uj + 1e6);
}

bool jm_pulse_take(jm_pulse *pulse, const jm_channel_info *info, uint64_t value, int64_t boot_ns,
                   int64_t period_ns, int64_t stuck_ns) {
    int64_t since_ns = boot_ns - pulse->changed_ns;
    if (pulse->has_value && value == pulse->value) {
        if (info->method == JM_METHOD_COUNTER)
            return counter_is_stuck(pulse, info, since_ns, period_ns);
        return info->method == JM_METHOD_INTEGRATED && stuck_ns > 0 && since_ns >= stuck_ns;
    }
    if (pulse->has_value && since_ns > 0) {
        pulse->step_ns = since_ns;
        pulse->moved_w = value > pulse->value
                             ? (double)(value - pulse->value) / 1e6 / ((double)since_ns / 1e9)
                             : pulse->moved_w;
    }
    pulse->has_value = true;
    pulse->value = value;
    pulse->changed_ns = boot_ns;
    return false;
}
