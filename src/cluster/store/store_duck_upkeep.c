/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_upkeep.c - what a store does besides: sealing in time, retention, checking parts that could
 * not be read, merging small parts. One thing a step. */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mutex.h"
#include "cluster/store/store_duck_private.h"

#define MERGE_COUNT                                                                                \
	8 /* parts of about one size make one of the next: a day of minutes is 4 levels */
#define MERGE_SIZES       4 /* the largest of them has at most so many times the bytes of the smallest */
#define MERGE_LEAST_BYTES (1u << 20) /* what does not fit into memory then is another fault */
#define CLOCK_SAVE_NS     ((int64_t)RETENTION_CLOCK_SLACK_NS / 2) /* a restart is within the slack */
#define MERGE_SPAN_NS                                                                              \
	(24 * 3600 * (int64_t)NS_PER_S) /* of the times that the rows of one came in */

/* ---- retention ---- */

/* The part that is to go: too old, or the oldest if all are too large. */
static struct part *find_expired(struct store_duck *s, int64_t now_ns)
{
	struct part *oldest = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->parts.count; i++) {
		struct part *p = s->parts.items[i];

		if (p->gone)
			continue;
		bytes += p->bytes;
		if (!oldest || p->received_ns < oldest->received_ns)
			oldest = p;
	}
	if (!oldest)
		return NULL;
	if (s->settings.retention_ns &&
		oldest->received_ns < now_ns - (int64_t)s->settings.retention_ns)
		return oldest;
	return s->settings.bytes_max && bytes > s->settings.bytes_max ? shares_find_over(s) : NULL;
}

static int expire(struct store_duck *s, int64_t now_ns, struct errinfo *reterr)
{
	struct part *p = find_expired(s, now_ns);
	struct change change = {.remove = &p, .remove_count = 1};
	int r;

	if (!p && s->settings.retention_ns)
		return missing_expire(s, now_ns - (int64_t)s->settings.retention_ns, reterr);
	if (!p)
		return 0;
	change.dropped_rows = part_rows(p);
	r = set_change(s, &change, reterr);
	return r < 0 ? r : 1;
}

/* ---- merging ---- */

struct merge {
	struct part *parts[MERGE_COUNT];
	size_t count;
	uint64_t bytes, least, most, rows;
	int64_t first_ns, last_ns;
};

static bool merge_may_take(const struct store_duck *s, const struct merge *m, const struct part *p)
{
	uint64_t least = MIN(m->least, p->bytes), most = MAX(m->most, p->bytes);
	int64_t span = MERGE_SPAN_NS;

	if (s->settings.retention_ns)
		span = MIN(span, (int64_t)s->settings.retention_ns / 8);
	return m->bytes + p->bytes <= s->settings.part_bytes_max && most <= least * MERGE_SIZES &&
	       MAX(m->last_ns, p->received_ns) - MIN(m->first_ns, p->received_ns) <= span;
}

/* The next parts of the cluster of the @from'th, one after the other, that are of one size. */
static bool find_run(struct store_duck *s, size_t from, struct merge *m)
{
	const struct part *first = s->parts.items[from];

	*m = (struct merge){0};
	if (first->gone || first->suspect)
		return false;
	for (size_t i = from; i < s->parts.count && m->count < MERGE_COUNT; i++) {
		struct part *p = s->parts.items[i];

		if (p->gone || strcmp(p->cluster, first->cluster) != 0)
			continue;
		if (p->suspect || (m->count && !merge_may_take(s, m, p)))
			return false;
		m->least = m->count ? MIN(m->least, p->bytes) : p->bytes;
		m->most = MAX(m->most, p->bytes);
		m->first_ns = m->count ? MIN(m->first_ns, p->received_ns) : p->received_ns;
		m->last_ns = m->count ? MAX(m->last_ns, p->received_ns) : p->received_ns;
		m->bytes += p->bytes;
		m->rows += part_rows(p);
		m->parts[m->count++] = p;
	}
	return m->count == MERGE_COUNT && m->bytes <= s->settings.part_bytes_max;
}

