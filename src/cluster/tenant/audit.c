/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - see audit.h.
 *
 * Invariants:
 *  1. A line is written with one write(2) under the lock; if that fails, what of it was written is cut off
 *     before another is written: the file holds whole lines.
 *  2. Only the thread syncs, replaces and closes the file, so that nobody who asks waits for the disk. */
#include "cluster/tenant/audit.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "json/writer.h"
#include "base/path_user.h"
#include "json/reader.h"

#define SYNC_NS        NS_PER_S
#define NAME_MAX_BYTES 256 /* of an action, a name, an address */

struct audit {
	char *path;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool has_thread, stopping, dirty;
	bool is_torn; /* behind size there is a part of a line */
	int fd;
	uint64_t size, seq, lost;
	char head[DIGEST_HEX];
};

/* ---- the file ---- */

static int open_file(const char *path, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = open(path,
		O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno,
			"cannot open the audit file %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return errinfo_set_exit(
			reterr, EXIT_CONFIG, -EINVAL, "the audit file %s is not a file", path);
	if (st.st_mode & 077 && fchmod(fd, 0600) < 0)
		return errinfo_set(reterr, -errno,
			"other users can read the audit file %s: run `chmod 600 %s`", path, path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EAGAIN,
			"another process writes the audit file %s: stop it, or name another file",
			path);
	r = fd;
	fd = -1;
	return r;
}

