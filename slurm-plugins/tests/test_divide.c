// SPDX-License-Identifier: GPL-2.0-or-later
// Who pays what: GPUs go to those they are bound to, the suspended use nothing, and parts sum up.
#include "books.h"
#include "divide.h"
#include "random.h"

/* An outlet that holds two GPUs, which have meters of their own. */
static void make_node(void) {
    jm_ledger_init(&ledger, 8, SECOND);
    add_channel("outlet/power", JM_DOMAIN_NODE, -1, 0);
    add_channel("nvml/gpu-0", JM_DOMAIN_GPU, 0, 0);
    add_channel("nvml/gpu-1", JM_DOMAIN_GPU, 0, 0);
}

enum { OUTLET, GPU0, GPU1, CHANNELS };

static jm_part parts[CHANNELS * 3];

static void divide_all(const jm_part *wholes, const jm_sharers *sharers) {
    memset(parts, 0xff, sizeof parts);
    for (int c = 0; c < ledger.n_channels; c++)
        jm_divide(&ledger, wholes, c, sharers, parts + c * (sharers->n + 1));
}

/* Between two. */
static void divide(const jm_part *wholes, jm_account *a, jm_account *b) {
    jm_account *members[] = {a, b};
    divide_all(wholes, &(jm_sharers){members, 2, 0, false});
}

/* Energy of member i in channel c, two members; 2 is what is spare. */
static uint64_t part(int c, int i) {
    return parts[c * 3 + i].energy_uj;
}

TEST(gpu_numbers_are_read_as_slurm_writes_them) {
    jm_gpus gpus = 99;
    char text[JM_GPUS_TEXT_MAX];
    expect(jm_gpus_parse("0,1", &gpus) && gpus == 3);
    expect(jm_gpus_parse("0-3,7", &gpus) && gpus == 0x8f);
    expect(jm_gpus_parse("63", &gpus) && gpus == UINT64_C(1) << 63);
    expect(jm_gpus_parse("", &gpus) && gpus == 0);
    gpus = 5;
    FOR_TEXTS (wrong, "64", "a", "1,", ",1", "3-1", "-1", "1 2", "0x1", "1--2")
        expect(!jm_gpus_parse(wrong, &gpus) && gpus == 5);
    jm_gpus_format(0x8f, text, sizeof text);
    expect_text(text, "0,1,2,3,7");
    jm_gpus_format(0, text, sizeof text);
    expect_text(text, "");
    jm_gpus_format(UINT64_MAX, text, sizeof text);
    expect(jm_gpus_parse(text, &gpus) && gpus == UINT64_MAX);
}

TEST(a_channels_gpu_is_in_its_name_or_its_instruments) {
    expect_equal(jm_gpus_of_channel("nvml/gpu-3"), 1 << 3);
    expect_equal(jm_gpus_of_channel("gpu-12/power"), 1 << 12);
    expect_equal(jm_gpus_of_channel("gpu-1/gpu0"), 1);
    expect_equal(jm_gpus_of_channel("board/power"), 0);
    expect_equal(jm_gpus_of_channel("gpu-64/power"), 0);
    expect_equal(jm_gpus_of_channel("gpu7"), 1 << 7);
    expect_equal(jm_gpus_of_channel("amdgpu/gpu-4.5-pair"), 3 << 4);
    expect_equal(jm_gpus_of_channel("cray2/gpu-0.1-pair"), 3);
    expect_equal(jm_gpus_of_channel("cray2/gpu-0.64-pair"), 0);
    expect_equal(jm_gpus_of_channel("cray2/odd-pair"), 0);
    expect_equal(jm_gpus_of_channel("a2/-pair"), 0);
    expect_equal(jm_gpus_of_channel("nvml0/gpu-0-mig"), 0);
    expect_equal(jm_gpus_of_channel("hwmon/gpu-2-gt1"), 1 << 2);
    expect_equal(jm_gpus_of_channel("hwmon/gpu-2-pkg"), 1 << 2);
}

TEST(a_gpu_goes_to_the_job_it_is_bound_to) {
    make_node();
    jm_account busy = {.cpus = 4, .cpu_tick_ns = 1000}, gpu = {.cpus = 4, .gpus = 1};
    jm_part wholes[] = {{1000, 200}, {300, 50}, {40, 40}};
    divide(wholes, &busy, &gpu);
    expect_equal(part(GPU0, 0), 0);
    expect_equal(part(GPU0, 1), 300);
    expect_equal(parts[GPU0 * 3 + 1].idle_uj, 50);
    expect_equal(part(GPU1, 2), 40); /* bound to nobody */
    /* The outlet: GPU 0's 300 and GPU 1's 40 as above, of the rest 110 idle halved, 550 busy. */
    expect_equal(part(OUTLET, 0), 55 + 550);
    expect_equal(part(OUTLET, 1), 300 + 55);
    expect_equal(part(OUTLET, 2), 40);
}