static int write_merged(struct store_duck *s, struct merge *m, struct errinfo *reterr)
{
	char names[MERGE_COUNT][STORE_ALIAS_MAX];
	const char *sources[MERGE_COUNT];
	struct parts add = {0};
	struct change change = {.add = &add, .remove = m->parts, .remove_count = m->count};
	struct part *p;
	int r;

	for (size_t i = 0; i < m->count; i++)
		sources[i] = part_alias(m->parts[i], names[i]);
	r = part_write(s, m->parts[0]->cluster, sources, m->count, m->rows, false, &p, reterr);
	if (r < 0)
		return r;
	r = parts_add(&add, p);
	if (r < 0) {
		part_free(p);
		return r;
	}
	p->first = m->parts[0]->first; /* the set is in the order of the journal */
	p->last = m->parts[m->count - 1]->last;
	if (part_rows(p) != m->rows)
		r = errinfo_set(reterr, -EBADMSG,
			"merged parts have %" PRIu64 " rows and not %" PRIu64, part_rows(p),
			m->rows);
	r = r ?: part_attach(s, s->write, p, reterr);
	r = r ?: set_change(s, &change, reterr);
	parts_done(&add);
	return r;
}

static int merge(struct store_duck *s, struct errinfo *reterr)
{
	struct merge m;
	int r;

	for (size_t i = 0; i < s->parts.count; i++)
		if (find_run(s, i, &m)) {
			r = write_merged(s, &m, reterr);
			if (r == -ENOMEM && m.bytes > MERGE_LEAST_BYTES) {
				/* Rows that do not compress: smaller parts will do. */
				s->settings.part_bytes_max = m.bytes / 2;
				return 0;
			}
			return r < 0 ? r : 1;
		}
	return 0;
}

/* ---- damage ---- */

static struct part *next_suspect(struct store_duck *s)
{
	struct part *p = NULL;

	MUTEX_HELD(&s->set_mutex);
	for (size_t i = 0; !p && i < s->parts.count; i++)
		if (s->parts.items[i]->suspect && !s->parts.items[i]->gone)
			p = s->parts.items[i];
	return p;
}

static int check_suspect(struct store_duck *s, struct errinfo *reterr)
{
	struct part *p = next_suspect(s);
	char why[PART_WHY_MAX];
	int r;

	if (!p)
		return 0;
	r = part_check(s, p, why);
	if (r == 1)
		r = part_quarantine(s, p, why, reterr);
	else if (r < 0)
		return errinfo_set(reterr, r,
			"part %" PRIu64 " of cluster %.60s cannot be read: %s", p->id, p->cluster,
			strerror(-r));
	if (r < 0)
		return r;
	MUTEX_HELD(&s->set_mutex);
	p->suspect = false;
	p->scrubbed = mono_now();
	return 1;
}

void suspects_check(struct store_duck *s)
{
	struct errinfo e = {0};

	MUTEX_HELD(&s->write_mutex);
	if (instance_use(s, NULL) == 0) {
		while (check_suspect(s, &e) > 0)
			;
		set_sweep(s);
		instance_leave(s);
	}
}

/* ---- a step ---- */

/* What is believed of the time is on disk, so that a jump over a restart is one. */
static int keep_clock(struct store_duck *s, int64_t *now_ns, struct errinfo *reterr)
{
	struct retention_clock next = s->clock;

	*now_ns = retention_clock_read(&next, *now_ns, mono_now().ns);
	pthread_mutex_lock(&s->set_mutex);
	s->clock = next;
	pthread_mutex_unlock(&s->set_mutex);
	if (s->clock.now_ns - s->clock_saved_ns < CLOCK_SAVE_NS)
		return 0;
	s->clock_saved_ns = s->clock.now_ns;
	return set_change(s, &(struct change){0}, reterr);
}

