/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - messages about the program itself, to stderr. Library code returns errors; only commands
 * and threads that nobody waits for log.
 *
 * Each call site may speak 10 times at once, then once in 30 s; what it held back is counted and
 * said with the next message ("suppressed=n"). Any thread may log. */
#pragma once

#include "base/clock.h"
#include "base/errinfo.h"
#include "base/macros.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

struct log_site { /* one per place in the code; starts as zeros */
	uint64_t last_ns;
	uint32_t tokens_used;
	uint32_t suppressed;
};

/* log_set_level - messages above @level are not written; the default is LOG_LEVEL_WARNING. */
void log_set_level(enum log_level level);

/* log_set_file - messages up to LOG_LEVEL_INFO (or the level set, if that is above it) also go to @fd,
 * with the time in front; -1 (the default): to stderr alone. @fd stays the caller's. */
void log_set_file(int fd);

/* log_admit - whether @site may speak at @now; if so *ret_suppressed is what it held back before.
 */
bool log_admit(struct log_site *site, mono_time now, uint32_t *ret_suppressed);

/* log_mark - what stands before a line of @level on stderr that is written by other means: its syslog
 * priority where stderr is the journal ("<4>"), else "". */
const char *log_mark(enum log_level level);

void log_write(struct log_site *site, enum log_level level, const char *fmt, ...) _printf_(3, 4);

#define LOG_AT(level, ...)                                                                         \
	do {                                                                                       \
		static struct log_site log_site_;                                                  \
		log_write(&log_site_, level, __VA_ARGS__);                                         \
	} while (0)
#define log_error(...)   LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) LOG_AT(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* The file that --log names. */

/* log_file_open - appends to @path, which is made with mode 0600 if it is not there, with the rights of
 * whoever may change it. *ret is the descriptor. */
int log_file_open(const char *path, int *ret, struct errinfo *reterr);
