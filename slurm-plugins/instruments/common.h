// SPDX-License-Identifier: GPL-2.0-or-later
// What instruments share: error budgets, idle power, unique names, and files of sysfs kept open.
#ifndef JOULEMARK_INSTRUMENTS_COMMON_H
#define JOULEMARK_INSTRUMENTS_COMMON_H

#include "instrument.h"

#include <stddef.h>

/* What the configuration says about the error, and where it is silent the instrument's own. */
jm_error_budget jm_error_budget_or(jm_error_budget given, jm_error_budget fallback);

/* A server's own meter may owe an offset for each of its power supplies: `supplies` of the channel,
 * else of the instrument, else two, as servers have them. */
jm_error_budget jm_budget_of_supplies(jm_error_budget one, const jm_instrument_config *config,
                                      const jm_channel_config *channel);
#define JM_SUPPLIES_KEY                                                                            \
    { .name = "supplies", .kind = JM_KEY_WHOLE, .min = 1, .max = 32 }

/*
 * A channel as its entry of `channels:` describes it, else (own NULL) as the instrument's own keys
 * do: domain, idle power, error over the instrument's `budget`. Its name is the caller's.
 */
jm_channel_info jm_channel_configured(const jm_instrument_config *config,
                                      const jm_channel_config *own, jm_method method,
                                      jm_error_budget budget);

/* Where the key is said: in the channel's own settings, else in the instrument's, which hold for
 * all its channels. Both may be silent, own may be NULL. */
const jm_settings *jm_saying(const jm_instrument_config *config, const jm_channel_config *own,
                             const char *key);

/* Makes `why` FILE:LINE: text; line 0 is where the instrument begins. Always false. */
bool jm_refuse(const jm_instrument_config *config, int line, jm_message *why, const char *text);

/* Divide an instrument's idle power equally between its outermost channels; NAN leaves it unknown.
 */
void jm_share_idle(double idle_w, jm_channel_info *channels, int count);

/* Channels with the same name become NAME-0, NAME-1, ... in their order. */
void jm_number_alike(jm_channel_info *channels, int count);

/* Watts or joules as integer micro-units; what is negative becomes 0. */
uint64_t jm_to_micro(double value);

/* A reading's text as microwatts; false and why: garbage, NaN, negative, beyond 1 GW. */
bool jm_parse_watts(const char *text, uint64_t *uw, jm_message *why);

/* The first line of a file that only we (or root) may read; false and why. */
bool jm_read_secret(const char *path, char *secret, size_t size, jm_message *why);

/* For a moment hardware draws more than its own limits, which hold for seconds. */
enum { JM_PEAK_FACTOR = 10 };

/* A file of one number, kept open: a tick costs one pread. */
typedef struct {
    int fd; /* -1: not open */
    char path[JM_PATH_MAX];
    jm_message why; /* of the last failed reading */
} jm_sensor;

/* The device that a folder of sysfs stands for, and which sensor of it: the end of its real path,
 * with a bus's address, and of the sensor. */
void jm_device_of(const char *folder, const char *sensor, char device[JM_DEVICE_MAX]);

/* What is believed at most, microwatts, where the file says how much the hardware draws for longer:
 * ten times that. 0: there is no such file, or it does not say. */
uint64_t jm_limit_of(const char *folder, const char *file);

/* 0, or -1 with errno set. */
int jm_sensor_open(jm_sensor *sensor, const char *folder, const char *file);
bool jm_sensor_read(jm_sensor *sensor, int64_t *value);
void jm_sensor_close(jm_sensor *sensor);

typedef struct {
    char name[JM_NAME_MAX];
} jm_entry;

/* The folder's entries that begin with prefix, numbers in numeric order. How many (<= capacity), or
 * -1 with errno. */
int jm_list_folder(const char *folder, const char *prefix, jm_entry *entries, int capacity);

/* Whether one of the PCI devices that the driver has, below the machine's root, is such: its folder
 * is asked about. */
bool jm_any_pci_device(const char *root, const char *driver, bool (*is_such)(const char *device));

#endif