static int step(struct store_duck *s, int64_t now_ns, struct errinfo *reterr)
{
	int r = check_suspect(s, reterr);

	r = r ?: keep_clock(s, &now_ns, reterr);
	r = r ?: expire(s, now_ns, reterr);
	r = r ?: merge(s, reterr);
	set_sweep(s);
	return r;
}

int upkeep_step(struct store *store, int64_t now_ns, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	int r = 0;

	MUTEX_HELD(&s->write_mutex);
	if (seal_is_due(s))
		r = seal_now(s, reterr);
	r = r ?: instance_use(s, reterr);
	if (r == 0) {
		r = step(s, now_ns, reterr);
		instance_leave(s);
	}
	return r;
}

/* Backups: copies of parts and manifest with the sums of all, made while the store is
 * in use, also by another process; what is copied is checked, and a folder has its name only when it is complete. */

#define COPY_BYTES (1u << 20)
#define SUMS_MAX   (64u << 20)
#define SUMS_NAME  "SHA256SUMS" /* as sha256sum -c reads it */
#define TRIES      5            /* a part that is named may be gone before it is copied */

struct copying {
	const char *from, *to;
	char partial[STORE_PATH_MAX]; /* the name of @to until it is complete */
	struct manifest manifest;
	bool links; /* the same files under a second name, where that can be */
	struct buf sums;
};

static int copy_bytes(int from, int to)
{
	_cleanup_free_ char *data = malloc(COPY_BYTES);
	ssize_t n;

	if (!data)
		return -ENOMEM;
	while ((n = read(from, data, COPY_BYTES)) != 0) {
		if (n < 0)
			return -errno;
		for (ssize_t done = 0, m; done < n; done += m) {
			m = write(to, data + done, (size_t)(n - done));
			if (m < 0)
				return -errno;
		}
	}
	return fsync(to) < 0 ? -errno : 0;
}

int store_copy_file(const char *from, const char *to)
{
	_cleanup_fd_ int in = file_open_regular(from);
	_cleanup_fd_ int out = -1;

	if (in < 0)
		return in;
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return out < 0 ? -errno : copy_bytes(in, out);
}

static int copy_part(struct copying *c, const struct part *p, struct errinfo *reterr)
{
	char from[STORE_PATH_MAX], to[STORE_PATH_MAX + 128], sum[DIGEST_HEX];
	int r;

	snprintf(to, sizeof(to), "%s/%s", c->partial, p->folder);
	if (mkdir(to, 0700) < 0 && errno != EEXIST)
		return errinfo_set(reterr, -errno, "%s cannot be made: %s", to, strerror(errno));
	snprintf(from, sizeof(from), "%s/%s/%06" PRIu64 ".duckdb", c->from, p->folder, p->id);
	snprintf(to, sizeof(to), "%s/%s/%06" PRIu64 ".duckdb", c->partial, p->folder, p->id);
	if (c->links && link(from, to) == 0)
		return 0;
	r = store_copy_file(from, to);
	r = r ?: digest_sha256_file(to, sum);
	if (r < 0)
		return errinfo_set(
			reterr, r, "%s cannot be copied to %s: %s", from, to, strerror(-r));
	if (strcmp(sum, p->sha256) != 0)
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG,
			"%s is damaged: its SHA-256 differs from the one in the manifest", from);
	buf_printf(&c->sums, "%s  %s/%06" PRIu64 ".duckdb\n", sum, p->folder, p->id);
	to[strlen(c->partial) + 1 + strlen(p->folder)] = 0;
	return file_sync(to);
}

static int write_sums(struct copying *c, struct errinfo *reterr)
{
	char path[STORE_PATH_MAX + 32], sum[DIGEST_HEX];
	int r;

	snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_NAME, c->partial);
	r = digest_sha256_file(path, sum);
	if (r == 0) {
		buf_printf(&c->sums, "%s  " STORE_MANIFEST_NAME "\n", sum);
		snprintf(path, sizeof(path), "%s/" SUMS_NAME, c->partial);
		r = c->sums.err ? c->sums.err
				: file_write_atomic(path, c->sums.data, c->sums.len, 0600);
	}
	return r == 0 ? 0 : errinfo_set(reterr, r, "%s cannot be written: %s", path, strerror(-r));
}

