/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_share.c - whose parts go first when all of them are too large: those of the owner that is furthest
 * over its share. Shares add up to the ceiling, so that some owner is over its own, and who is within it loses
 * nothing by what others send. */
#include <fcntl.h>
#include <sys/file.h>

#include "base/mutex.h"
#include "base/search.h"
#include "cluster/store/store_duck_private.h"
#include "base/clock.h"
#include "base/array.h"
#include "base/file.h"

struct owner {
	uint64_t bytes;
	unsigned percent; /* 0: an equal part of what is left */
	struct part *oldest;
};

void shares_free(struct store_share *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((char *)list[i].cluster);
	free(list);
}

ORDER(compare, struct store_share, strcmp(x->cluster, y->cluster))

ORDER(compare_owners, struct store_share, compare(x, y) ?: ASCENDING(owner))

/* Of one that stands there several times the lowest owner's. Returns how many are left. */
static size_t unite(struct store_share *list, size_t count)
{
	size_t n = 0;

	SORT(list, count, compare_owners);
	for (size_t i = 0; i < count; i++)
		if (n && !strcmp(list[n - 1].cluster, list[i].cluster))
			free((char *)list[i].cluster);
		else
			list[n++] = list[i];
	return n;
}

int shares_set(struct store *store, const struct store_share *list, size_t count)
{
	struct store_duck *s = (struct store_duck *)store;
	struct store_share *fresh = calloc(count + 1, sizeof(*fresh)), *old;
	size_t old_count;

	for (size_t i = 0; fresh && i < count; i++) {
		fresh[i] = list[i];
		fresh[i].cluster = strdup(list[i].cluster);
		if (!fresh[i].cluster) {
			shares_free(fresh, i);
			fresh = NULL;
		}
	}
	if (!fresh)
		return -ENOMEM;
	count = unite(fresh, count);
	pthread_mutex_lock(&s->set_mutex);
	old = s->shares;
	old_count = s->share_count;
	s->shares = fresh;
	s->share_count = count;
	pthread_mutex_unlock(&s->set_mutex);
	shares_free(old, old_count);
	return 0;
}

bool parts_have(struct store *store, const char *cluster, size_t len)
{
	struct store_duck *s = (struct store_duck *)store;
	bool found = false;

	MUTEX_HELD(&s->set_mutex);
	for (size_t i = 0; !found && i < s->parts.count; i++) {
		const struct part *p = s->parts.items[i];

		found = !p->gone && strlen(p->cluster) == len && !memcmp(p->cluster, cluster, len);
	}
	return found;
}

static uint32_t owner_of(const struct store_duck *s, const char *cluster)
{
	struct store_share key = {.cluster = cluster};
	const struct store_share *found =
		s->share_count ? bsearch(&key, s->shares, s->share_count, sizeof(key), compare)
			       : NULL;

	return found ? found->owner : 0;
}

/* How many bytes an owner without a share of its own may have. */
static uint64_t equal_part(const struct owner *owners, uint32_t count, uint64_t bytes_max)
{
	uint64_t given = 0, others = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!owners[i].oldest)
			continue;
		given += bytes_max / 100 * owners[i].percent;
		others += !owners[i].percent;
	}
	return others && given < bytes_max ? (bytes_max - given) / others : 0;
}

/* The oldest part of the one that is furthest over its share. */
static struct part *choose(const struct owner *owners, uint32_t count, uint64_t bytes_max)
{
	uint64_t equal = equal_part(owners, count, bytes_max), most = 0;
	struct part *p = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct owner *o = &owners[i];
		uint64_t share = o->percent ? bytes_max / 100 * o->percent : equal;

		if (o->bytes > share && o->bytes - share > most) {
			most = o->bytes - share;
			p = o->oldest;
		}
	}
	return p;
}

struct part *shares_find_over(struct store_duck *s)
{
	_cleanup_free_ struct owner *owners = NULL;
	struct part *found = NULL;
	uint32_t count = 1;

