// SPDX-License-Identifier: GPL-2.0-or-later
// Files that grow by whole lines, written by a thread of their own: a folder that hangs holds
// nobody up.
#ifndef JOULEMARK_JOURNAL_H
#define JOULEMARK_JOURNAL_H

#include "text.h"

typedef struct jm_journal jm_journal;

/* Lines go to FOLDER/NAME.jsonl; the folder is made where its parent is there. NULL: no thread. */
jm_journal *jm_journal_start(const char *folder);

/* Queue a line, without its end. False: the queue is full, and the line is lost. */
bool jm_journal_add(jm_journal *journal, const char *name, const char *line);

/* Waits a moment for what is queued. False: a file system hangs; its thread is left behind. */
bool jm_journal_stop(jm_journal *journal);

#endif