static int copy_all(struct copying *c, struct errinfo *reterr)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->manifest.parts.count; i++)
		r = copy_part(c, c->manifest.parts.items[i], reterr);
	r = r ?: manifest_write(c->partial, &c->manifest, reterr);
	r = r ?: write_sums(c, reterr);
	if (r == 0 && rename(c->partial, c->to) < 0)
		r = errinfo_set(
			reterr, -errno, "%s cannot be renamed: %s", c->partial, strerror(errno));
	return r;
}

static int copy_store(struct copying *c, struct errinfo *reterr)
{
	int r;

	if (access(c->to, F_OK) == 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s exists already: name a new folder", c->to);
	if (snprintf(c->partial, sizeof(c->partial), "%s.partial", c->to) >=
		(int)sizeof(c->partial))
		return errinfo_set(reterr, -ENAMETOOLONG, "the name %.100s is too long", c->to);
	if (mkdir(c->partial, 0700) < 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -errno, "%s cannot be made: %s%s",
			c->partial, strerror(errno),
			errno == EEXIST ? ": remove it, unless a copy is being made there now"
					: "");
	c->sums = BUF_INIT(SUMS_MAX);
	r = copy_all(c, reterr);
	buf_done(&c->sums);
	if (r < 0) {
		char path[STORE_PATH_MAX + 128];

		/* What was copied so far of a copy that failed. */
		for (size_t i = 0; i < c->manifest.parts.count; i++) {
			const struct part *p = c->manifest.parts.items[i];

			snprintf(path, sizeof(path), "%s/%s/%06" PRIu64 ".duckdb", c->partial,
				p->folder, p->id);
			unlink(path);
			snprintf(path, sizeof(path), "%s/%s", c->partial, p->folder);
			rmdir(path); /* the last one of it succeeds */
		}
		snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_NAME, c->partial);
		unlink(path);
		snprintf(path, sizeof(path), "%s/" STORE_MANIFEST_COPY, c->partial);
		unlink(path);
		rmdir(c->partial);
	}
	return r;
}

/* Parts are never written again, and the manifest is replaced as a whole: what it names is there, or was merged or
 * dropped since, and the next manifest says so. So whoever has the store open does not matter. */
static int copy_folder(struct copying *c, struct errinfo *reterr)
{
	int r = -ENOENT;

	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++) {
		r = manifest_read(c->from, &c->manifest, reterr);
		if (r == -ENOENT)
			return errinfo_set(reterr, r, "there is no store in %s", c->from);
		r = r ?: copy_store(c, reterr);
		manifest_done(&c->manifest);
		c->manifest = (struct manifest){0};
	}
	return r;
}

int store_duck_backup(const char *from, const char *to, struct errinfo *reterr)
{
	return copy_folder(&(struct copying){.from = from, .to = to}, reterr);
}

int store_duck_link(const char *from, const char *to, struct errinfo *reterr)
{
	return copy_folder(&(struct copying){.from = from, .to = to, .links = true}, reterr);
}

static int remove_one(const char *path, const struct stat *st _unused_, int type _unused_,
	struct FTW *walk _unused_)
{
	return remove(path);
}

void store_duck_unlink(const char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int store_duck_restore(const char *from, const char *to, struct errinfo *reterr)
{
	struct copying c = {.from = from, .to = to};
	struct store_report none = {0};
	int r = store_duck_verify(from, &none, reterr);

	if (r == -EBADMSG && none.findings && none.findings == none.known)
		r = 0; /* what was missing then is missing in it */
	r = r ?: manifest_read(from, &c.manifest, reterr);
	if (r < 0)
		return r;
	manifest_new_id(c.manifest.id); /* it goes another way than the store that it is of */
	r = copy_store(&c, reterr);
	manifest_done(&c.manifest);
	return r;
}
