/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - see log.h. A message is one line and one write(2), so that lines of several threads do
 * not mix; control bytes in it are escaped, so that a name from a traced process cannot forge a
 * line. On a terminal the line is "warning: text"; else the wall-clock time stands in front; where
 * stderr leads to the journal, which has a clock, the syslog priority does. */
#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/path_user.h"
#include "base/text.h"

int log_file_open(const char *path, int *ret, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	bool is_new = access(path, F_OK) < 0;
	int fd, r = path_user_enter(path, &before, reterr);

	if (r == 0 && file_is_recording(path))
		r = errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"--log %s: is a recording: give another name", path);
	if (r < 0)
		return r;
	fd = open(path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY |
			(before.shared ? O_NOFOLLOW : 0),
		0600);
	if (fd < 0)
		return errinfo_set_exit(
			reterr, EXIT_NO_CREATE, -errno, "--log %s: %s", path, strerror(errno));
	if (is_new)
		(void)owner_give(fd); /* else the user who called sudo reads it with sudo */
	*ret = fd;
	return 0;
}

#define LOG_BURST     10
#define LOG_REFILL_NS (30 * NS_PER_S)

static const char *const names[] = {[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug"};

static _Atomic int threshold = LOG_LEVEL_WARNING;
static _Atomic int file_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void log_set_file(int fd)
{
	file_fd = fd;
}

void log_set_level(enum log_level level)
{
	threshold = (int)level;
}

/* A bucket of LOG_BURST tokens; one comes back every LOG_REFILL_NS. */
bool log_admit(struct log_site *site, mono_time now, uint32_t *ret_suppressed)
{
	uint64_t back = now.ns > site->last_ns ? (now.ns - site->last_ns) / LOG_REFILL_NS : 0;

	if (site->tokens_used == 0)
		site->last_ns = now.ns;
	else if (back > 0) {
		site->tokens_used -= (uint32_t)MIN(back, (uint64_t)site->tokens_used);
		site->last_ns += back * LOG_REFILL_NS;
	}
	if (site->tokens_used >= LOG_BURST) {
		site->suppressed++;
		return false;
	}
	site->tokens_used++;
	*ret_suppressed = site->suppressed;
	site->suppressed = 0;
	return true;
}

/* $JOURNAL_STREAM names the journal's end of a stream by device and inode: whoever redirects stderr
 * leaves the variable as it was. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;
	int end = 0;

	return stream && sscanf(stream, "%llu:%llu%n", &device, &inode, &end) == 2 &&
	       !stream[end] && fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device &&
	       st.st_ino == inode;
}

const char *log_mark(enum log_level level)
{
	static const char *const marks[] = {[LOG_LEVEL_ERROR] = "<3>",
		[LOG_LEVEL_WARNING] = "<4>",
		[LOG_LEVEL_INFO] = "<6>",
		[LOG_LEVEL_DEBUG] = "<7>"};

	return is_journal() ? marks[level] : "";
}

static void put_time(struct buf *line)
{
	struct timespec ts;
	struct tm tm;
	char when[32];

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	buf_printf(line, "%s.%03ldZ ", when, ts.tv_nsec / 1000000);
}

static void put_prefix(struct buf *line, enum log_level level)
{
	const char *mark = log_mark(level);

	if (mark[0])
		buf_puts(line, mark);
	else if (!isatty(STDERR_FILENO))
		put_time(line);
	buf_printf(line, "%s: ", names[level]);
}

/* A log that cannot be written has nowhere to complain. */
static void put_line(int fd, struct buf *line, const char *text, uint32_t suppressed)
{
	text_escape_terminal(line, text);
	if (suppressed)
		buf_printf(line, " suppressed=%u", suppressed);
	buf_putc(line, '\n');
	if (write(fd, buf_str(line), line->len) < 0)
		return;
}

void log_write(struct log_site *site, enum log_level level, const char *fmt, ...)
{
	_cleanup_buf_ struct buf line = BUF_INIT(8192), kept = BUF_INIT(8192);
	uint32_t suppressed = 0;
	char text[1024];
	bool admitted, shown;
	va_list ap;

	shown = (int)level <= threshold;
	if (!shown && (file_fd < 0 || level > LOG_LEVEL_INFO))
		return;
	pthread_mutex_lock(&lock);
	/* whoever asks for these wants them all */
	admitted = level == LOG_LEVEL_DEBUG || log_admit(site, mono_now(), &suppressed);
	pthread_mutex_unlock(&lock);
	if (!admitted)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (shown) {
		put_prefix(&line, level);
		put_line(STDERR_FILENO, &line, text, suppressed);
	}
	if (file_fd < 0)
		return;
	put_time(&kept);
	buf_printf(&kept, "%s: ", names[level]);
	put_line(file_fd, &kept, text, suppressed);
}