/* older - the name of the file before last, and so on. */
static int older(const struct audit *a, int n, char out[PATH_MAX])
{
	int len = n ? snprintf(out, PATH_MAX, "%s.%d", a->path, n)
		    : snprintf(out, PATH_MAX, "%s", a->path);

	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int replace(struct audit *a)
{
	char from[PATH_MAX], to[PATH_MAX];
	int fd, r = 0;

	for (int n = AUDIT_FILES_MAX; n > 0 && r == 0; n--) {
		r = older(a, n, to) < 0 || older(a, n - 1, from) < 0 ? -ENAMETOOLONG : 0;
		if (r == 0 && rename(from, to) < 0 && errno != ENOENT)
			r = -errno;
	}
	fd = r == 0 ? open_file(a->path, NULL) : r;
	if (fd < 0)
		return fd;
	close(a->fd);
	a->fd = fd;
	a->size = 0;
	return 0;
}

static void tend(struct audit *a)
{
	int fd = a->fd;
	bool dirty = a->dirty;

	a->dirty = false;
	pthread_mutex_unlock(&a->lock);
	if (dirty && fdatasync(fd) < 0)
		log_error("the audit file %s could not be synced: %s", a->path, strerror(errno));
	pthread_mutex_lock(&a->lock);
	if (a->size > AUDIT_BYTES_MAX && !a->dirty) {
		int r = replace(a);

		if (r < 0)
			log_error("the audit file %s could not be replaced by a new one: %s",
				a->path, strerror(-r));
	}
}

static void *run(void *arg)
{
	struct audit *a = arg;

	MUTEX_HELD(&a->lock);
	while (!a->stopping) {
		struct timespec until;
		uint64_t at_ns = mono_now().ns + SYNC_NS;

		until.tv_sec = (time_t)(at_ns / NS_PER_S);
		until.tv_nsec = (long)(at_ns % NS_PER_S);
		pthread_cond_timedwait(&a->wake, &a->lock, &until);
		if (!a->stopping)
			tend(a);
	}
	tend(a);
	return NULL;
}

/* go_on - behind the last whole line of what is there. */
static int go_on(struct audit *a, struct errinfo *reterr)
{
	struct audit_span span;
	int r = audit_verify(a->path, NULL, &span, reterr);

	if (r < 0)
		return r;
	if (span.is_torn) {
		log_warning(
			"the audit file %s ends in an incomplete line, which is removed", a->path);
		if (ftruncate(a->fd, (off_t)span.bytes) < 0)
			return errinfo_set(reterr, -errno, "cannot write the audit file %s: %s",
				a->path, strerror(errno));
	}
	a->size = span.bytes;
	a->seq = span.last;
	memcpy(a->head, span.head, sizeof(a->head));
	return 0;
}

/* go_on_from_older - a new file begins behind the one before it. */
static int go_on_from_older(struct audit *a, struct errinfo *reterr)
{
	struct audit_span span;
	char path[PATH_MAX];
	int r = older(a, 1, path);

	if (a->seq || r < 0 || access(path, F_OK) < 0)
		return r;
	r = audit_verify(path, NULL, &span, reterr);
	if (r < 0)
		return r;
	a->seq = span.last;
	memcpy(a->head, span.head, sizeof(a->head));
	return 0;
}

static int start(struct audit *a)
{
	pthread_condattr_t attr;
	int r = -pthread_condattr_init(&attr);

	if (r < 0)
		return r;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	r = -pthread_cond_init(&a->wake, &attr);
	pthread_condattr_destroy(&attr);
	r = r ?: -pthread_create(&a->thread, NULL, run, a);
	a->has_thread = r == 0;
	return r;
}

int audit_open(const char *path, struct audit **ret, struct errinfo *reterr)
{
	_cleanup_(audit_freep) struct audit *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->fd = -1;
	pthread_mutex_init(&a->lock, NULL);
	a->path = strdup(path);
	a->fd = a->path ? open_file(path, reterr) : -ENOMEM;
	r = MIN(a->fd, 0);
	r = r ?: go_on(a, reterr);
	r = r ?: go_on_from_older(a, reterr);
	r = r ?: start(a);
	if (r < 0)
		return r;
	*ret = TAKE(a);
	return 0;
}

void audit_free(struct audit *a)
{
	if (a->has_thread) {
		pthread_mutex_lock(&a->lock);
		a->stopping = true;
		pthread_cond_signal(&a->wake);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
		pthread_cond_destroy(&a->wake);
	}
	pthread_mutex_destroy(&a->lock);
	if (a->fd >= 0)
		close(a->fd);
	free(a->path);
	free(a);
}

/* ---- lines ---- */

static void put_text(struct json_writer *w, const char *text)
{
	size_t len = strlen(text);
	char sum[DIGEST_HEX];

	json_key(w, "text");
	json_put_string_len(w, text, MIN(len, (size_t)AUDIT_TEXT_MAX));
	if (len <= AUDIT_TEXT_MAX)
		return;
	json_uint_member(w, "text_bytes", len);
	if (digest_sha256(text, len, sum) == 0)
		json_string_member(w, "text_sha256", sum);
}

static void put_name(struct json_writer *w, const char *key, const char *text)
{
	json_key(w, key);
	json_put_string_len(w, text ? text : "", text ? strnlen(text, NAME_MAX_BYTES) : 0);
}

static int put_line(struct buf *b, const struct audit *a, const struct audit_entry *e)
{
	struct json_writer w = json_writer_to_buf(b);
	char time[WHEN_UTC_MAX];
	int r;

	json_begin_object(&w);
	JSON_PUT(&w, JSON_U("seq", a->seq + 1),
		JSON_S("time", when_utc(time, (wall_time){e->wall_ns})));
	put_name(&w, "bearer_key_name", e->key_name);
	json_string_member(&w, "bearer_hash",
		e->credential ? FORMATTED(9, "%08x", (unsigned)(e->credential >> 32)) : "");
	put_name(&w, "peer", e->peer);
	put_name(&w, "action", e->action);
	if (e->text)
		put_text(&w, e->text);
	JSON_PUT(&w, JSON_I("status", e->status), JSON_U("rows", e->rows),
		JSON_U("bytes", e->bytes), JSON_U("duration_ns", e->ns));
	if (a->lost)
		json_uint_member(&w, "lost", a->lost);
	json_string_member(&w, "prev", a->head);
	json_end_object(&w);
	r = json_finish(&w);
	return r < 0 ? r : b->err;
}

static int append(struct audit *a, const struct buf *b)
{
	ssize_t n;

	if (a->is_torn && ftruncate(a->fd, (off_t)a->size) < 0)
		return -errno;
	n = write(a->fd, b->data, b->len);
	a->is_torn = n > 0 && n < (ssize_t)b->len;
	if (a->is_torn && ftruncate(a->fd, (off_t)a->size) == 0)
		a->is_torn = false;
	return n == (ssize_t)b->len ? 0 : n < 0 ? -errno : -ENOSPC;
}

int audit_write(struct audit *a, const struct audit_entry *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT(LINE_MAX_BYTES);
	char sum[DIGEST_HEX];
	int r;

	pthread_mutex_lock(&a->lock);
	r = put_line(&b, a, e);
	r = r ?: digest_sha256(b.data, b.len - 1, sum);
	r = r ?: append(a, &b);
	if (r == 0) {
		memcpy(a->head, sum, sizeof(a->head));
		a->seq++;
		a->size += b.len;
		a->lost = 0;
		a->dirty = true;
	} else {
		a->lost++;
	}
	pthread_mutex_unlock(&a->lock);
	if (r < 0)
		log_error("a line of the audit file %s is lost: %s", a->path, strerror(-r));
	return r;
}

/* reads an audit file line by line and follows its chain. See audit.h. A line of any length
 * costs no more memory than LINE_MAX_BYTES. */

struct chain {
	const char *path, *noted;
	struct audit_span *span;
	uint64_t lines;
	struct errinfo *reterr;
};

struct link { /* what a line says of its place */
	int64_t seq;
	char prev[DIGEST_HEX];
};

static int fail_at(const struct chain *c, const char *what)
{
	return errinfo_set_exit(c->reterr, EXIT_BAD_DATA, -EBADMSG,
		"%s: line %llu %s: keep the file as evidence and find out who could write to it",
		c->path, (unsigned long long)c->lines, what);
}

static bool read_members(struct json_reader *r, struct link *ret)
{
	enum json_read token;

	while ((token = json_read(r)) == JSON_READ_KEY) {
		bool is_seq = json_read_is(r, "seq"), is_prev = json_read_is(r, "prev");

		token = json_read(r);
		if (is_seq && token == JSON_READ_INT)
			ret->seq = r->i;
		else if (is_prev && token == JSON_READ_STRING)
			snprintf(ret->prev, sizeof(ret->prev), "%s", buf_str(&r->text));
		else if (!json_skip(r, token))
			return false;
	}
	return token == JSON_READ_OBJECT_END && json_read(r) == JSON_READ_END;
}

/* read_link - -EBADMSG: it is no line of ours. */
static int read_link(const char *line, size_t len, struct link *ret)
{
	struct json_reader r;
	bool ok;
	int err;

	json_reader_init(&r, line, len, LINE_MAX_BYTES);
	ok = json_read(&r) == JSON_READ_OBJECT && read_members(&r, ret) && ret->seq > 0 &&
	     strlen(ret->prev) == DIGEST_HEX - 1;
	err = r.err == -ENOMEM ? r.err : ok ? 0 : -EBADMSG;
	json_reader_done(&r);
	return err;
}

static int take_line(struct chain *c, const char *line, size_t len)
{
	struct audit_span *s = c->span;
	struct link l = {0};
	int r = read_link(line, len, &l);

	c->lines++;
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return fail_at(c, "is not a line of an audit file");
	if (!s->first) {
		s->first = (uint64_t)l.seq;
		memcpy(s->before, l.prev, sizeof(s->before));
		if (l.seq == 1 && strcmp(l.prev, AUDIT_ZEROS) != 0)
			return fail_at(c, "is not the first line that was written");
	} else if ((uint64_t)l.seq != s->last + 1) {
		return fail_at(c, "does not continue the numbering of the line before it");
	} else if (strcmp(l.prev, s->head) != 0) {
		return fail_at(
			c, "does not follow from the line before it: one of them was changed");
	}
	s->last = (uint64_t)l.seq;
	s->bytes += len + 1;
	r = digest_sha256(line, len, s->head);
	s->has_noted |= c->noted && !strcmp(c->noted, s->head);
	return r;
}

static int read_lines(struct chain *c, FILE *f)
{
	_cleanup_free_ char *line = malloc(LINE_MAX_BYTES);
	size_t len = 0;
	int r = 0, byte;

	if (!line)
		return -ENOMEM;
	while (r == 0 && (byte = getc_unlocked(f)) != EOF) {
		if (byte == '\n') {
			r = take_line(c, line, len);
			len = 0;
		} else if (len == LINE_MAX_BYTES) {
			c->lines++;
			return fail_at(c, "is longer than a line can be");
		} else {
			line[len++] = (char)byte;
		}
	}
	c->span->is_torn = len;
	return r < 0 ? r : ferror(f) ? -EIO : 0;
}

static void file_closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

int audit_verify(
	const char *path, const char *noted, struct audit_span *ret, struct errinfo *reterr)
{
	struct audit_span span = {.before = AUDIT_ZEROS, .head = AUDIT_ZEROS};
	struct chain c = {.path = path, .noted = noted, .span = &span, .reterr = reterr};
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(file_closep) FILE *f = NULL;
	int r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	f = fopen(path, "re");
	if (!f)
		return errinfo_set_exit(reterr, errno == ENOENT ? EXIT_NO_INPUT : 0, -errno,
			"cannot read the audit file %s: %s", path, strerror(errno));
	r = read_lines(&c, f);
	if (r == -EIO)
		return errinfo_set(reterr, r, "cannot read the audit file %s to its end", path);
	if (r < 0)
		return r;
	*ret = span;
	return 0;
}
