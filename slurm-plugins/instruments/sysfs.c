// SPDX-License-Identifier: GPL-2.0-or-later
// Files of sysfs: listed in numeric order, kept open, read with one system call a tick.
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void jm_device_of(const char *folder, const char *sensor, char device[JM_DEVICE_MAX]) {
    char whole[PATH_MAX + JM_DEVICE_MAX];
    char *path = realpath(folder, NULL);
    jm_format(whole, sizeof whole, "%s%s", path ? path : "", path ? sensor : "");
    size_t length = strlen(whole);
    jm_format(device, JM_DEVICE_MAX, "%s",
              whole + (length < JM_DEVICE_MAX ? 0 : length - (JM_DEVICE_MAX - 1)));
    free(path);
}

uint64_t jm_limit_of(const char *folder, const char *file) {
    char path[JM_PATH_MAX], text[32];
    uint64_t uw = 0;
    if (jm_format(path, sizeof path, "%s/%s", folder, file) &&
        jm_read_small_file(path, text, sizeof text) > 0)
        jm_parse_u64(text, &uw);
    return uw < UINT64_MAX / JM_PEAK_FACTOR ? JM_PEAK_FACTOR * uw : 0;
}

int jm_sensor_open(jm_sensor *sensor, const char *folder, const char *file) {
    sensor->fd = -1;
    if (!jm_format(sensor->path, sizeof sensor->path, "%s/%s", folder, file)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    sensor->fd = open(sensor->path, O_RDONLY | O_CLOEXEC);
    return sensor->fd < 0 ? -1 : 0;
}

bool jm_sensor_read(jm_sensor *sensor, int64_t *value) {
    char text[32];
    ssize_t length;
    do
        length = pread(sensor->fd, text, sizeof text - 1, 0);
    while (length < 0 && errno == EINTR);
    if (length < 0) {
        jm_message_set(&sensor->why, "%s: cannot be read: %s; is its driver still loaded?",
                       sensor->path, strerror(errno));
        return false;
    }
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (jm_parse_i64(text, value))
        return true;
    jm_message_set(&sensor->why, "%s: must hold a whole number, holds '%s'", sensor->path, text);
    return false;
}

void jm_sensor_close(jm_sensor *sensor) {
    if (sensor->fd >= 0)
        close(sensor->fd);
    sensor->fd = -1;
}

int jm_list_folder(const char *folder, const char *prefix, jm_entry *entries, int capacity) {
    struct dirent **found;
    int n_found = scandir(folder, &found, NULL, versionsort);
    if (n_found < 0)
        return -1;
    int count = 0;
    for (int i = 0; i < n_found; i++) {
        const char *name = found[i]->d_name;
        if (strncmp(name, prefix, strlen(prefix)) == 0 && count < capacity &&
            jm_format(entries[count].name, sizeof entries[count].name, "%s", name))
            count++;
        free(found[i]);
    }
    free(found);
    return count;
}

bool jm_any_pci_device(const char *root, const char *driver, bool (*is_such)(const char *device)) {
    enum { DEVICES_MAX = 256 };
    char folder[JM_PATH_MAX], device[JM_PATH_MAX];
    jm_entry entries[DEVICES_MAX];
    if (!jm_format(folder, sizeof folder, "%s/sys/bus/pci/drivers/%s", root, driver))
        return false;
    int count = jm_list_folder(folder, "", entries, DEVICES_MAX);
    for (int i = 0; i < count; i++)
        if (strchr(entries[i].name, ':') && /* an address: no file of the driver's own */
            jm_format(device, sizeof device, "%s/%s", folder, entries[i].name) && is_such(device))
            return true;
    return false;
}
