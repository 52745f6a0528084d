// Roots of unity with no call of a mathematics library, so that their bits are the same everywhere.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mod2f.h"

// 2 pi in two parts; the first has 26 bits, so that its product with a fraction of up to 27 is
// exact.
static const double two_pi_high = 0x1.921fb5p+2, two_pi_low = 0x1.110b4611a6263p-24;

// An angle as an unevaluated sum: low is what high lacks.
struct angle {
    double high;
    double low;
};

// 2 pi fraction, 0 <= fraction <= 1/8.
static struct angle angle_of(double fraction) {
    // What of n beyond 2^30 has more bits is left to the tail.
    double near = fraction + 0x1.8p22 - 0x1.8p22;
    double head = two_pi_high * near,
           tail = two_pi_high * (fraction - near) + two_pi_low * fraction;
    double high = head + tail;
    return (struct angle){high, tail - (high - head)};
}

// Taylor's series on [0, pi/4]: the first term left out is below 1e-19. The leading term is added
// last, so that the result is within one unit in the last place.
static double sine(struct angle x) {
    static const double c[] = {
        -1.0 / 6,          1.0 / 120,          -1.0 / 5040,         1.0 / 362880,
        -1.0 / 39916800.0, 1.0 / 6227020800.0, -1.0 / 1307674368e3, 1.0 / 355687428096e3,
    };
    double z = x.high * x.high, sum = c[7];
    for (int i = 6; i >= 0; i--)
        sum = sum * z + c[i];
    return x.high + (x.high * z * sum + x.low * (1 - 0.5 * z));
}

static double cosine(struct angle x) {
    static const double c[] = {
        1.0 / 24,          -1.0 / 720,           1.0 / 40320,         -1.0 / 3628800,
        1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888e3, -1.0 / 6402373705728e3,
    };
    double z = x.high * x.high, sum = c[7];
    for (int i = 6; i >= 0; i--)
        sum = sum * z + c[i];
    // 1 - z/2 in two parts: what `head` lost is added to the small rest.
    double half = 0.5 * z, head = 1 - half;
    return head + ((1 - head - half) + (z * z * sum - x.high * x.low));
}

void mod2f_root(uint64_t k, uint64_t n, double root[2]) {
    k %= n;
    // The angle's octant, and how far it is into it from the nearer axis; all of it exact.
    uint64_t octant = 8 * k / n;
    uint64_t from_axis = octant % 2 == 0 ? 8 * k - octant * n : (octant + 1) * n - 8 * k;
    struct angle x = angle_of((double)from_axis / (double)n / 8);
    double c = cosine(x), s = sine(x);
    static const signed char signs[8][2] = {{1, 1},   {1, 1},   {-1, 1}, {-1, 1},
                                            {-1, -1}, {-1, -1}, {1, -1}, {1, -1}};
    bool swapped = (octant + 1) / 2 % 2 == 1;
    root[0] = signs[octant][0] * (swapped ? s : c);
    root[1] = -signs[octant][1] * (swapped ? c : s);
}
