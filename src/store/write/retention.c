/* SPDX-License-Identifier: Apache-2.0 */
/* retention.c - see retention.h.
 *
 * Rolling over: the session in the old file gets its end and its books, the file is checkpointed,
 * closed and renamed, a new one is made under the old name and begins a session of the same
 * identity. Events wait in the writer's queue meanwhile (some 10 ms). Whatever fails on the way,
 * the store goes on in one of the two files, in a new session, and it is tried again later. */
#include "store/write/retention.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "base/search.h"

#define BUSY_RETRY_NS   NS_PER_S
#define FAILED_RETRY_NS (30 * NS_PER_S)
#define LOOK_NS         NS_PER_S

int retention_init(struct retention *u, struct nodedb *db, int64_t session,
	const struct retention_config *config, struct errinfo *reterr)
{
	*u = (struct retention){.db = db, .config = *config};
	if (config->session)
		u->session = *config->session;
	u->session.id = session;
	if (!config->max_bytes)
		return 0;
	return prune_new(db, session, config->max_bytes, &u->prune, reterr);
}

void retention_done(struct retention *u)
{
	if (u->prune)
		prune_free(TAKE(u->prune));
}

int64_t retention_session(const struct retention *u)
{
	return u->session_due ? 0 : u->session.id;
}

static uint64_t rest_of(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

void retention_books(
	const struct retention *u, const struct accounting *run, struct accounting *ret)
{
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		const struct account *all = &run->source[s], *before = &u->rolled.source[s];
		struct account *a = &ret->source[s];

		*a = (struct account){
			.hits = rest_of(all->hits, before->hits),
			.stored = rest_of(all->stored, before->stored),
			.aggregated = rest_of(all->aggregated, before->aggregated),
		};
		for (int i = 0; i < LOSS_COUNT; i++)
			a->lost[i] = rest_of(all->lost[i], before->lost[i]);
		/* Aggregates that could not be written turn from aggregated into lost, maybe after
		 * a rolled file has counted them: the file still balances. */
		if (account_balances(all))
			a->hits = a->stored + a->aggregated + account_lost(a);
	}
}

/* The books up to this moment, as if nothing were under way: what is not stored yet belongs to the
 * next file. */
static void close_books(const struct accounting *books, struct accounting *ret)
{
	*ret = *books;
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		struct account *a = &ret->source[s];

		a->hits = a->stored + a->aggregated + account_lost(a);
	}
}

static int begin_session(struct retention *u, wall_time now, struct errinfo *reterr)
{
	struct session next = u->session;
	int r;

	u->session_due = true;
	next.started = now;
	r = nodedb_batch_begin(u->db, reterr);
	if (r < 0)
		return r;
	r = nodedb_session_begin(u->db, &next, reterr);
	if (r < 0) {
		nodedb_batch_rollback(u->db);
		return r;
	}
	r = nodedb_batch_commit(u->db, reterr);
	if (r < 0)
		return r;
	u->session.id = next.id;
	u->session_due = false;
	u->generation++;
	return 0;
}

int retention_end(
	struct retention *u, const struct accounting *run, wall_time now, struct errinfo *reterr)
{
	struct accounting part = {0};
	int r = nodedb_batch_begin(u->db, reterr);

	if (r < 0)
		return r;
	if (run) {
		retention_books(u, run, &part);
		r = nodedb_put_accounting(u->db, u->session.id, &part, reterr);
	}
	r = r ?: nodedb_session_end(u->db, u->session.id, now, reterr);
	if (r < 0) {
		nodedb_batch_rollback(u->db);
		return r;
	}
	return nodedb_batch_commit(u->db, reterr);
}

static int roll(struct retention *u, const struct accounting *books, struct errinfo *reterr)
{
	struct accounting run;
	wall_time now = wall_now();
	char rolled[PATH_MAX];
	uint32_t random;
	int r, q;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	r = rollover_name(nodedb_path(u->db), now, random, rolled, sizeof(rolled));
	if (r < 0)
		return r;
	close_books(books, &run);
	r = retention_end(u, &run, now, reterr);
	if (r < 0)
		return r;
	u->rolled = run;
	r = nodedb_roll(u->db, rolled, reterr);
	q = begin_session(u, now, r < 0 ? NULL : reterr);
	if (r < 0 || q < 0)
		return r < 0 ? r : q;
	q = rollover_trim(nodedb_path(u->db), u->config.rollover_keep, reterr);
	return MIN(q, 0);
}

