// SPDX-License-Identifier: GPL-2.0-or-later
// Exact division of integer energy: the parts always sum to the whole.
#include "split.h"

bool jm_split(uint64_t total, const uint64_t *weights, int n, uint64_t *parts) {
    unsigned __int128 sum = 0;
    for (int i = 0; i < n; i++) {
        sum += weights[i];
        parts[i] = 0;
    }
    if (sum == 0)
        return false;

    uint64_t left = total;
    for (int i = 0; i < n; i++) {
        parts[i] = (uint64_t)((unsigned __int128)total * weights[i] / sum);
        left -= parts[i];
    }
    /* Fewer units are left than there are non-zero weights: each goes to the largest remainder not
     * yet served. */
    for (; left > 0; left--) {
        int best = -1;
        unsigned __int128 best_remainder = 0;
        for (int i = 0; i < n; i++) {
            unsigned __int128 share = (unsigned __int128)total * weights[i];
            unsigned __int128 given = (unsigned __int128)parts[i] * sum;
            if (share > given && share - given > best_remainder) {
                best = i;
                best_remainder = share - given;
            }
        }
        parts[best]++;
    }
    return true;
}

double jm_ratio(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part / (double)whole : 0;
}
