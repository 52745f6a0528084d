// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's host lists: n[001-072],gpu4. Nothing is ever expanded whole: entries are counted, and one
// is found by its index.
#include "hosts.h"

#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 9 };

/* A piece of the list's text. */
typedef struct {
    const char *begin, *end;
} span;

/* "001-072": first, how many, and the width that zeros fill. */
typedef struct {
    int first, count, width;
} range;

static bool read_number(span *text, int *number, int *width) {
    *number = *width = 0;
    for (; text->begin < text->end && *text->begin >= '0' && *text->begin <= '9'; text->begin++) {
        if (++*width > DIGITS_MAX)
            return false;
        *number = *number * 10 + (*text->begin - '0');
    }
    return *width > 0;
}

/* The next range of a bracket's inside; what is left of it stays in text. */
static bool read_range(span *text, range *found) {
    int last, width;
    if (!read_number(text, &found->first, &found->width))
        return false;
    last = found->first;
    if (text->begin < text->end && *text->begin == '-') {
        text->begin++;
        if (!read_number(text, &last, &width))
            return false;
    }
    found->count = last - found->first + 1;
    if (found->count < 1 || found->count > JM_HOSTS_MAX)
        return false;
    if (text->begin == text->end)
        return true;
    return *text->begin++ == ',' && text->begin < text->end;
}

static int count_bracket(span inside) {
    int count = 0;
    range next;
    do {
        if (!read_range(&inside, &next) || (count += next.count) > JM_HOSTS_MAX)
            return -1;
    } while (inside.begin < inside.end);
    return count;
}

static bool get_of_bracket(span inside, int index, char *out, size_t size) {
    for (range next; inside.begin < inside.end && read_range(&inside, &next); index -= next.count)
        if (index < next.count)
            return jm_format(out, size, "%0*d", next.width, next.first + index);
    return false;
}

/* The next bracket of a name; false: there is none. Unbalanced ones are found by count_name. */
static bool find_bracket(span name, span *inside) {
    inside->begin = memchr(name.begin, '[', (size_t)(name.end - name.begin));
    if (!inside->begin)
        return false;
    inside->begin++;
    const char *end = memchr(inside->begin, ']', (size_t)(name.end - inside->begin));
    inside->end = end ? end : name.end;
    return end != NULL;
}

static int count_name(span name) {
    int count = 1;
    if (name.begin == name.end)
        return -1;
    for (span inside; find_bracket(name, &inside); name.begin = inside.end + 1) {
        int within = count_bracket(inside);
        if (within < 0 || memchr(name.begin, ']', (size_t)(inside.begin - name.begin)) ||
            count > JM_HOSTS_MAX / within)
            return -1;
        count *= within;
    }
    bool unbalanced = memchr(name.begin, '[', (size_t)(name.end - name.begin)) ||
                      memchr(name.begin, ']', (size_t)(name.end - name.begin));
    return unbalanced ? -1 : count;
}

static bool append(char *out, size_t size, const char *text, size_t length) {
    size_t used = strlen(out);
    return jm_format(out + used, size - used, "%.*s", (int)length, text);
}

/* The last bracket runs fastest, as in Slurm. */
static bool get_of_name(span name, int index, char *out, size_t size) {
    int left = count_name(name);
    out[0] = '\0';
    for (span inside; find_bracket(name, &inside); name.begin = inside.end + 1) {
        left /= count_bracket(inside);
        size_t used = 0;
        if (!append(out, size, name.begin, (size_t)(inside.begin - 1 - name.begin)))
            return false;
        used = strlen(out);
        if (!get_of_bracket(inside, index / left, out + used, size - used))
            return false;
        index %= left;
    }
    return append(out, size, name.begin, (size_t)(name.end - name.begin));
}

/* The next name, up to a comma outside of brackets; text goes on behind it. */
static span next_name(const char **text) {
    span name = {*text, *text};
    int depth = 0;
    for (; *name.end && (*name.end != ',' || depth > 0); name.end++)
        depth += (*name.end == '[') - (*name.end == ']');
    *text = *name.end ? name.end + 1 : name.end;
    return name;
}

int jm_hosts_count(const char *list) {
    int count = 0;
    size_t length = strlen(list);
    if (length == 0 || list[length - 1] == ',')
        return -1;
    while (*list) {
        int within = count_name(next_name(&list));
        if (within < 0 || (count += within) > JM_HOSTS_MAX)
            return -1;
    }
    return count;
}

bool jm_hosts_get(const char *list, int index, char *out, size_t size) {
    while (index >= 0 && *list) {
        span name = next_name(&list);
        int within = count_name(name);
        if (within < 0)
            return false;
        if (index < within)
            return get_of_name(name, index, out, size);
        index -= within;
    }
    return false;
}
