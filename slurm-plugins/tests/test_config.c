// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of config/config.c: what it takes, its defaults, and each error with file, line and key.
#include "config.h"
#include "locate.h"

#include "bk_fixtures.h"

#include <math.h>

static char file[512];

enum { MESSAGES_MAX = 32 };

static struct {
    int count;
    char text[MESSAGES_MAX][JM_MESSAGE_MAX];
} all;

static void hear(void *unused, const char *message) {
    (void)unused;
    if (all.count < MESSAGES_MAX)
        snprintf(all.text[all.count], JM_MESSAGE_MAX, "%s", message);
    all.count++;
}

static jm_config config; /* too large for the stack */

static int load_file(const char *path) {
    memset(&all, 0, sizeof all);
    jm_config_free(&config);
    int errors = jm_config_load(path, "n7", &config, hear, NULL);
    expect_equal(errors, all.count);
    return errors;
}

static int load(const char *yaml) {
    test_write("joulemark.yaml", yaml);
    return load_file(file);
}

/* One mistake each; top-level cases get their `cluster:` in the text itself. */
#define C       "cluster: c\n"
#define I       C "instruments:\n"
#define MODEL   I "- {type: model, idle_w: 40, full_w: 120"
#define REPLAY  I "- {type: replay, file: /t.csv"
#define LONG20  "aaaaaaaaaaaaaaaaaaaa"
#define LONG100 LONG20 LONG20 LONG20 LONG20 LONG20

