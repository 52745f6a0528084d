// SPDX-License-Identifier: GPL-2.0-or-later
// The forwarder holds the broker's secrets, as the daemon does: nobody reads its memory, it and its
// children gain no rights.
#include "bk_fixtures.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { OTHER_USER = 65534 };

/* It stays only with a parent of the daemon's name; root may read everybody's memory. */
static pid_t start(void) {
    char config[300];
    int program = open(JM_DAEMON, O_RDONLY | O_CLOEXEC); /* another user may not reach its folder */
    snprintf(config, sizeof config, "%s/joulemark.yaml", test_folder);
    prctl(PR_SET_NAME, "joulemarkd");
    pid_t pid = fork();
    if (pid == 0) {
        char *arguments[] = {"joulemarkd", "--forward", "-N", "n1", "-c", config, NULL};
        char *environment[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
        if (geteuid() == 0 && (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0))
            _exit(99);
        fexecve(program, arguments, environment);
        _exit(98);
    }
    close(program);
    return pid;
}

static bool runs(pid_t pid) {
    char name[32];
    test_read(test_text("/proc/%d/comm", pid), name, sizeof name);
    return strcmp(name, "joulemark-fwd\n") == 0;
}

TEST(its_memory_is_closed_and_it_gains_no_rights) {
    char status[4096];
    struct stat memory;
    test_write("joulemark.yaml",
               test_text("cluster: test\nsocket: %s/s\nstate_dir: %s\nrecord_dir: %s/records\n"
                         "instruments:\n- {type: model, idle_w: 40, full_w: 120}\n",
                         test_folder, test_folder, test_folder));
    if (geteuid() == 0)
        expect_equal(chown(test_folder, OTHER_USER, OTHER_USER), 0);
    pid_t pid = start();
    for (int i = 0; i < 3000 && !runs(pid); i++)
        test_pause_ms(10);
    expect(runs(pid));
    /* The kernel gives what is not dumpable to root. */
    expect_equal(stat(test_text("/proc/%d/mem", pid), &memory), 0);
    expect_equal(memory.st_uid, 0);
    test_read(test_text("/proc/%d/status", pid), status, sizeof status);
    expect_part(status, "NoNewPrivs:\t1");
    kill(pid, SIGTERM);
    int ended = 0;
    expect(waitpid(pid, &ended, 0) == pid && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

int main(void) {
    return test_all_in_folders();
}
