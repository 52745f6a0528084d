// How the ranks of a job share a lattice: parts of equal size, in a grid of up to four dimensions.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "qcd.h"

#include <math.h>
#include <string.h>

// Sides are multiples: y, z and t are cut in two once more (lanes.h), and all that is cut stays
// even.
static const int least[QCD_DIRECTIONS] = {2, 4, 4, 4};

struct grid {
    int count[QCD_DIRECTIONS];
    double halo;   // sites that a part has beyond its borders
    double within; // sites that need none of these
};

static struct grid judge(const int whole[QCD_DIRECTIONS], const int count[QCD_DIRECTIONS]) {
    struct grid grid = {.within = 1};
    double sites = 1;
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        sites *= whole[d] / count[d];
    for (int d = 0; d < QCD_DIRECTIONS; d++) {
        const int size = whole[d] / count[d], borders = count[d] > 1 ? least[d] : 0;
        grid.count[d] = count[d];
        grid.halo += count[d] > 1 ? 2 * sites / size : 0;
        grid.within *= size - borders;
    }
    return grid;
}

static bool is_better(const struct grid *a, const struct grid *b) {
    return a->halo < b->halo || (a->halo == b->halo && a->within > b->within);
}

// Tries all that `ranks` can be for the directions from d on. Of equals the first stays, which cuts
// t rather than x: a border across x has sites of every row.
static void try_counts(const int whole[QCD_DIRECTIONS], int d, int ranks, int count[QCD_DIRECTIONS],
                       struct grid *best) {
    if (d == QCD_DIRECTIONS) {
        const struct grid grid = judge(whole, count);
        if (ranks == 1 && is_better(&grid, best))
            *best = grid;
        return;
    }
    for (count[d] = 1; count[d] <= ranks; count[d]++)
        if (ranks % count[d] == 0 && whole[d] % (least[d] * count[d]) == 0)
            try_counts(whole, d + 1, ranks / count[d], count, best);
}

bool qcd_choose_grid(const int whole[QCD_DIRECTIONS], int ranks, int count[QCD_DIRECTIONS]) {
    struct grid best = {.halo = (double)INFINITY};
    try_counts(whole, 0, ranks, count, &best);
    memcpy(count, best.count, sizeof best.count);
    return best.halo < (double)INFINITY;
}

void qcd_least_sides(int ranks, int whole[QCD_DIRECTIONS]) {
    int count[QCD_DIRECTIONS] = {1, 1, 1, 1}, few = QCD_DIRECTIONS - 1;
    for (int factor = 2; ranks > 1; factor++)
        for (; ranks % factor == 0; ranks /= factor) {
            for (int d = QCD_DIRECTIONS - 1; d >= 0; d--)
                if (count[d] < count[few])
                    few = d;
            count[few] *= factor;
        }
    for (int d = 0; d < QCD_DIRECTIONS; d++)
        whole[d] = least[d] * count[d];
    whole[0] = whole[0] < 4 ? 4 : whole[0];
    whole[3] = whole[3] < 8 ? 8 : whole[3];
}