static const struct {
    const char *yaml, *place, *part;
} mistakes[] = {
    {C "transport: mqtt\nmqtt: {host: b}\nprofile_max_mib: 300\n",
     "2: key 'profile_max_mib': ", "is 300, and MQTT takes no message of 256; say at most 250"},
    {"period_s: 1\n", "1: key 'cluster': ", "is missing; add 'cluster: NAME'"},
    {"", "1: key 'cluster': ", "is missing"},
    {"cluster:\n", "1: key 'cluster': ", "is empty; give it a value"},
    {"cluster: ''\n", "1: key 'cluster': ", "is empty"},
    {"cluster: ~\n", "1: key 'cluster': ", "is empty"},
    {"cluster: a/b\n", "1: key 'cluster': ", "is 'a/b'"},
    {"cluster: .hidden\n", "1: key 'cluster': ", "is '.hidden'"},
    {"cluster: " LONG100 "\n", "1: key 'cluster': ", "must be 1 to 63 letters"},
    {"cluster: [c]\n", "1: key 'cluster': ", "is a list"},
    {C "perod_s: 1\n", "2: key 'perod_s': ", "is not known; did you mean 'period_s'?"},
    {C "zzzzzzzzzz: 1\n", "2: key 'zzzzzzzzzz': ", "is not known; remove it"},
    {C "? [a]\n: 1\n", "2: key '?': ", "is not known"},
    {C "cpus: 2\n\ncpus: 3\n", "4: key 'cpus': ", "is given twice, first in line 2"},
    {C "period_s: 0.001\n",
     "2: key 'period_s': ", "must be a number from 0.01 to 3600, is '0.001'"},
    {C "period_s: 3601\n", "2: key 'period_s': ", "is '3601'"},
    {C "period_s: nan\n", "2: key 'period_s': ", "is 'nan'"},
    {C "period_s: 1s\n", "2: key 'period_s': ", "is '1s'"},
    {C "period_s: {a: 1}\n", "2: key 'period_s': ", "is a mapping"},
    {C "cpus: 0\n", "2: key 'cpus': ", "must be a whole number from 1 to"},
    {C "cpus: 1.5\n", "2: key 'cpus': ", "is '1.5'"},
    {C "socket: run/x.sock\n", "2: key 'socket': ", "begin it with '/'"},
    {C "socket: /run/%h.sock\n", "2: key 'socket': ", "may hold %n"},
    {C "socket: /run/50%\n", "2: key 'socket': ", "may hold %n"},
    {C "socket: /" LONG100 "aaaaaa%n\n", "2: key 'socket': ", "at most 101 bytes long, is 109"},
    {C "store: /" LONG100 LONG100 LONG100 LONG100 LONG100 LONG100 "\n",
     "2: key 'store': ", "is too long"},
    {C "privileged_users: slurm\n", "2: key 'privileged_users': ", "must be a list of user names"},
    {C "privileged_users: [a, [b]]\n", "2: key 'privileged_users[1]': ", "is a list"},
    {C "privileged_users: [0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,g]\n",
     "2: key 'privileged_users': ", "at most 16 entries, has 17"},
    {C "instruments: {type: model}\n", "2: key 'instruments': ", "must be a list"},
    {I "- powercap\n", "3: key 'instruments[0]': ", "is a single value"},
    {I "- type: powercap\n- name: x\n", "4: key 'instruments[1].type': ", "add 'type: auto'"},
    {I "- type: powrcap\n", "3: key 'instruments[0].type': ", "did you mean 'powercap'?"},
    {I "- type: powercap\n  rot: /x\n", "4: key 'instruments[0].rot': ", "did you mean 'root'?"},
    {I "- type: powercap\n  full_w: 10\n",
     "4: key 'instruments[0].full_w': ", "is not for an instrument of type 'powercap'"},
    {I "- type: hwmon\n  file: /x\n", "4: key 'instruments[0].file': ", "of type 'hwmon'"},
    {I "- type: auto\n  file: /x\n", "4: key 'instruments[0].file': ", "of type 'auto'"},
    {I "- type: replay\n", "3: key 'instruments[0].file': ", "is missing"},
    {REPLAY ", as: watts}\n", "3: key 'instruments[0].as': ", "must be one of counter power"},
    {REPLAY ", repeat: yes}\n", "3: key 'instruments[0].repeat': ", "must be true or false"},
    {REPLAY ", epoch: -1}\n", "3: key 'instruments[0].epoch': ", "is '-1'"},
    {REPLAY ", wrap_uj: 0}\n",
     "3: key 'instruments[0].wrap_uj': ", "from 1 to 4611686018427387904"},
    {REPLAY ", wrap_uj: 1e9}\n", "3: key 'instruments[0].wrap_uj': ", "is '1e9'"},
    {REPLAY ",\n as: power,\n wrap_uj: 9}\n", "5: key 'instruments[0].wrap_uj': ", "in conflict"},
    {REPLAY ", domain: rest}\n", "3: key 'instruments[0].domain': ", "cpu, dram, gpu or node"},
    {I "- type: model\n  full_w: 9\n", "3: key 'instruments[0].idle_w': ", "is missing"},
    {I "- type: model\n  idle_w: 9\n", "3: key 'instruments[0].full_w': ", "is missing"},
    {I "- type: model\n  full_w: 9\n  idle_w: 9\n",
     "5: key 'instruments[0].idle_w': ", "must be below full_w (9), is '9'"},
    {I "- type: auto\n  full_w: 9\n", "3: key 'instruments[0].idle_w': ", "is missing"},
    {I "- {type: powercap, idle_w: -3}\n", "3: key 'instruments[0].idle_w': ", "is '-3'"},
    {I "- {type: powercap, part: 0}\n", "3: key 'instruments[0].part': ", "1e-06 to 1, is '0'"},
    {I "- {type: powercap, part: 8}\n", "3: key 'instruments[0].part': ", "to 1, is '8'"},
    {I "- {type: powercap, max_w: 0}\n",
     "3: key 'instruments[0].max_w': ", "0.001 to 1e+09, is '0'"},
    {MODEL ", part: 0.5}\n", "3: key 'instruments[0].part': ", "not for an instrument of type"},
    {MODEL ", error: 5}\n", "3: key 'instruments[0].error': ", "must be a mapping"},
    {MODEL ", error: {relative: 1.5}}\n",
     "3: key 'instruments[0].error.relative': ", "from 0 to 1, is '1.5'"},
    {MODEL ",\n error: {\n  relativ: 0.1}}\n",
     "5: key 'instruments[0].error.relativ': ", "did you mean 'relative'?"},
    {MODEL "}\n- {type: model, idle_w: 1, full_w: 2}\n",
     "4: key 'instruments[1].name': ", "is the name of instruments[0] in line 3 too"},
    {I "- {type: powercap, parent: meter}\n- {type: hwmon, name: metre}\n",
     "3: key 'instruments[0].parent': ", "did you mean 'metre'?"},
    {I "- {type: powercap, parent: nobody}\n", "3: key 'instruments[0].parent': ", "is 'nobody'"},
    {I "- {type: powercap, parent: powercap}\n",
     "3: key 'instruments[0].parent': ", "must not lead back to 'powercap' itself"},
    {C "? !!str\n: 1\n", "2: key '': ", "is not known"},
    {C "socket: [\n", "3: is not YAML: ", "correct the line"},
    {C "\tx: 1\n", "2: is not YAML: ", "correct the line"},
    {C "--- \nx: 1\n", "3: a second YAML document begins", "keep one"},
    {"- a\n", "1: the file must hold keys", "holds a list"},
    {"text\n", "1: the file must hold keys", "holds a single value"},
};

