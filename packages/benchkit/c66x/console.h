// Where output goes and files are: cio.c by TI's debugger or the simulator, uart.c by the serial
// line. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_C66X_CONSOLE_H
#define BENCHKIT_C66X_CONSOLE_H

// As the system calls of the same names, but for long transfers, which may be cut; -1 on failure.
// Descriptors 0, 1 and 2 are open from the start.
int console_open(const char *path, int flags);
int console_close(int file);
int console_read(int file, char *data, int length);
int console_write(int file, const char *data, int length);
int console_seek(int file, int offset, int whence);

// Seconds since 1970, UTC; where nobody tells them, since the start of the program.
unsigned console_seconds(void);

#endif
