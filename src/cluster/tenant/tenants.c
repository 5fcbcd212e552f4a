/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.c - see tenants.h. A list of readings of the file, the newest first.
 *
 * Invariants:
 *  1. The newest reading has the last word on a token that is in it. Of older ones only entries count
 *     that have until_ns: they are those that were gone in the next reading.
 *  2. A grace is given once, when a token goes, and never made longer.
 *  3. The token set holds exactly the entries that count. */
#include "cluster/tenant/tenants.h"

#include <math.h>

#include "base/array.h"
#include "cluster/tenant/acl.h"

#define OLDER_MAX   64   /* readings that are kept for TENANTS_VALID_NS */
#define BURST_TIMES 4    /* what comes at once, in seconds of the rate */
#define WAIT_MAX_S  3600 /* that one request can make its sender wait */

struct tenants {
	char *path;
	struct acl *newest;
	struct token_set *tokens;
};

struct hash_list {
	struct token_hash *items;
	size_t count, room;
};

static const struct tenant everybody = {
	.name = "", .verbs = TENANT_INGEST | TENANT_READ | TENANT_SQL | TENANT_ADMIN};

/* ---- the file ---- */

static void hash_list_done(struct hash_list *l)
{
	free(l->items);
}

static int hash_list_add(struct hash_list *l, const struct token_hash *h, uint64_t until_ns)
{
	int r = ARRAY_RESERVE(l->items, l->room, l->count + 1, TOKEN_SET_MAX);

	if (r < 0)
		return r;
	l->items[l->count] = *h;
	l->items[l->count++].until_ns = until_ns;
	return 0;
}

/* collect - what counts once @fresh is the newest reading. */
static int collect(struct tenants *t, const struct acl *fresh, uint64_t now_ns, struct hash_list *l)
{
	int r = 0;

	for (size_t i = 0; i < fresh->count && r == 0; i++)
		r = hash_list_add(l, &fresh->entries[i].hash, 0);
	for (const struct acl *a = t->newest; a && r == 0; a = a->older)
		for (size_t i = 0; i < a->count && r == 0; i++) {
			const struct acl_entry *e = &a->entries[i];
			uint64_t until_ns =
				a->retired_ns ? e->hash.until_ns : now_ns + TENANTS_GRACE_NS;

			if (until_ns > now_ns &&
				!EXISTS(k, l->count,
					token_hash_number(&l->items[k]) == e->tenant.credential))
				r = hash_list_add(l, &e->hash, until_ns);
		}
	return r;
}

/* retire - @fresh takes the place of the newest reading; what a token has used of its rate stays used. */
static void retire(struct tenants *t, struct acl *fresh, uint64_t now_ns)
{
	struct acl *old = t->newest;

	for (size_t i = 0; i < old->count; i++) {
		struct acl_entry *e = &old->entries[i],
				 *same = acl_find(fresh, e->tenant.credential);

		if (!same) {
			e->hash.until_ns = now_ns + TENANTS_GRACE_NS;
			continue;
		}
		same->asked = e->asked;
		same->ingested = e->ingested;
		same->rows = e->rows;
		same->bytes = e->bytes;
	}
	old->retired_ns = MAX(now_ns, (uint64_t)1);
	fresh->older = old;
	t->newest = fresh;
}

/* forget - readings that nobody can refer to any more. Returns how many older ones stay. */
static size_t forget(struct tenants *t, uint64_t now_ns)
{
	struct acl **at = &t->newest->older;
	size_t kept = 0;

	while (*at) {
		struct acl *a = *at;

		if (now_ns - a->retired_ns > TENANTS_VALID_NS && now_ns > a->retired_ns) {
			*at = a->older;
			acl_free(a);
		} else {
			at = &a->older;
			kept++;
		}
	}
	return kept;
}

int tenants_reload(struct tenants *t, uint64_t now_ns, struct errinfo *reterr)
{
	_cleanup_(hash_list_done) struct hash_list l = {0};
	_cleanup_(acl_freep) struct acl *fresh = NULL;
	int r = acl_read(t->path, &fresh, reterr);

	if (r < 0)
		return r;
	if (!strcmp(fresh->digest, t->newest->digest))
		return 0;
	if (forget(t, now_ns) >= OLDER_MAX)
		r = -ENOBUFS;
	r = r ?: collect(t, fresh, now_ns, &l);
	r = r ?: token_set_replace(t->tokens, l.items, l.count);
	if (r == -ENOBUFS)
		return errinfo_set_exit(reterr, EXIT_TRY_AGAIN, -EAGAIN,
			"%s has changed too often in ten minutes: reload again later", t->path);
	if (r < 0)
		return errinfo_set(reterr, r, "not enough memory to read %s", t->path);
	retire(t, TAKE(fresh), now_ns);
	return 0;
}

int tenants_read(const char *path, struct tenants **ret, struct errinfo *reterr)
{
	_cleanup_(tenants_freep) struct tenants *t = calloc(1, sizeof(*t));
	_cleanup_(hash_list_done) struct hash_list l = {0};
	int r;

	if (!t)
		return -ENOMEM;
	t->path = strdup(path);
	r = t->path ? acl_read(path, &t->newest, reterr) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < t->newest->count; i++)
		r = hash_list_add(&l, &t->newest->entries[i].hash, 0);
	r = r ?: token_set_of_hashes(l.items, l.count, &t->tokens);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

void tenants_free(struct tenants *t)
{
	for (struct acl *a = t->newest, *older; a; a = older) {
		older = a->older;
		acl_free(a);
	}
	token_set_freep(&t->tokens);
	free(t->path);
	free(t);
}