TEST(each_mistake_names_file_line_and_key) {
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        char start[JM_MESSAGE_MAX];
        jm_format(start, sizeof start, "%s:%s", file, mistakes[i].place);
        int errors = load(mistakes[i].yaml);
        expect_equal(errors, 1, "of:\n%s%s\n%s", mistakes[i].yaml, all.text[0], all.text[1]);
        expect(strstr(all.text[0], start) == all.text[0], "'%s', '%s'", all.text[0], start);
        expect_part(all.text[0], mistakes[i].part);
    }
}

TEST(all_mistakes_are_told_at_once) {
    int errors =
        load("cluster: c\nperiod_s: x\nstor: /s\ninstruments:\n- {type: model, idle_w: y}\n"
             "- {type: replay}\n");
    expect_equal(errors, 5);
    expect_part(all.text[0], "'period_s'");
    expect_part(all.text[1], "'stor'");
    expect_part(all.text[2], "'instruments[0].idle_w'");
    expect_part(all.text[3], "'instruments[0].full_w'");
    expect_part(all.text[4], "'instruments[1].file'");
}

TEST(a_loop_of_parents_is_told_for_each) {
    int errors =
        load(I "- {type: hwmon, name: a, parent: b}\n- {type: hwmon, name: b, parent: c}\n"
               "- {type: hwmon, name: c, parent: a}\n- {type: hwmon, name: d, parent: a}\n");
    expect_equal(errors, 3);
    for (int i = 0; i < 3; i++)
        expect_part(all.text[i], "must not lead back");
}

TEST(too_many_instruments_are_refused) {
    char yaml[4096] = I;
    for (int i = 0; i <= JM_INSTRUMENTS_MAX; i++)
        snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml), "- {type: hwmon, name: h%d}\n",
                 i);
    expect_equal(load(yaml), 1);
    expect_part(all.text[0], ":2: key 'instruments': must have at most 64 entries, has 65");
}

TEST(a_missing_file_is_an_error) {
    expect_equal(load_file("/nonexistent/joulemark.yaml"), 1);
    expect_part(all.text[0], "/nonexistent/joulemark.yaml: cannot be opened: No such file");
    memset(&all, 0, sizeof all);
    expect_equal(load_file(test_folder), 1); /* a folder is no file */
    expect_equal(jm_config_load("/nonexistent/joulemark.yaml", "n", &config, NULL, NULL), 1);
}

TEST(defaults_hold_where_nothing_is_said) {
    expect_equal(load("cluster: c\n"), 0);
    expect_text(config.path, file);
    expect_text(config.cluster, "c");
    expect_text(config.socket, "/run/joulemark/joulemarkd.sock");
    expect_text(config.state_dir, "/var/lib/joulemark");
    expect_text(config.log_file, "");
    expect(config.period_s >= 1 && config.period_s <= 1);
    expect(config.cpus >= 1);
    expect_equal(config.n_privileged_users, 0);
    expect_equal(config.n_instruments, 1);
    expect_text(config.instruments[0].type, "auto");
    expect_text(config.instruments[0].name, "auto");
    expect(load("cluster: c\ninstruments: []\n") == 0 && config.n_instruments == 1);
}

