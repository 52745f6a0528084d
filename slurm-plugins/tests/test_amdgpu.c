// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of `amdgpu`: the kernel's folders of cards, its binary table, and a module of two dies.
#include "amdgpu.h"

#include "bench.h"

static bool open_here(void) {
    GIVEN config = given_nothing();
    give(&config.settings, jm_amdgpu.keys, "root", test_folder);
    return bench_open(&jm_amdgpu, &config);
}

static void write_card(int number, const char *file, const char *text) {
    test_write(test_text("card%d/device/%s", number, file), text);
}

static void add_card(int number, const char *device_id) {
    write_card(number, "vendor", "0x1002\n");
    write_card(number, "device", device_id);
    write_card(number, "hwmon/hwmon3/name", "amdgpu\n");
}

/* A table of this version and length with the accumulator at offset, all else as not supported. */
static size_t make_metrics(unsigned char *data, size_t length, unsigned char content, size_t offset,
                           uint64_t units) {
    memset(data, 0xff, length);
    data[0] = (unsigned char)length;
    data[1] = (unsigned char)(length >> 8);
    data[2] = 1;
    data[3] = content;
    for (size_t i = 0; i < 8; i++)
        data[offset + i] = (unsigned char)(units >> (8 * i));
    return length;
}

/*
 * sizeof the version's struct, and of energy_accumulator in it: linux,
 * drivers/gpu/drm/amd/include/kgd_pp_interface.h of torvalds/linux 2be02a7c; of 1.6 in 384 bytes
 * the patch "drm/amd/pm: Add gpu_metrics_v1_6" of 14 May 2024.
 */
enum { LONGEST = 3360 };
static const struct version {
    unsigned char content;
    size_t size, offset;
} versions[] = {{1, 96, 24},  {2, 104, 24},  {3, 120, 24},  {4, 288, 24}, {5, 360, 88},
                {6, 384, 88}, {6, 1664, 16}, {7, 2208, 24}, {8, 3360, 24}};
enum { V1_3 = 2, V1_4, V1_5 };

static void write_table(int number, const unsigned char *data, size_t length) {
    write_card(number, "gpu_metrics", "");
    FILE *file = fopen(test_path(test_text("card%d/device/gpu_metrics", number)), "w");
    expect(file && fwrite(data, 1, length, file) == length && fclose(file) == 0);
}

static void write_metrics(int number, int version, uint64_t units) {
    unsigned char data[LONGEST];
    const struct version *is = &versions[version];
    write_table(number, data, make_metrics(data, is->size, is->content, is->offset, units));
}

TEST(energy_goes_before_power) {
    add_card(0, "0x744c\n"); /* a graphics card: average power */
    write_card(0, "hwmon/hwmon3/power1_average", "31000000\n");
    write_card(0, "hwmon/hwmon3/power1_input", "99\n");
    add_card(1, "0x74a1\n"); /* MI300X */
    write_metrics(1, V1_5, 65536 * 7);
    write_card(1, "hwmon/hwmon3/power1_input", "140000000\n");
    add_card(10, "0x74a1\n"); /* a driver with an energy file; cards sort as numbers */
    write_card(10, "hwmon/hwmon3/energy1_input", "123456\n");
    add_card(2, "0x1636\n"); /* an APU with input only */
    write_card(2, "hwmon/hwmon3/power1_input", "15000000\n");
    test_write("card1-DP-1/status", "connected\n");
    test_write_all("card3/device/hwmon/hwmon9", "name i915", "energy1_input 1");
    expect(open_here());
    expect_equal(bench.count, 4);
    bench_channel(0, "gpu-0", "gpu", "");
    bench_channel(3, "gpu-3", "gpu", "");
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
    expect_equal(bench.channels[1].method, JM_METHOD_COUNTER);
    bench_read(0);
    bench_value(0, 31000000);
    bench_value(1, 7000000);
    bench_value(2, 15000000);
    bench_value(3, 123456);
}

/* Half of a graphics card's table would be taken for energy of an unknown unit. */
TEST(a_graphics_cards_accumulator_is_not_trusted) {
    add_card(0, "0x73bf\n");
    write_metrics(0, V1_3, 12345);
    write_card(0, "hwmon/hwmon3/power1_average", "55000000\n");
    expect(open_here());
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
}

TEST(the_second_die_of_a_module_is_in_the_first) {
    for (int i = 0; i < 4; i++) {
        add_card(i, "0x740c\n"); /* MI250X */
        write_metrics(i, V1_3, i % 2 ? 0 : 65536);
        write_card(i, "hwmon/hwmon3/power1_average", "0\n");
    }
    expect(open_here());
    expect_equal(bench.count, 2);
    bench_channel(0, "gpu-0.1-pair", "gpu", "");
    bench_channel(1, "gpu-2.3-pair", "gpu", "");
    bench_read(0);
    bench_value(1, 1000000);
}

