// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `replay_hdf5`: as `replay`, for a trace in the datasets time_s and power_w (or
// energy_uj) of an HDF5 file.
#include "common.h"

#include <errno.h>
#include <hdf5.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS_MAX = 50000000 };

/* As replay's, and the group that has the datasets. */
static const jm_key keys[] = {{"file", JM_KEY_PATH, .required = true, .example = "/path/trace.h5"},
                              {"group", JM_KEY_TEXT, .required = false},
                              {"as", JM_KEY_CHOICE, .choices = "counter power"},
                              {"epoch", JM_KEY_NUMBER, .min = 0, .max = 4e9},
                              {"repeat", JM_KEY_BOOL, .required = false},
                              {"wrap_uj", JM_KEY_WHOLE, .min = 1, .max = 0x1p62},
                              {0}};

/* One dataset of one dimension. */
struct column {
    hid_t dataset;
    hsize_t rows;
    H5T_class_t class; /* of its numbers */
};

static int refuse(jm_message *why, const char *file, const char *dataset, const char *what) {
    jm_message_set(why, "replay_hdf5: %s: dataset '%.100s' %s", file, dataset, what);
    return -1;
}

/* 0; 1: there is no such dataset; -1 and why: it is of no use. */
static int open_column(hid_t file, const char *path, const char *group, const char *name,
                       struct column *column, jm_message *why) {
    char full[JM_PATH_MAX];
    jm_format(full, sizeof full, "%s/%s", group, name);
    column->dataset = H5Dopen2(file, full, H5P_DEFAULT);
    if (column->dataset < 0)
        return 1;
    hid_t space = H5Dget_space(column->dataset), type = H5Dget_type(column->dataset);
    bool is_row = H5Sget_simple_extent_ndims(space) == 1;
    column->class = H5Tget_class(type);
    if (is_row)
        H5Sget_simple_extent_dims(space, &column->rows, NULL);
    H5Tclose(type);
    H5Sclose(space);
    if (!is_row)
        return refuse(why, path, full, "must have one dimension");
    if (column->class != H5T_FLOAT && column->class != H5T_INTEGER)
        return refuse(why, path, full, "must hold numbers");
    return column->rows <= ROWS_MAX ? 0 : refuse(why, path, full, "has more than 5e7 rows");
}

/* The column as doubles or as int64, of type. NULL: out of memory, or the file is damaged. */
static void *read_column(const struct column *column, hid_t type) {
    void *values = calloc((size_t)column->rows + 1, 8);
    if (values && H5Dread(column->dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
        free(values);
        return NULL;
    }
    return values;
}

/* The rows as the text that `replay` reads; 17 digits lose nothing of a double. */
static bool write_rows(FILE *out, const struct column *time, const struct column *value,
                       bool is_energy) {
    double *times_s = read_column(time, H5T_NATIVE_DOUBLE);
    void *values = read_column(value, is_energy ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE);
    bool good = times_s && values;
    fputs(is_energy ? "time_s,energy_uj\n" : "time_s,power_w\n", out);
    for (hsize_t i = 0; good && i < time->rows; i++)
        if (is_energy)
            fprintf(out, "%.17g,%" PRId64 "\n", times_s[i], ((const int64_t *)values)[i]);
        else
            fprintf(out, "%.17g,%.17g\n", times_s[i], ((const double *)values)[i]);
    free(times_s);
    free(values);
    return good && fflush(out) == 0;
}

static int convert(hid_t file, const char *path, const char *group, FILE *out, jm_message *why) {
    struct column time = {.dataset = -1}, value = {.dataset = -1};
    int result = open_column(file, path, group, "time_s", &time, why);
    bool is_energy = false;
    if (result == 0 && (result = open_column(file, path, group, "power_w", &value, why)) == 1) {
        is_energy = true;
        result = open_column(file, path, group, "energy_uj", &value, why);
    }
    if (result == 1)
        jm_message_set(why,
                       "replay_hdf5: %s: group '%.100s' must have the datasets time_s and power_w, "
                       "or time_s and energy_uj",
                       path, group);
    else if (result == 0 && time.rows != value.rows)
        result = refuse(why, path, "time_s", "must be as long as the other");
    else if (result == 0 && is_energy && value.class != H5T_INTEGER)
        result = refuse(why, path, "energy_uj", "must be of a type of whole numbers");
    else if (result == 0 && !write_rows(out, &time, &value, is_energy))
        result = refuse(why, path, "time_s", "or the other cannot be read");
    if (time.dataset >= 0)
        H5Dclose(time.dataset);
    if (value.dataset >= 0)
        H5Dclose(value.dataset);
    return result == 0 ? 0 : -1;
}

static int read_file(const char *path, const char *group, FILE *out, jm_message *why) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* errors are ours to tell */
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) {
        bool there = access(path, R_OK) == 0;
        jm_message_set(why, "replay_hdf5: %s: cannot be opened: %s; set 'file' to an HDF5 trace",
                       path, there ? "it is no HDF5 file" : strerror(errno));
        return -1;
    }
    int result = convert(file, path, group, out, why);
    H5Fclose(file);
    return result;
}

