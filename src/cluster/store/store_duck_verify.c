/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_verify.c - whether a folder holds what its manifest says: sums, rows, clusters. All that is
 * wrong is told, not only the first. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/text.h"
#include "cluster/store/store_duck_private.h"

#define SUMS_MAX (64u << 20)

/* Counts it, too. */
static void report_tell(struct store_report *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->findings++;
	if (r->tell)
		r->tell(r->arg, text);
}

void report_missing(struct store_report *r, const struct part *p, const char *what)
{
	char since[WHEN_UTC_MAX] = "?", until[WHEN_UTC_MAX] = "?";
	int64_t first = 0, last = 0;

	for (int t = 0; t < TABLE_COUNT; t++) {
		if (t == TABLE_METRICS || !p->rows[t])
			continue;
		first = first ? MIN(first, p->first_ns[t]) : p->first_ns[t];
		last = MAX(last, p->last_ns[t]);
	}
	when_utc(since, (wall_time){first});
	when_utc(until, (wall_time){last});
	report_tell(r, "%s: %s of cluster %.60s from %s to %s, in %s/%06" PRIu64 ".duckdb%s%s",
		what, TEXT_PLURAL(part_rows(p), "rows"), p->cluster, since, until, p->folder, p->id,
		*p->why ? ": " : "", p->why);
}

void report_loss(struct store_report *r, const struct store_loss *l)
{
	char since[WHEN_UTC_MAX] = "?", until[WHEN_UTC_MAX] = "?";

	if (l->since_ns)
		when_utc(since, (wall_time){l->since_ns});
	if (l->until_ns)
		when_utc(until, (wall_time){l->until_ns});
	report_tell(r,
		"missing: %s that came in between %s and %s, journal entries %" PRIu64
		" to %" PRIu64 ": they were damaged or gone before their rows were sealed",
		TEXT_PLURAL(l->last - l->first + 1, "requests"), since, until, l->first, l->last);
}

/* The list of a backup, but for the parts, whose sums the manifest has; a store that is in use has none. */
static int check_sums(const char *folder, struct store_report *report, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(SUMS_MAX);
	char path[STORE_PATH_MAX + 512], sum[DIGEST_HEX];
	char *line, *rest;
	int r;

	snprintf(path, sizeof(path), "%s/SHA256SUMS", folder);
	r = file_read(path, SUMS_MAX, &text);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return errinfo_set(reterr, r, "%s cannot be read: %s", path, strerror(-r));
	rest = text.data;
	while (rest && (line = strsep(&rest, "\n")) && *line) {
		if (strlen(line) < DIGEST_HEX + 2 || strstr(line, "..")) {
			report_tell(report, "damaged: %s", path);
			break;
		}
		if (strstr(line, ".duckdb"))
			continue;
		line[DIGEST_HEX - 1] = 0;
		snprintf(path, sizeof(path), "%s/%.500s", folder, line + DIGEST_HEX + 1);
		if (digest_sha256_file(path, sum) < 0 || strcmp(sum, line) != 0)
			report_tell(report,
				"damaged: %s: its SHA-256 differs from the recorded one", path);
	}
	return 0;
}

static int64_t first_number(struct duck_connection *c, const char *text, struct errinfo *reterr)
{
	static const struct duck_limits limits = {.rows_max = 1, .bytes_max = 4096};
	struct sql_table t;
	int64_t n;
	int r = duck_select(c, text, &limits, &t, reterr);

	if (r < 0)
		return r;
	n = sql_table_cell(&t, 0, 0)->i;
	sql_table_done(&t);
	return n;
}

/* Every table has its rows, and all are of the part's cluster. */
static int check_tables(struct duck_connection *c, const struct part *p, struct errinfo *reterr)
{
	for (int t = 0; t < TABLE_COUNT; t++) {
		_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
		char alias[STORE_ALIAS_MAX];
		int64_t n;

		buf_printf(&text,
			"SELECT count(*) FROM %s.%s WHERE cluster_id = ", part_alias(p, alias),
			store_tables[t].name);
		duck_quote(&text, p->cluster);
		buf_printf(&text, " AND (SELECT count(*) FROM %s.%s) = %" PRIu64, alias,
			store_tables[t].name, p->rows[t]);
		n = first_number(c, buf_str(&text), reterr);
		if (n < 0)
			return (int)n;
		if ((uint64_t)n != p->rows[t])
			return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
				"part %" PRIu64
				" of cluster %.60s has other %s than the manifest says",
				p->id, p->cluster, store_tables[t].name);
	}
	return 0;
}