struct token_set *tenants_tokens(struct tenants *t)
{
	return t->tokens;
}

/* ---- requests ---- */

static struct acl_entry *find(struct tenants *t, uint64_t credential)
{
	struct acl_entry *e = acl_find(t->newest, credential);

	for (struct acl *a = t->newest->older; a && !e; a = a->older) {
		e = acl_find(a, credential);
		if (e && !e->hash.until_ns)
			e = NULL;
	}
	return e;
}

const struct tenant *tenants_find(struct tenants *t, uint64_t credential, int64_t now_wall_ns)
{
	struct acl_entry *e;

	if (!t || !credential)
		return &everybody;
	e = find(t, credential);
	if (!e || (e->tenant.expires_ns && now_wall_ns >= e->tenant.expires_ns))
		return NULL;
	return &e->tenant;
}

bool tenant_may_see(const struct tenant *t, const char *cluster, size_t len)
{
	if (!t || !t->clusters)
		return t;
	return EXISTS(i, t->cluster_count,
		strlen(t->clusters[i]) == len && !memcmp(t->clusters[i], cluster, len));
}

static bool take(struct rate *used, unsigned rate, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t each_ns = NS_PER_S / rate;
	unsigned burst = rate * BURST_TIMES;

	if (rate_take(used, now_ns, burst, each_ns))
		return true;
	*ret_ns = used->used_ns + each_ns - burst * each_ns;
	return false;
}

/* What has been charged is refused afterwards, until it has come back. */
static bool is_over(struct rate *used, uint64_t rate, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t used_ns = rate ? rate_settle(used, now_ns) : 0;

	if (used_ns <= BURST_TIMES * NS_PER_S)
		return false;
	*ret_ns = used_ns - BURST_TIMES * NS_PER_S;
	return true;
}

static const char *over_ingest(struct acl_entry *e, uint64_t now_ns, uint64_t *ret_ns)
{
	if (is_over(&e->rows, e->row_rate, now_ns, ret_ns))
		return "too many rows with this token: see Retry-After";
	if (is_over(&e->bytes, e->byte_rate, now_ns, ret_ns))
		return "too many bytes with this token: see Retry-After";
	return take(&e->ingested, e->ingest_rate, now_ns, ret_ns)
		       ? NULL
		       : "too many requests with this token: see Retry-After";
}

static const char *over_ask(struct acl_entry *e, uint64_t now_ns, uint64_t *ret_ns)
{
	return take(&e->asked, e->ask_rate, now_ns, ret_ns)
		       ? NULL
		       : "too many requests with this token: see Retry-After";
}

const struct tenant *tenants_admit(struct tenants *t, uint64_t credential, unsigned verb,
	uint64_t now_ns, int64_t now_wall_ns, struct tenant_refusal *ret)
{
	const struct tenant *who = tenants_find(t, credential, now_wall_ns);
	struct acl_entry *e = who && who != &everybody ? find(t, credential) : NULL;
	uint64_t wait_ns = 0;
	const char *why;

	if (!who || (who->verbs & verb) != verb) {
		*ret = (struct tenant_refusal){.status = 403,
			.code = TENANT_REFUSED,
			.text = who ? "this token lacks the permission: see /api/v2/whoami"
				    : "this token is no longer valid"};
		return NULL;
	}
	why = !e                      ? NULL
	      : verb == TENANT_INGEST ? over_ingest(e, now_ns, &wait_ns)
				      : over_ask(e, now_ns, &wait_ns);
	if (!why)
		return who;
	*ret = (struct tenant_refusal){.status = 429,
		.code = "rate_limited",
		.text = why,
		.retry_s = (unsigned)MIN(wait_ns / NS_PER_S + 1, (uint64_t)WAIT_MAX_S)};
	return NULL;
}

static void charge(struct rate *used, uint64_t rate, uint64_t amount, uint64_t now_ns)
{
	double cost_ns = rate ? (double)amount * (double)NS_PER_S / (double)rate : 0;

	rate_owe(used, now_ns, (uint64_t)fmin(cost_ns, (double)WAIT_MAX_S * (double)NS_PER_S));
}

void tenants_charge(
	struct tenants *t, uint64_t credential, uint64_t rows, uint64_t bytes, uint64_t now_ns)
{
	struct acl_entry *e = t && credential ? find(t, credential) : NULL;

	if (!e)
		return;
	charge(&e->rows, e->row_rate, rows, now_ns);
	charge(&e->bytes, e->byte_rate, bytes, now_ns);
}

void tenants_charge_asked(struct tenants *t, uint64_t credential, unsigned more, uint64_t now_ns)
{
	struct acl_entry *e = t && credential ? find(t, credential) : NULL;

	if (e)
		charge(&e->asked, e->ask_rate, more, now_ns);
}

/* ---- shares of the store ---- */

int tenants_parts(const struct tenants *t, struct tenant_part **ret, size_t *ret_count)
{
	_cleanup_free_ struct tenant_part *list = NULL;
	size_t count = 0, room = 0;

	for (size_t i = 0; i < t->newest->count; i++) {
		const struct acl_entry *e = &t->newest->entries[i];
		const struct tenant *who = &e->tenant;

		if (!(who->verbs & TENANT_INGEST))
			continue;
		for (size_t k = 0; k < who->cluster_count; k++) {
			if (ARRAY_RESERVE(list, room, count + 1,
				    (size_t)ACL_ENTRIES_MAX * ACL_CLUSTERS_MAX) < 0)
				return -ENOMEM;
			list[count++] =
				(struct tenant_part){who->clusters[k], e->owner, e->share_percent};
		}
	}
	*ret = TAKE(list);
	*ret_count = count;
	return 0;
}