/* `replay` names its own file and line: they are ours and the row before. */
static void translate(const char *copy, const char *path, jm_message *why) {
    size_t length = strlen(copy);
    char *rest;
    if (strncmp(why->text, copy, length) != 0 || why->text[length] != ':')
        return;
    unsigned long line = strtoul(why->text + length + 1, &rest, 10);
    jm_message plain;
    jm_message_set(&plain, "%s", *rest == ':' ? rest + 2 : why->text + length + 1);
    jm_message_set(why, "replay_hdf5: %s: row %lu: %.200s", path, line > 1 ? line - 1 : 0,
                   plain.text);
}

static int replay_copy(const jm_instrument_config *config, int fd, void **self, jm_message *why) {
    char copy[64];
    jm_instrument_config settings = *config;
    settings.settings = (jm_settings){0};
    jm_format(copy, sizeof copy, "/proc/self/fd/%d", fd);
    int result = -1;
    if (!jm_settings_copy(&settings.settings, &config->settings) ||
        !jm_settings_put(&settings.settings, &keys[0], copy, config->line))
        jm_message_set(why, "replay_hdf5: out of memory");
    else if ((result = jm_replay.open(&settings, self, why)) != 0)
        translate(copy, jm_text(&config->settings, "file", ""), why);
    jm_settings_free(&settings.settings);
    return result;
}

static int replay_hdf5_open(const jm_instrument_config *config, void **self, jm_message *why) {
    const char *path = jm_text(&config->settings, "file", "");
    int fd = memfd_create("trace.csv", MFD_CLOEXEC);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out) {
        jm_message_set(why, "replay_hdf5: %s: no memory for the trace: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int result = read_file(path, jm_text(&config->settings, "group", "/"), out, why);
    if (result == 0)
        result = replay_copy(config, fd, self, why);
    fclose(out);
    return result;
}

static int replay_hdf5_describe(void *self, jm_channel_info *channels, int capacity) {
    return jm_replay.describe(self, channels, capacity);
}

static bool replay_hdf5_read(void *self, int64_t now_ns, jm_reading *readings) {
    return jm_replay.read(self, now_ns, readings);
}

static void replay_hdf5_close(void *self) {
    jm_replay.close(self);
}

const jm_instrument jm_module = {.version = JM_INSTRUMENT_VERSION,
                                 .type = "replay_hdf5",
                                 .keys = keys,
                                 .takes_domain = true,
                                 .takes_idle = true,
                                 .prompt = true,
                                 .open = replay_hdf5_open,
                                 .describe = replay_hdf5_describe,
                                 .read = replay_hdf5_read,
                                 .close = replay_hdf5_close};
