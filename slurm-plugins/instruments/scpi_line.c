// SPDX-License-Identifier: GPL-2.0-or-later
// The way to a power meter that speaks SCPI: a serial line; USBTMC, whose messages are whole
// (linux, Documentation/driver-api/usb/usbtmc.rst); TCP, as LXI meters have it at port 5025 (IANA,
// scpi-raw).
#include "scpi_line.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/usb/tmc.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char usual_port[] = "5025";

static int ms_until(int64_t deadline_ns) {
    int64_t left_ns = deadline_ns - jm_clock_ns(CLOCK_MONOTONIC);
    return left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;
}

/* False and why: the deadline passed, or the line is gone. */
static bool wait_for(const jm_scpi_line *line, short events, int64_t deadline_ns, const char *what,
                     jm_message *why) {
    for (;;) {
        struct pollfd polled = {.fd = line->fd, .events = events};
        int ready = poll(&polled, 1, ms_until(deadline_ns));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 1 && (polled.revents & events))
            return true;
        if (ready == 0)
            jm_message_set(why, "%s: %s within %.1f s; is the meter on%s?", line->name, what,
                           (double)line->timeout_ns / 1e9, line->tcp ? "" : ", at this baud rate");
        else
            jm_message_set(why, "%s: the line is gone: %s", line->name,
                           ready < 0 ? strerror(errno) : "hung up");
        return false;
    }
}

/* ---- open ---- */

static bool is_usbtmc(const char *path) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "usbtmc", strlen("usbtmc")) == 0;
}

/* Its reads block, for so long at most; what an earlier question left is forgotten. */
static void set_usb_up(const jm_scpi_line *line) {
#ifdef USBTMC_IOCTL_SET_TIMEOUT
    enum { LEAST_MS = 100 }; /* the driver's */
    uint32_t timeout_ms = (uint32_t)(line->timeout_ns / 1000000);
    timeout_ms = timeout_ms < LEAST_MS ? LEAST_MS : timeout_ms;
    (void)ioctl(line->fd, USBTMC_IOCTL_SET_TIMEOUT, &timeout_ms);
#endif
    (void)ioctl(line->fd, USBTMC_IOCTL_CLEAR);
}

static bool open_device(jm_scpi_line *line, jm_message *why) {
    line->is_usb = is_usbtmc(line->name);
    int flags = O_RDWR | O_NOCTTY | O_CLOEXEC | (line->is_usb ? 0 : O_NONBLOCK);
    line->fd = open(line->name, flags);
    if (line->fd < 0) {
        jm_message_set(why, "%s: cannot be opened: %s; set 'device' to the meter's line",
                       line->name, strerror(errno));
        return false;
    }
    if (line->is_usb) {
        set_usb_up(line);
        return true;
    }
    struct termios settings;
    if (tcgetattr(line->fd, &settings) != 0) {
        jm_message_set(why, "%s: is no serial line, nor /dev/usbtmcN; set 'device' to one",
                       line->name);
        return false;
    }
    cfmakeraw(&settings);
    settings.c_cflag |= CLOCAL | CREAD;
    cfsetispeed(&settings, line->speed);
    cfsetospeed(&settings, line->speed);
    if (tcsetattr(line->fd, TCSANOW, &settings) != 0) {
        jm_message_set(why, "%s: cannot be set up: %s", line->name, strerror(errno));
        return false;
    }
    return true;
}

/* HOST, HOST:PORT, [ADDRESS]:PORT. */
static void split_name(const char *name, char host[JM_NAME_MAX * 4], char port[JM_NAME_MAX]) {
    const char *end = *name == '[' ? strchr(name, ']') : NULL;
    const char *colon = strrchr(end ? end : name, ':');
    const char *start = end ? name + 1 : name;
    const char *stop = end ? end : colon ? colon : name + strlen(name);
    jm_format(host, JM_NAME_MAX * 4, "%.*s", (int)(stop - start), start);
    jm_format(port, JM_NAME_MAX, "%s", colon ? colon + 1 : usual_port);
}

/* One of its addresses; an error of the last is told. */
static bool connect_to(jm_scpi_line *line, const struct addrinfo *address, int64_t deadline_ns,
                       jm_message *why) {
    int status = 0;
    socklen_t size = sizeof status;
    line->fd = socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (line->fd < 0)
        status = errno;
    else if (connect(line->fd, address->ai_addr, address->ai_addrlen) != 0) {
        if (errno != EINPROGRESS)
            status = errno;
        else if (!wait_for(line, POLLOUT, deadline_ns, "no connection", why))
            return false;
        else if (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &status, &size) != 0)
            status = errno;
    }
    if (status != 0)
        jm_message_set(why, "%s: no connection: %s; set 'host' to the meter's HOST:PORT",
                       line->name, strerror(status));
    return status == 0;
}