TEST(sick_cards_say_so) {
    add_card(0, "0x74a1\n");
    write_metrics(0, V1_4, 65536);
    add_card(1, "0x744c\n");
    write_card(1, "hwmon/hwmon3/power1_average", "1\n");
    expect(open_here());
    write_card(0, "gpu_metrics", "abcd");
    write_card(1, "hwmon/hwmon3/power1_average", "-5\n");
    bench_read(0);
    bench_fault(0, "gpu_metrics must be as long as its header says");
    bench_fault(1, "is negative, -5");
}

TEST(no_card_says_what_to_do) {
    expect(!open_here());
    expect_part(bench.why.text, "has no card with energy or power");
}

static jm_gpu_metrics energy_in(const unsigned char *data, size_t length, unsigned device_id,
                                uint64_t *energy_uj, const char *part) {
    jm_message why = {""};
    jm_gpu_metrics found = jm_gpu_metrics_energy(data, length, device_id, energy_uj, &why);
    if (found != JM_GPU_METRICS_ENERGY)
        expect_part(why.text, part);
    return found;
}

/* 5 J, in each; of those before 1.4 MI200's alone. */
TEST(every_known_version_has_its_place) {
    unsigned char data[LONGEST];
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const struct version *is = &versions[i];
        uint64_t energy_uj = 0;
        make_metrics(data, is->size, is->content, is->offset, 5 << 16);
        expect_equal(energy_in(data, is->size, 0x740c, &energy_uj, ""), JM_GPU_METRICS_ENERGY);
        expect_equal(energy_uj, 5000000, "v1.%u of %zu bytes", is->content, is->size);
        expect_equal(energy_in(data, is->size, 0x738c, &energy_uj, "no energy of a known unit"),
                     is->content < 4 ? JM_GPU_METRICS_WITHOUT : JM_GPU_METRICS_ENERGY);
    }
}

TEST(what_has_no_energy_says_so) {
    unsigned char data[LONGEST];
    uint64_t energy_uj;
    make_metrics(data, 288, 4, 24, UINT64_C(1) << 60);
    energy_in(data, 288, 0x74a0, &energy_uj, "is beyond any card");
    make_metrics(data, 288, 4, 24, UINT64_MAX); /* the driver's "not supported" */
    expect_equal(energy_in(data, 288, 0x74a0, &energy_uj, "no energy"), JM_GPU_METRICS_WITHOUT);
    make_metrics(data, 88, 0, 36, 5 << 16);
    expect_equal(energy_in(data, 88, 0x740c, &energy_uj, "v1.0 has no"), JM_GPU_METRICS_WITHOUT);
    make_metrics(data, 152, 3, 24, 5 << 16);
    data[2] = 2; /* an APU */
    expect_equal(energy_in(data, 152, 0x740c, &energy_uj, "v2.3 has no"), JM_GPU_METRICS_WITHOUT);
}

/* By its header alone a table of another layout was read at the place of a known one. */
TEST(a_layout_that_is_not_known_is_refused_by_name) {
    static const struct {
        unsigned char content;
        size_t size;
        const char *part;
    } tables[] = {{9, 4040, "v1.9 of 4040 bytes is a list of attributes"},
                  {10, 264, "v1.10 of 264 bytes has a layout that is not known"},
                  {6, 392, "v1.6 of 392 bytes has a layout"},
                  {5, 328, "v1.5 of 328 bytes has a layout"}};
    unsigned char data[4096];
    uint64_t energy_uj;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        make_metrics(data, tables[i].size, tables[i].content, 24, 5 << 16);
        expect_equal(energy_in(data, tables[i].size, 0x75a0, &energy_uj, tables[i].part),
                     JM_GPU_METRICS_UNKNOWN);
    }
    expect_equal(energy_in(data, 263, 0x74a0, &energy_uj, "as long as its header"),
                 JM_GPU_METRICS_UNKNOWN);
    expect_equal(energy_in(data, 0, 0x74a0, &energy_uj, "is 0"), JM_GPU_METRICS_WITHOUT);
    add_card(0, "0x75a0\n"); /* MI350X */
    make_metrics(data, 4040, 9, 24, 5 << 16);
    write_table(0, data, 4040);
    write_card(0, "hwmon/hwmon3/power1_input", "140000000\n");
    expect(!open_here());
    expect_part(bench.why.text, "card0/device/gpu_metrics: gpu_metrics v1.9");
    expect_part(bench.why.text, "by an instrument of type 'hwmon'");
}

int main(void) {
    return bench_all();
}
