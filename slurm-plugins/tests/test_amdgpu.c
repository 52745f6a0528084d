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

static void write_metrics(int number, unsigned char content, size_t offset, uint64_t units) {
    unsigned char data[264];
    size_t length = make_metrics(data, sizeof data, content, offset, units);
    write_card(number, "gpu_metrics", "");
    FILE *file = fopen(test_path(test_text("card%d/device/gpu_metrics", number)), "w");
    expect(file && fwrite(data, 1, length, file) == length && fclose(file) == 0);
}

TEST(energy_goes_before_power) {
    add_card(0, "0x744c\n"); /* a graphics card: average power */
    write_card(0, "hwmon/hwmon3/power1_average", "31000000\n");
    write_card(0, "hwmon/hwmon3/power1_input", "99\n");
    add_card(1, "0x74a1\n"); /* MI300X */
    write_metrics(1, 5, 88, 65536 * 7);
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
    write_metrics(0, 3, 24, 12345);
    write_card(0, "hwmon/hwmon3/power1_average", "55000000\n");
    expect(open_here());
    expect_equal(bench.channels[0].method, JM_METHOD_INTEGRATED);
}

TEST(the_second_die_of_a_module_is_in_the_first) {
    for (int i = 0; i < 4; i++) {
        add_card(i, "0x740c\n"); /* MI250X */
        write_metrics(i, 3, 24, i % 2 ? 0 : 65536);
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
    write_metrics(0, 4, 24, 65536);
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

TEST(every_known_version_has_its_place) {
    static const struct {
        unsigned char content;
        size_t offset;
        unsigned device_id;
        bool trusted;
    } versions[] = {{0, 36, 0x740c, false}, {1, 24, 0x740c, true},  {2, 24, 0x740f, true},
                    {3, 24, 0x7408, true},  {3, 24, 0x738c, false}, {4, 24, 0x74a0, true},
                    {5, 88, 0x74a1, true},  {6, 88, 0x74a1, true},  {7, 24, 0x74a1, true},
                    {8, 24, 0x75a0, true},  {9, 24, 0x75a0, false}};
    unsigned char data[264];
    uint64_t energy_uj;
    jm_message why;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        size_t length =
            make_metrics(data, sizeof data, versions[i].content, versions[i].offset, 1 << 20);
        bool read = jm_gpu_metrics_energy(data, length, versions[i].device_id, &energy_uj, &why);
        expect_equal(read, versions[i].trusted);
        if (read)
            expect_equal(energy_uj, 16000000);
        else
            expect_part(why.text, "has no energy of a known unit");
    }
    make_metrics(data, sizeof data, 4, 24, UINT64_C(1) << 60);
    expect(!jm_gpu_metrics_energy(data, sizeof data, 0x74a0, &energy_uj, &why));
    expect_part(why.text, "is beyond any card");
    make_metrics(data, sizeof data, 4, 24, UINT64_MAX); /* the driver's "not supported" */
    expect(!jm_gpu_metrics_energy(data, sizeof data, 0x74a0, &energy_uj, &why));
    expect(!jm_gpu_metrics_energy(data, 3, 0x74a0, &energy_uj, &why));
}

int main(void) {
    return bench_all();
}