TEST(a_gpu_of_several_jobs_is_shared_equally) {
    make_node();
    jm_account a = {.cpus = 1, .gpus = 3, .cpu_tick_ns = 9}, b = {.cpus = 7, .gpus = 2};
    jm_part wholes[] = {{0, 0}, {100, 0}, {101, 10}};
    divide(wholes, &a, &b);
    expect_equal(part(GPU0, 0), 100);
    expect_equal(part(GPU1, 0) + part(GPU1, 1), 101);
    expect(part(GPU1, 1) >= 50 && part(GPU1, 1) <= 51);
}

/* An MI250 is two GPUs on one meter. */
TEST(a_pairs_meter_goes_to_those_who_have_either) {
    jm_ledger_init(&ledger, 8, SECOND);
    add_channel("amdgpu/gpu-0.1-pair", JM_DOMAIN_GPU, -1, 0);
    jm_account a = {.cpus = 1, .gpus = 1}, b = {.cpus = 7, .gpus = 2}, c = {.cpus = 1};
    jm_part wholes[] = {{100, 0}};
    divide(wholes, &a, &b);
    expect_equal(part(0, 0), 50);
    expect_equal(part(0, 1), 50);
    divide(wholes, &a, &c);
    expect_equal(part(0, 0), 100);
    a.gpus = 3;
    divide(wholes, &a, &c);
    expect_equal(part(0, 0), 100);
}

/* The node's total stands: what its inner meters read beyond it is cut in proportion. */
TEST(gpus_that_read_more_than_their_outlet_are_cut) {
    make_node();
    jm_account a = {.cpus = 4, .gpus = 1}, b = {.cpus = 4, .gpus = 2};
    jm_part wholes[] = {{100, 90}, {300, 0}, {100, 0}};
    divide(wholes, &a, &b);
    expect_equal(part(OUTLET, 0), 75);
    expect_equal(part(OUTLET, 1), 25);
}

TEST(a_job_alone_on_its_node_pays_for_unbound_gpus_too) {
    make_node();
    jm_account job = {.cpus = 8, .gpus = 1};
    jm_account *members[] = {&job};
    jm_part wholes[] = {{1000, 0}, {300, 0}, {40, 40}};
    divide_all(wholes, &(jm_sharers){members, 1, 0, true});
    expect_equal(parts[GPU1 * 2].energy_uj, 40);
    expect_equal(parts[OUTLET * 2].energy_uj, 1000);
}

TEST(a_suspended_job_keeps_its_idle_share_alone) {
    make_node();
    jm_account held = {.cpus = 6, .activity = JM_ACTIVITY_STOPPED}, other = {.cpus = 2};
    jm_part wholes[] = {{1000, 400}, {0, 0}, {0, 0}};
    divide(wholes, &held, &other);
    expect_equal(part(OUTLET, 0), 300);
    expect_equal(part(OUTLET, 1), 100 + 600);
    other.activity = JM_ACTIVITY_STOPPED;
    divide(wholes, &held, &other);
    expect_equal(part(OUTLET, 0), 300);
    expect_equal(part(OUTLET, 2), 600); /* the node's own doing */
}

/* Any channels in any containment, any members: each whole is given out to the microjoule. */
TEST(parts_always_sum_to_the_whole) {
    for (int round = 0; round < 3000; round++) {
        jm_ledger_init(&ledger, 1 + random_below(64), SECOND);
        int channels = 1 + (int)random_below(6), n = (int)random_below(5);
        jm_part wholes[6], given[6 * 5];
        for (int c = 0; c < channels; c++) {
            const char *name = test_text("i%d/gpu-%d", c, (int)random_below(3));
            add_channel(name, random_below(2) ? JM_DOMAIN_GPU : JM_DOMAIN_CPU,
                        c > 0 && random_below(2) ? (int)random_below((uint64_t)c) : -1, 0);
            wholes[c].energy_uj = random_below(4) ? random_u64() >> (24 + random_below(40)) : 0;
            wholes[c].idle_uj = random_below(2) ? random_below(wholes[c].energy_uj + 1) : 0;
        }
        jm_account accounts[5], *members[5];
        for (int i = 0; i < n; i++) {
            accounts[i] = (jm_account){.cpus = random_below(5),
                                       .cpu_tick_ns = random_below(2) * random_below(1000000000),
                                       .activity = (jm_activity)random_below(3),
                                       .gpus = random_below(8)};
            members[i] = &accounts[i];
        }
        jm_sharers sharers = {members, n, random_below(9), random_below(2)};
        for (int c = 0; c < channels; c++) {
            uint64_t sum = 0;
            jm_divide(&ledger, wholes, c, &sharers, given);
            for (int i = 0; i <= n; i++) {
                sum += given[i].energy_uj;
                expect(given[i].idle_uj <= given[i].energy_uj);
            }
            expect_equal(sum, wholes[c].energy_uj);
        }
        if (expect_failures > 0)
            return;
    }
}

int main(void) {
    random_begin();
    return expect_all();
}