/* 0, also if it was told; else it cannot be looked at. */
static int check_part(struct store_duck *s, struct duck_connection *c, const struct part *p,
	struct store_report *report, struct errinfo *reterr)
{
	char text[STORE_ALIAS_MAX + 16], alias[STORE_ALIAS_MAX];
	struct part damaged = *p;
	struct errinfo why = {0};
	int r = part_check(s, p, damaged.why);

	if (r == 1) {
		report_missing(report, &damaged, "damaged");
		return 0;
	}
	r = r ?: part_attach(s, c, p, reterr);
	r = r ?: parts_strange(c, alias, reterr);
	if (r < 0)
		return r;
	if (r == 1) {
		snprintf(damaged.why, sizeof(damaged.why), PART_STRANGE);
		report_missing(report, &damaged, "damaged");
	} else if (check_tables(c, p, &why) < 0) {
		report_tell(report, "damaged: %s", why.text);
	}
	snprintf(text, sizeof(text), "DETACH %s", part_alias(p, alias));
	duck_exec(c, text, NULL);
	return 0;
}

static int check_parts(struct store_duck *s, struct store_report *report, struct errinfo *reterr)
{
	_cleanup_(duck_closep) struct duck *d = NULL;
	_cleanup_(duck_disconnectp) struct duck_connection *c = NULL;
	static const struct duck_setting settings[] = {{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"}, {NULL, NULL}};
	int r = duck_open(NULL, settings, &d, reterr);

	r = r ?: duck_connect(d, &c, reterr);
	for (size_t i = 0; r == 0 && i < s->parts.count; i++)
		r = check_part(s, c, s->parts.items[i], report, reterr);
	return r;
}

static void tell_manifest(const char *folder, const struct manifest *m, struct store_report *report)
{
	if (m->was_copy)
		report_tell(report,
			"damaged: %s/" STORE_MANIFEST_NAME
			": its copy is intact, and the next start uses it",
			folder);
	if (m->copy_is_damaged)
		report_tell(report,
			"damaged: %s/" STORE_MANIFEST_COPY ": the next start writes it again",
			folder);
	report->known += m->missing.count + m->losses.count;
	for (size_t i = 0; i < m->missing.count; i++)
		report_missing(report, m->missing.items[i], "missing");
	for (size_t i = 0; i < m->losses.count; i++)
		report_loss(report, &m->losses.items[i]);
}

/* A backup has no lock, and may lie where nothing can be written. */
static int lock_if_store(const char *folder, int *ret_fd, struct errinfo *reterr)
{
	int fd;

	if (access(FORMATTED(STORE_PATH_MAX, "%s/lock", folder), F_OK) < 0)
		return 0;
	fd = store_lock(folder, reterr);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int store_duck_verify(const char *folder, struct store_report *report, struct errinfo *reterr)
{
	_cleanup_(manifest_done) struct manifest m = {0};
	_cleanup_fd_ int lock = -1;
	_cleanup_free_ char *name = strdup(folder);
	struct store_duck s = {.folder = name};
	uint64_t before = report->findings;
	int r;

	if (!name)
		return -ENOMEM;
	r = lock_if_store(folder, &lock, reterr);
	r = r ?: check_sums(folder, report, reterr);
	r = r ?: manifest_read(folder, &m, reterr);
	if (r == -ENOENT)
		return errinfo_set_exit(
			reterr, EXIT_NO_INPUT, r, "%s is not a store: it has no manifest", folder);
	if (r < 0)
		return r;
	report->durable = m.durable;
	tell_manifest(folder, &m, report);
	s.parts = m.parts;
	r = check_parts(&s, report, reterr);
	if (r == 0 && report->findings > before)
		r = errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG, "%s is not intact", folder);
	return r;
}

/* a thread that reads every part again, slowly, and compares its sum: what a disk has
 * changed is found before somebody asks for it.
 * 
 * Each part soon after the start and then once a day, at most scrub_bytes_s. What does not fit its sum is a
 * suspect: upkeep looks again and sets it aside. Parts that are read are not removed meanwhile. */

#define EVERY_NS (24 * 3600 * NS_PER_S)
#define IDLE_NS  NS_PER_S /* between two looks for a part that is due */

struct scrub {
	struct store_duck *store;
	pthread_mutex_t mutex;
	pthread_cond_t ends;
	pthread_t thread;
	bool started, end;
	/* of the part that is read: */
	int fd;
	off_t at;
};

/* True: it is time to end. */
static bool scrub_wait(struct scrub *x, uint64_t ns)
{
	uint64_t until = mono_now().ns + ns;
	struct timespec t = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};
	bool end;
	int r = 0;

	MUTEX_HELD(&x->mutex);
	while (!x->end && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&x->ends, &x->mutex, &t);
	end = x->end;
	return end;
}

/* The one that was read longest ago, if that is long enough. */
static struct part *part_begin(struct store_duck *s)
{
	uint64_t now = mono_now().ns;
	struct part *found = NULL;

	MUTEX_HELD(&s->set_mutex);
	for (size_t i = 0; i < s->parts.count; i++) {
		struct part *p = s->parts.items[i];
		bool is_due = !p->scrubbed.ns || now - p->scrubbed.ns >= EVERY_NS;

		if (!p->gone && !p->suspect && is_due &&
			(!found || p->scrubbed.ns < found->scrubbed.ns))
			found = p;
	}
	if (found)
		found->users++;
	return found;
}

/* What was read is not left in the page cache: the next time it comes from the disk again, and questions keep
 * what they have there. */
static int pace(void *arg, size_t bytes)
{
	struct scrub *x = arg;
	struct store_duck *s = x->store;

	posix_fadvise(x->fd, x->at, (off_t)bytes, POSIX_FADV_DONTNEED);
	x->at += (off_t)bytes;
	pthread_mutex_lock(&s->set_mutex);
	s->checked_bytes += bytes;
	pthread_mutex_unlock(&s->set_mutex);
	return scrub_wait(x, bytes * NS_PER_S / s->settings.scrub_bytes_s) ? -ECANCELED : 0;
}

static void *scrub_run(void *arg)
{
	struct scrub *x = arg;

	while (!scrub_wait(x, 0)) {
		struct part *p = part_begin(x->store);

		if (p) {
			char path[STORE_PATH_MAX], sum[DIGEST_HEX] = "";
			int r = part_path(x->store, p, "", path, NULL);

			if (r == 0) {
				x->at = 0;
				x->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
				r = x->fd < 0 ? -errno : digest_sha256_fd(x->fd, pace, x, sum);
				if (x->fd >= 0)
					close(x->fd);
			}
			pthread_mutex_lock(&x->store->set_mutex);
			if (r == 0 && strcmp(sum, p->sha256) == 0)
				p->scrubbed = mono_now();
			else if (r != -ECANCELED)
				p->suspect = true;
			p->users--;
			pthread_mutex_unlock(&x->store->set_mutex);
		} else {
			scrub_wait(x, IDLE_NS);
		}
	}
	return NULL;
}

int scrub_new(struct store_duck *s)
{
	struct scrub *x = calloc(1, sizeof(*x));
	pthread_condattr_t monotonic;

	if (!x)
		return -ENOMEM;
	x->store = s;
	pthread_mutex_init(&x->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&x->ends, &monotonic);
	pthread_condattr_destroy(&monotonic);
	s->scrub = x;
	x->started = pthread_create(&x->thread, NULL, scrub_run, x) == 0;
	return x->started ? 0 : -EAGAIN;
}

void scrub_free(struct scrub *x)
{
	pthread_mutex_lock(&x->mutex);
	x->end = true;
	pthread_cond_signal(&x->ends);
	pthread_mutex_unlock(&x->mutex);
	if (x->started)
		pthread_join(x->thread, NULL);
	pthread_cond_destroy(&x->ends);
	pthread_mutex_destroy(&x->mutex);
	free(x);
}