static bool open_tcp(jm_scpi_line *line, int64_t deadline_ns, jm_message *why) {
    char host[JM_NAME_MAX * 4], port[JM_NAME_MAX];
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    split_name(line->name, host, port);
    int status = getaddrinfo(host, port, &wanted, &found);
    if (status != 0) {
        jm_message_set(why, "%s: is not known: %s; set 'host' to the meter's HOST:PORT", line->name,
                       gai_strerror(status));
        return false;
    }
    bool connected = false;
    for (const struct addrinfo *one = found; one && !connected; one = one->ai_next) {
        jm_scpi_shut(line);
        connected = connect_to(line, one, deadline_ns, why);
    }
    freeaddrinfo(found);
    return connected;
}

bool jm_scpi_open(jm_scpi_line *line, int64_t deadline_ns, jm_message *why) {
    line->is_usb = false;
    return line->tcp ? open_tcp(line, deadline_ns, why) : open_device(line, why);
}

void jm_scpi_shut(jm_scpi_line *line) {
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
}

/* ---- questions and answers ---- */

bool jm_scpi_send(jm_scpi_line *line, const char *command, int64_t deadline_ns, jm_message *why) {
    char text[JM_SCPI_QUERY_MAX + 3];
    if (!jm_format(text, sizeof text, "%s%s", command, line->is_usb ? "\n" : "\r\n")) {
        jm_message_set(why, "%s: '%.40s...' is too long", line->name, command);
        return false;
    }
    size_t length = strlen(text), sent = 0;
    while (sent < length) {
        if (!line->is_usb && !wait_for(line, POLLOUT, deadline_ns, "takes no command", why))
            return false;
        ssize_t count = line->tcp ? send(line->fd, text + sent, length - sent, MSG_NOSIGNAL)
                                  : write(line->fd, text + sent, length - sent);
        if (count < 0 && errno != EINTR && errno != EAGAIN) {
            jm_message_set(why, "%s: cannot be written: %s", line->name, strerror(errno));
            return false;
        }
        sent += count > 0 ? (size_t)count : 0;
    }
    return true;
}

/* What has come: a byte of a line, all of a USB message. Its length; 0 and why: nothing came. */
static size_t receive(const jm_scpi_line *line, char *piece, size_t size, int64_t deadline_ns,
                      jm_message *why) {
    for (;;) {
        if (!line->is_usb && !wait_for(line, POLLIN, deadline_ns, "no whole answer", why))
            return 0;
        ssize_t count = read(line->fd, piece, line->is_usb ? size : 1);
        if (count > 0)
            return (size_t)count;
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count < 0 && errno == ETIMEDOUT)
            jm_message_set(why, "%s: no whole answer within %.1f s; is the meter on?", line->name,
                           (double)line->timeout_ns / 1e9);
        else
            jm_message_set(why, "%s: cannot be read: %s", line->name,
                           count < 0 ? strerror(errno) : "hung up");
        return 0;
    }
}

static bool is_text(char byte) {
    return byte == '\r' || byte == '\n' || (byte >= ' ' && byte <= '~');
}

/* One line of printable text. */
static bool receive_line(const jm_scpi_line *line, char reply[JM_SCPI_REPLY_MAX],
                         int64_t deadline_ns, jm_message *why) {
    size_t length = 0, count;
    bool ended = false;
    while (!ended) {
        char piece[JM_SCPI_REPLY_MAX];
        if ((count = receive(line, piece, sizeof piece, deadline_ns, why)) == 0)
            return false;
        ended = line->is_usb; /* with the message */
        for (size_t i = 0; i < count && !(ended && piece[i] == '\n'); i++) {
            ended |= piece[i] == '\n';
            if (!is_text(piece[i]) || length == JM_SCPI_REPLY_MAX - 1) {
                jm_message_set(why, "%s: answers garbage, byte 0x%02x after %zu%s", line->name,
                               (unsigned)(unsigned char)piece[i], length,
                               line->tcp || line->is_usb ? "" : "; check 'baud'");
                return false;
            }
            if (piece[i] != '\r' && piece[i] != '\n')
                reply[length++] = piece[i];
        }
    }
    reply[length] = '\0';
    return true;
}

/* Answers that came too late for their question must not pass for the next one's. */
static void forget_late_answers(const jm_scpi_line *line) {
    char late[JM_SCPI_REPLY_MAX];
    if (!line->tcp)
        (void)tcflush(line->fd, TCIFLUSH);
    while (line->tcp && recv(line->fd, late, sizeof late, MSG_DONTWAIT) > 0)
        ;
}

bool jm_scpi_ask(jm_scpi_line *line, const char *query, char reply[JM_SCPI_REPLY_MAX],
                 int64_t deadline_ns, jm_message *why) {
    forget_late_answers(line);
    return jm_scpi_send(line, query, deadline_ns, why) &&
           receive_line(line, reply, deadline_ns, why);
}