/* Somebody removed or renamed the file, which goes on filling the disk where nobody finds it: it gets its end, and a
 * new one its name. */
static int renew(struct retention *u, const struct accounting *books, struct errinfo *reterr)
{
	wall_time now = wall_now();
	struct accounting run;
	int r;

	log_warning(
		"%s was removed or renamed while it was written: recording continues in a new file of that name",
		nodedb_path(u->db));
	close_books(books, &run);
	(void)retention_end(u, &run, now, NULL);
	u->rolled = run;
	if (u->prune)
		prune_free(TAKE(u->prune));
	u->session_due = true;
	r = nodedb_renew(u->db, reterr);
	r = r ?: begin_session(u, now, reterr);
	if (r == 0 && u->config.max_bytes)
		r = prune_new(u->db, u->session.id, u->config.max_bytes, &u->prune, reterr);
	return r;
}

static int renew_if_gone(
	struct retention *u, const struct accounting *books, struct errinfo *reterr)
{
	uint64_t now = mono_now().ns;
	int r;

	if (now < u->look_ns)
		return 0;
	u->look_ns = now + LOOK_NS;
	r = nodedb_has_name(u->db);
	if (r == -EEXIST && !u->said_replaced)
		log_error(
			"%s is another file now: what is recorded goes to the one that was removed or renamed. Stop the trace and start it again",
			nodedb_path(u->db));
	u->said_replaced = r == -EEXIST;
	if (r)
		return 0;
	r = nodedb_renew_ready(u->db, reterr); /* a reader's snapshot keeps rows in the log */
	return r > 0 ? renew(u, books, reterr) : r;
}

static int roll_if_due(struct retention *u, const struct accounting *books, struct errinfo *reterr)
{
	uint64_t now = mono_now().ns;
	int r;

	if (u->hold || now < u->retry_ns || nodedb_size(u->db) < u->config.rollover_bytes)
		return 0;
	r = nodedb_roll_ready(u->db, reterr);
	if (r > 0)
		r = nodedb_size(u->db) < u->config.rollover_bytes ? 0 : roll(u, books, reterr);
	else if (r == 0)
		r = -EAGAIN;
	if (r == -EAGAIN) {
		u->retry_ns = now + BUSY_RETRY_NS;
		if (!u->said_busy)
			log_warning(
				"%s is in use by a reader: rollover postponed", nodedb_path(u->db));
		u->said_busy = true;
		return 0;
	}
	if (r < 0)
		u->retry_ns = now + FAILED_RETRY_NS;
	return r;
}

int retention_step(struct retention *u, size_t rows_max, const struct accounting *books,
	struct errinfo *reterr)
{
	int r = renew_if_gone(u, books, reterr);

	if (r < 0)
		return r;
	if (u->session_due && mono_now().ns >= u->retry_ns) {
		r = begin_session(u, wall_now(), reterr);
		if (r < 0)
			u->retry_ns = mono_now().ns + BUSY_RETRY_NS;
	}
	if (r < 0 || u->session_due)
		return r;
	if (u->config.rollover_bytes)
		return roll_if_due(u, books, reterr);
	if (!u->prune || mono_now().ns < u->retry_ns)
		return 0;
	r = prune_step(u->prune, rows_max, reterr);
	if (r < 0)
		u->retry_ns = mono_now().ns + BUSY_RETRY_NS;
	if (prune_swept(u->prune))
		u->generation++;
	return r;
}

/* Files are deleted by name, so a name must match to the letter, be a
 * plain file in the database's own folder, and is removed relative to that folder's descriptor. */

/* 0 a digit, x a hexadecimal one, the rest stands for itself. */
#define PATTERN   ".00000000T000000.000000000Z-xxxxxxxx.db"
#define FILES_MAX 4096 /* rolled files looked at in one folder */

/* Length of the base name of @path without ".db". */
static size_t stem_of(const char *path, const char **ret_base)
{
	const char *base = basename(path);
	size_t len = strlen(base);

	*ret_base = base;
	return len > 3 && !strcmp(base + len - 3, ".db") ? len - 3 : len;
}