	MUTEX_HELD(&s->set_mutex);
	for (size_t i = 0; i < s->share_count; i++)
		count = MAX(count, s->shares[i].owner + 1);
	owners = calloc(count, sizeof(*owners));
	for (size_t i = 0; owners && i < s->share_count; i++)
		owners[s->shares[i].owner].percent = s->shares[i].percent;
	for (size_t i = 0; owners && i < s->parts.count; i++) {
		struct part *p = s->parts.items[i];
		struct owner *o = &owners[owner_of(s, p->cluster)];

		if (p->gone)
			continue;
		o->bytes += p->bytes;
		if (!o->oldest || p->received_ns < o->oldest->received_ns)
			o->oldest = p;
	}
	if (owners)
		found = choose(owners, count, s->settings.bytes_max);
	return found;
}

/* ---- one process has a store, and the lock's file says which ---- */

static int refuse(int fd, const char *folder, struct errinfo *reterr)
{
	char holder[256];
	ssize_t n = pread(fd, holder, sizeof(holder) - 1, 0);

	holder[n > 0 ? n : 0] = 0;
	holder[strcspn(holder, "\n")] = 0;
	return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EAGAIN,
		"the store %s is in use by %s: stop it or name another folder", folder,
		*holder ? holder : "another process");
}

/* A full disk does not keep anybody from reading: then the holder has no name. */
static void write_holder(int fd)
{
	char line[512], host[128] = "", since[WHEN_UTC_MAX];
	int n;

	gethostname(host, sizeof(host) - 1);
	n = snprintf(line, sizeof(line), "process %d on %s since %s\n", (int)getpid(), host,
		when_utc(since, wall_now()));
	if (ftruncate(fd, 0) == 0 && pwrite(fd, line, (size_t)n, 0) < n)
		(void)!ftruncate(fd, 0);
}