TEST(every_key_arrives) {
    int errors =
        load("cluster: demo\nsocket: /s/%n.sock\nstate_dir: /l/%n\nrecord_dir: /r\n"
             "store: /100%%/s.sqlite\ncarbon_g_per_kwh: 380\ncarbon_relative_error: 0.1\n"
             "price_per_kwh: /prices.csv\ncurrency: EUR\nstore_password_file: /secret\n"
             "timezone: Europe/Berlin\n"
             "log_file: /log/%n-%n.log\nperiod_s: 0.5\ncpus: 2\n"
             "privileged_users: [slurm, DOMAIN\\user]\n"
             "instruments:\n"
             "  - {name: rapl, type: powercap, root: /x, idle_w: 30, parent: pdu}\n"
             "  - name: pdu\n    type: replay\n    file: /t/%n.csv\n    as: counter\n"
             "    epoch: 1790000000.5\n    repeat: true\n    wrap_uj: 262143328850\n"
             "    domain: node\n    error: {relative: 0.01, offset_w: 0.5, resolution_w: 0.1,"
             " resolution_uj: 61, jitter_s: 0.001}\n"
             "  - {type: model, idle_w: 40, full_w: 120, domain: cpu, root: /host/proc}\n"
             "  - {type: replay, file: /p.csv, as: power, part: 0.125}\n");
    expect_equal(errors, 0);
    expect_text(config.socket, "/s/n7.sock");
    expect_text(config.state_dir, "/l/n7");
    expect_text(config.record_dir, "/r");
    expect_text(jm_text(&config.site, "price_per_kwh", ""), "/prices.csv");
    expect_equal(config.site.count, 6);
    expect_text(config.store, "/100%/s.sqlite");
    expect_text(config.log_file, "/log/n7-n7.log");
    expect(config.period_s >= 0.5 && config.period_s <= 0.5 && config.cpus == 2);
    expect_equal(config.n_privileged_users, 2);
    expect_text(config.privileged_users[1], "DOMAIN\\user");
    expect_equal(config.n_instruments, 4);
    const jm_instrument_config *rapl = &config.instruments[0], *pdu = rapl + 1, *model = rapl + 2;
    expect_text(rapl->name, "rapl");
    expect_text(rapl->parent, "pdu");
    expect_text(jm_text(&rapl->settings, "root", ""), "/x");
    expect(rapl->line == 17 && isnan(rapl->error.relative) && isnan(rapl->stuck_s));
    expect(rapl->period_s >= 0.5 && rapl->period_s <= 0.5 && rapl->timeout_s <= 0.5);
    expect(rapl->idle_w >= 30 && rapl->idle_w <= 30);
    expect_text(jm_text(&pdu->settings, "file", ""), "/t/n7.csv");
    expect(jm_flag(&pdu->settings, "repeat", false) && pdu->domain == JM_DOMAIN_NODE);
    expect(jm_chosen(&pdu->settings, "as", "power", "counter"));
    double epoch_s = jm_number(&pdu->settings, "epoch", 0);
    expect(epoch_s > 1790000000.4 && epoch_s < 1790000000.6);
    expect_equal(jm_whole(&pdu->settings, "wrap_uj", 0), 262143328850);
    expect(pdu->error.relative > 0.009 && pdu->error.relative < 0.011);
    expect(pdu->error.resolution_uj > 60.9 && pdu->error.jitter_s < 0.0011);
    expect_text(model->name, "model");
    expect(model->domain == JM_DOMAIN_CPU && !jm_given(&model->settings, "epoch"));
    expect(jm_chosen(&config.instruments[3].settings, "as", "counter", "power"));
    expect_text(config.instruments[3].name, "replay");
    expect(config.instruments[3].part == 0.125 && isnan(rapl->part));
}

static void note(void *context, const char *message) {
    jm_format(context, JM_PATH_MAX, "%s", message);
}

/* Of a machine whose zones are in the test's folder. */
TEST(a_time_zone_is_one_that_is_known_here) {
    static const struct {
        const char *yaml;
        int errors;
    } cases[] = {{"cluster: c\n", 0},
                 {"cluster: c\ntimezone: UTC\n", 0},
                 {"cluster: c\ntimezone: Berlin\n", 0},
                 {"cluster: c\ntimezone: Berlni\n", 1},
                 {"cluster: c\ntimezone: zone.tab\n", 1}};
    test_write("Berlin", "TZif2 and its changes");
    test_write("zone.tab", "# names of zones");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[JM_PATH_MAX] = "";
        setenv("TZDIR", test_folder, 1);
        expect_equal(load(cases[i].yaml), 0);
        expect_equal(jm_config_check_zone(&config, note, said), cases[i].errors);
        expect(cases[i].errors == 0 || strstr(said, "joulemark.yaml: key 'timezone': '"));
        setenv("TZDIR", "/nonexistent", 1);
        expect_equal(jm_config_check_zone(&config, note, said), 0);
    }
    unsetenv("TZDIR");
}

TEST(the_socket_alone_ignores_other_mistakes) {
    char socket[JM_PATH_MAX];
    jm_message why;
    test_write("joulemark.yaml", "socket: /s/%n.sock\ninstruments: nonsense\n");
    expect_equal(jm_config_socket(file, "n7", socket, sizeof socket, &why), 0);
    expect_text(socket, "/s/n7.sock");
    expect_equal(jm_config_socket(file, NULL, socket, sizeof socket, NULL), 0);
    expect_text(socket, "/s/.sock");
    test_write("joulemark.yaml", "cluster: c\n");
    expect_equal(jm_config_socket(file, "n7", socket, sizeof socket, &why), 0);
    expect_text(socket, "/run/joulemark/joulemarkd.sock");
}

