// SPDX-License-Identifier: GPL-2.0-or-later
// What a meter's reply means; the meter itself is read in tests/instruments.
#include "scpi.h"

#include "bk_expect.h"

#include <math.h>

TEST(a_number_of_every_form) {
    static const struct {
        const char *reply;
        int item;
        double number;
    } cases[] = {{"103.79E+00", 1, 103.79}, {"230", 1, 230},           {"-1.5", 1, -1.5},
                 {"1,2,3", 3, 3},           {" 7 , 8.5E-01 ", 2, .85}, {"NAN,4.0E+00", 2, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double number = NAN;
        jm_message why = {""};
        expect(jm_scpi_number(cases[i].reply, cases[i].item, &number, &why));
        expect_near(number, cases[i].number, 1e-12);
    }
}

TEST(what_is_no_number_is_named) {
    static const struct {
        const char *reply;
        int item;
        const char *why;
    } cases[] = {{"", 1, "no value 1"},
                 {"1,2", 3, "no value 3"},
                 {"1,,3", 2, "no value 2"},
                 {"NAN", 1, "no data"},
                 {"9.91E+37", 1, "no data"},
                 {"INF", 1, "over its range"},
                 {"9.9E+37", 1, "over its range"},
                 {"1e999", 1, "not a number"},
                 {"0x10", 1, "not a number"},
                 {"nan", 1, "not a number"},
                 {"1 2", 1, "not a number"},
                 {"12W", 1, "not a number"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double number;
        jm_message why = {""};
        expect(!jm_scpi_number(cases[i].reply, cases[i].item, &number, &why));
        expect_part(why.text, cases[i].why);
    }
}

int main(void) {
    return expect_all();
}