int store_lock(const char *folder, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = -1;
	char path[STORE_PATH_MAX];
	int taken;

	if (snprintf(path, sizeof(path), "%s/lock", folder) >= (int)sizeof(path))
		return errinfo_set(reterr, -ENAMETOOLONG, "the name of the store is too long");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errinfo_set(
			reterr, -errno, "%s cannot be opened: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? refuse(fd, folder, reterr)
					    : errinfo_set(reterr, -errno, "%s cannot be locked: %s",
						      path, strerror(errno));
	write_holder(fd);
	taken = fd;
	fd = -1;
	return taken;
}

/* what was kept and cannot be read any more: parts that are damaged, of which the
 * manifest still knows rows, cluster and times, and entries of the journal, of which only the time is known.
 * It counts in every answer that would have used it, until retention would have dropped it anyway. */

static void widen(struct store_missing *m, int64_t since_ns, int64_t until_ns)
{
	if (since_ns && (!m->since_ns || since_ns < m->since_ns))
		m->since_ns = since_ns;
	m->until_ns = MAX(m->until_ns, until_ns);
}

/* Rows are seldom of a later time than that at which they came in. */
static bool loss_meets(const struct store_loss *l, const struct store_scope *scope)
{
	return !scope || !scope->since_ns || !l->until_ns || l->until_ns >= scope->since_ns;
}

void missing_count(
	const struct store_duck *s, const struct store_scope *scope, struct store_missing *ret)
{
	for (size_t i = 0; i < s->missing.count; i++) {
		const struct part *p = s->missing.items[i];

		if (!part_meets(p, scope))
			continue;
		ret->parts++;
		ret->rows += part_rows(p);
		for (int t = 0; t < TABLE_COUNT; t++)
			if (t != TABLE_METRICS && p->rows[t])
				widen(ret, p->first_ns[t], p->last_ns[t]);
	}
	for (size_t i = 0; i < s->losses.count; i++) {
		const struct store_loss *l = &s->losses.items[i];

		if (!loss_meets(l, scope))
			continue;
		ret->requests += l->last - l->first + 1;
		widen(ret, l->since_ns, l->until_ns);
	}
}

void missing_of(struct store *store, const struct store_scope *scope, struct store_missing *ret)
{
	struct store_duck *s = (struct store_duck *)store;

	MUTEX_HELD(&s->set_mutex);
	missing_count(s, scope, ret);
}

static bool is_known(const struct store_duck *s, const struct store_loss *l)
{
	return EXISTS(i, s->losses.count,
		s->losses.items[i].first <= l->first && l->last <= s->losses.items[i].last);
}

int missing_lose(struct store *store, const struct store_loss *l, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	int r = 0;

	pthread_mutex_lock(&s->write_mutex);
	pthread_mutex_lock(&s->set_mutex);
	if (is_known(s, l)) {
		pthread_mutex_unlock(&s->set_mutex);
		pthread_mutex_unlock(&s->write_mutex);
		return 0;
	}
	r = ARRAY_RESERVE(s->losses.items, s->losses.room, s->losses.count + 1, STORE_LOSSES_MAX);
	if (r == 0)
		s->losses.items[s->losses.count++] = *l;
	pthread_mutex_unlock(&s->set_mutex);
	if (r == 0) {
		r = set_change(s, &(struct change){0}, reterr);
		if (r < 0) { /* who told it tells it again */
			pthread_mutex_lock(&s->set_mutex);
			s->losses.count--;
			pthread_mutex_unlock(&s->set_mutex);
		}
	}
	pthread_mutex_unlock(&s->write_mutex);
	return r;
}

/* ---- retention ---- */

static int forget_part(struct store_duck *s, struct part *p, struct errinfo *reterr)
{
	struct change change = {.found = p, .dropped_rows = part_rows(p)};
	char path[STORE_PATH_MAX + 64];
	int r = set_change(s, &change, reterr);

	if (r < 0)
		return r;
	part_damaged_path(s, p, path);
	unlink(path);
	part_free(p);
	return 1;
}

int missing_expire(struct store_duck *s, int64_t before_ns, struct errinfo *reterr)
{
	for (size_t i = 0; i < s->missing.count; i++)
		if (s->missing.items[i]->received_ns < before_ns)
			return forget_part(s, s->missing.items[i], reterr);
	for (size_t i = 0; i < s->losses.count; i++)
		if (s->losses.items[i].until_ns && s->losses.items[i].until_ns < before_ns) {
			pthread_mutex_lock(&s->set_mutex);
			s->losses.items[i] = s->losses.items[--s->losses.count];
			pthread_mutex_unlock(&s->set_mutex);
			return 1; /* the next manifest says so */
		}
	return 0;
}

/* ---- rows as a Parquet file, which has its name only when it is complete ---- */

static int copy_rows(struct store_duck *s, struct reading *reading, enum store_table t,
	const struct store_scope *scope, const char *path, uint64_t *ret_rows,
	struct errinfo *reterr)
{
	static const struct duck_limits limits = {.rows_max = 1, .bytes_max = 4096};
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
	struct duck_connection *c;
	struct sql_table done;
	int r;

	buf_puts(&text, "COPY (");
	r = reading_expand(reading, FORMATTED(64, "SELECT * FROM {%s}", store_tables[t].name),
		scope, &text, reterr);
	buf_puts(&text, ") TO ");
	duck_quote(&text, path);
	buf_puts(&text, " (FORMAT parquet, COMPRESSION zstd)");
	r = r ?: text.err ? text.err : connection_get(s, &c, reterr);
	if (r < 0)
		return r;
	r = duck_select(c, buf_str(&text), &limits, &done, reterr);
	connection_put(s->asking, c);
	if (r < 0)
		return r;
	*ret_rows = done.row_count ? (uint64_t)sql_table_cell(&done, 0, 0)->i : 0;
	sql_table_done(&done);
	return 0;
}

int store_duck_export(struct store *store, enum store_table t, const struct store_scope *scope,
	const char *path, uint64_t *ret_rows, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	char partial[STORE_PATH_MAX];
	struct reading reading;
	int r;

	if (access(path, F_OK) == 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s exists already: name a new file", path);
	if (snprintf(partial, sizeof(partial), "%s.partial", path) >= (int)sizeof(partial))
		return errinfo_set(reterr, -ENAMETOOLONG, "the name %.100s is too long", path);
	r = instance_use(s, reterr);
	if (r < 0)
		return r;
	r = reading_begin(s, scope, &reading);
	if (r == 0) {
		r = copy_rows(s, &reading, t, scope, partial, ret_rows, reterr);
		reading_end(s, &reading);
	}
	instance_leave(s);
	if (r < 0) {
		unlink(partial);
		return r;
	}
	r = file_sync(partial);
	/* A link, not a rename: what has that name by now is left alone. */
	if (r == 0 && link(partial, path) < 0)
		r = -errno;
	unlink(partial);
	return r == 0 ? 0
		      : errinfo_set_exit(reterr, EXIT_NO_CREATE, r, "%s cannot be made: %s", path,
				strerror(-r));
}