TEST(the_socket_alone_falls_back_to_the_default) {
    char socket[JM_PATH_MAX];
    jm_message why;
    static const struct {
        const char *yaml, *part;
    } broken[] = {{"cluster: c\nsocket: s\n", "joulemark.yaml:2: key 'socket': "},
                  {"socket: /" LONG100 LONG20 "\n", "at most 101 bytes"},
                  {"socket: /s/%x\n", "joulemark.yaml:1: key 'socket': "}};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        test_write("joulemark.yaml", broken[i].yaml);
        expect_equal(jm_config_socket(file, "n7", socket, sizeof socket, &why), -1);
        expect_text(socket, "/run/joulemark/joulemarkd.sock");
        expect_part(why.text, broken[i].part);
    }
    expect_equal(jm_config_socket("/nonexistent", "n7", socket, sizeof socket, &why), -1);
    expect_text(socket, "/run/joulemark/joulemarkd.sock");
    expect_part(why.text, "/nonexistent: cannot be opened");
}

TEST(the_socket_may_be_quoted_and_commented) {
    char socket[JM_PATH_MAX];
    jm_message why;
    FOR_TEXTS (same, "socket: /s/%n.sock # here\n", "socket: \"/s/%n.sock\"\n",
               "a: 1\nsocket:   '/s/%n.sock'  # here\n", "socket: /s/%n.sock  \r\n") {
        test_write("joulemark.yaml", same);
        expect_equal(jm_config_socket(file, "n7", socket, sizeof socket, &why), 0);
        expect_text(socket, "/s/n7.sock");
    }
}

TEST(the_cluster_alone) {
    char cluster[8];
    FOR_TEXTS (same, "cluster: demo\n", "a: 1\ncluster:  'demo'  # here\n",
               "instruments: nonsense\ncluster: \"demo\"\r\n") {
        test_write("joulemark.yaml", same);
        expect(jm_config_cluster(file, cluster, sizeof cluster));
        expect_text(cluster, "demo");
    }
    FOR_TEXTS (none, "", "clusters: a\n", "cluster:\n", "cluster: of-a-long-name\n") {
        test_write("joulemark.yaml", none);
        expect(!jm_config_cluster(file, cluster, sizeof cluster));
    }
    expect(!jm_config_cluster("/nonexistent", cluster, sizeof cluster));
}

TEST(a_socket_that_plugins_could_not_read_is_refused) {
    FOR_TEXTS (odd, "{cluster: c, socket: /s}\n", "cluster: c\nsocket:\n  /s\n",
               "cluster: c\n\"socket\": /s\n", "cluster: c\nsocket: !!str /s\n") {
        expect_equal(load(odd), 1);
        expect_part(all.text[0], "key 'socket': ");
    }
}

TEST(the_file_is_found_by_environment) {
    char path[JM_PATH_MAX], slurm_conf[sizeof file];
    snprintf(slurm_conf, sizeof slurm_conf, "%s/slurm.conf", test_folder);
    unsetenv("JOULEMARK_CONFIG");
    unsetenv("SLURM_CONF");
    jm_config_find(path, sizeof path);
    expect_text(path, "/etc/slurm/joulemark.yaml");
    setenv("SLURM_CONF", slurm_conf, 1); /* as a configless slurmd does: no file of ours beside */
    jm_config_find(path, sizeof path);
    expect_text(path, "/etc/slurm/joulemark.yaml");
    test_write("joulemark.yaml", "cluster: c\n");
    jm_config_find(path, sizeof path);
    expect_text(path, file);
    setenv("JOULEMARK_CONFIG", "/j.yaml", 1);
    jm_config_find(path, sizeof path);
    expect_text(path, "/j.yaml");
}

TEST(each_place_without_the_file_is_named) {
    jm_message why;
    setenv("SLURM_CONF", "/spool/conf-cache/slurm.conf", 1);
    jm_config_unopened("/etc/slurm/joulemark.yaml", ENOENT, &why);
    expect_text(why.text, "/etc/slurm/joulemark.yaml: cannot be opened: No such file or directory, "
                          "nor is /spool/conf-cache/joulemark.yaml seen; "
                          "write it or set JOULEMARK_CONFIG");
    FOR_TEXTS (alone, "/etc/slurm/slurm.conf", "slurm.conf", "") {
        setenv("SLURM_CONF", alone, 1);
        jm_config_unopened("/etc/slurm/joulemark.yaml", ENOENT, &why);
        expect_part(why.text, "No such file or directory; write it or set JOULEMARK_CONFIG");
    }
    jm_config_unopened("/j.yaml", EACCES, &why);
    expect_part(why.text, "/j.yaml: cannot be opened: Permission denied; write it");
}

static void begin(void) {
    test_begin_folder();
    snprintf(file, sizeof file, "%s/joulemark.yaml", test_folder);
}

int main(void) {
    return expect_each(begin, test_end_folder);
}