int rollover_name(const char *path, wall_time now, uint32_t random, char *out, size_t size)
{
	time_t seconds = (time_t)(now.ns / (int64_t)NS_PER_S);
	const char *base;
	size_t stem = stem_of(path, &base);
	char day[32];
	struct tm tm;
	int n;

	gmtime_r(&seconds, &tm);
	strftime(day, sizeof(day), "%Y%m%dT%H%M%S", &tm);
	n = snprintf(out, size, "%.*s.%s.%09lldZ-%08x.db", (int)(base - path + (ptrdiff_t)stem),
		path, day, (long long)(now.ns % (int64_t)NS_PER_S), random);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

bool rollover_is_name(const char *path, const char *name)
{
	const char *base, *want;
	size_t stem = stem_of(path, &base);

	if (strncmp(name, base, stem) != 0)
		return false;
	for (want = PATTERN, name += stem; *want; want++, name++) {
		const char *set = *want == '0'   ? "0123456789"
				  : *want == 'x' ? "0123456789abcdef"
						 : NULL;

		if (!*name || (set ? !strchr(set, *name) : *want != *name))
			return false;
	}
	return !*name;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The rolled files in the folder, oldest first. */
static int list_names(DIR *d, const char *path, char **names)
{
	struct dirent *e;
	struct stat st;
	int n = 0;

	while (n < FILES_MAX && (e = readdir(d))) {
		if (!rollover_is_name(path, e->d_name) ||
			fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		names[n] = strdup(e->d_name);
		if (!names[n])
			return n;
		n++;
	}
	SORT(names, (size_t)n, compare_names);
	return n;
}

static int remove_file(int folder, const char *name, struct errinfo *reterr)
{
	static const char *const suffixes[] = {
		"-wal", "-shm", ""}; /* what a reader may have left */
	char full[NAME_MAX + 8];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(full, sizeof(full), "%s%s", name, suffixes[i]);
		if (unlinkat(folder, full, 0) < 0 && errno != ENOENT) {
			int err = errno;

			return errinfo_set(
				reterr, -err, "cannot delete %s: %s", full, strerror(err));
		}
	}
	return 0;
}

/* The folder of @path, open, and the rolled files in it. */
static int open_folder(
	const char *path, char **names, DIR **ret_folder, int *ret_count, struct errinfo *reterr)
{
	char folder[PATH_MAX];
	const char *base;
	DIR *d;

	(void)stem_of(path, &base);
	snprintf(folder, sizeof(folder), "%.*s", base == path ? 1 : (int)(base - path),
		base == path ? "." : path);
	d = opendir(folder);
	if (!d)
		return errinfo_set(reterr, -errno, "%s: %s", folder, strerror(errno));
	*ret_folder = d;
	*ret_count = list_names(d, path, names);
	return 0;
}

void rollover_list_done(struct rollover_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->paths[i]);
	free(l->paths);
	*l = (struct rollover_list){0};
}

int rollover_list(const char *path, struct rollover_list *ret, struct errinfo *reterr)
{
	_cleanup_free_ char **names = calloc(FILES_MAX, sizeof(*names));
	_cleanup_(rollover_list_done) struct rollover_list l = {0};
	const char *base;
	DIR *d = NULL;
	int n = 0, r = names ? open_folder(path, names, &d, &n, reterr) : -ENOMEM;

	if (r < 0)
		return r;
	closedir(d);
	(void)stem_of(path, &base);
	l.paths = calloc((size_t)MAX(n, 1), sizeof(*l.paths));
	for (int i = 0; i < n; i++) {
		if (r == 0 && (!l.paths || asprintf(&l.paths[l.count], "%.*s%s", (int)(base - path),
						   path, names[i]) < 0))
			r = -ENOMEM;
		l.count += r == 0;
		free(names[i]);
	}
	if (r < 0)
		return r;
	*ret = l;
	l = (struct rollover_list){0};
	return 0;
}

int rollover_trim(const char *path, unsigned keep, struct errinfo *reterr)
{
	_cleanup_free_ char **names = calloc(FILES_MAX, sizeof(*names));
	DIR *d = NULL;
	int n = 0, deleted = 0;
	int r = names ? open_folder(path, names, &d, &n, reterr) : -ENOMEM;

	if (r < 0)
		return r;
	for (int i = 0; i < n; i++) {
		if (r == 0 && (unsigned)(n - i) > keep) {
			r = remove_file(dirfd(d), names[i], reterr);
			deleted += r == 0;
		}
		free(names[i]);
	}
	closedir(d);
	return r < 0 ? r : deleted;
}
