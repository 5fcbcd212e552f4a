/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_snapshot.c - the table as bytes, so that quorum, thresholds and episodes hold through a restart
 * of the cluster service. A file of one machine: structs as they lie in memory, their sizes in the
 * header, a checksum of everything at the end. Whatever does not fit is refused as a whole, and then
 * the table is rebuilt by the agents' next pushes.
 *
 *   header | saved_node[nodes] | saved_cohort[cohorts] | uint64_t hash_bytes() of all before it */
#include <math.h>

#include "base/buf.h"
#include "base/hash.h"
#include "cluster/detect/nodes_table.h"

#define MAGIC   "ingnodes"
#define VERSION 1
#define AGE_MAX (600 * 1000000000LL) /* an older one says nothing about now */

struct header {
	char magic[8];
	uint32_t version, node_bytes, cohort_bytes;
	uint32_t nodes, cohorts, zero;
	int64_t saved_ns;
	uint64_t episodes;
};

struct saved_node {
	struct push_health last;
	uint64_t token, gap_ns, former, rival, episode;
	int64_t first_ns, last_ns, since_ns;
	uint32_t reasons, reason, signals[2];
	struct measure_trace traces[MEASURE_COUNT];
};

struct saved_cohort {
	char cluster[PUSH_ID_MAX], name[sizeof(((struct cohort *)0)->name)];
	uint32_t kind, active, known, flags;
	double value, median, mad;
	double average_median, average_sigma;
};
enum { QUORUM_MET = 1, HALF_BAD = 2, COVERAGE_LOW = 4, AVERAGE_SET = 8 };

static void save_node(const struct node *d, struct buf *b)
{
	struct saved_node s;

	memset(&s, 0, sizeof(s)); /* also what lies between members */
	s.last = d->last;
	s.token = d->token;
	s.gap_ns = d->gap_ns;
	s.former = d->former;
	s.rival = d->rival;
	s.episode = d->episode;
	s.first_ns = d->first_ns;
	s.last_ns = d->last_ns;
	s.since_ns = d->since_ns;
	s.reasons = d->reasons;
	s.reason = d->reason;
	memcpy(s.signals, d->signals, sizeof(s.signals));
	memcpy(s.traces, d->traces, sizeof(s.traces));
	buf_append(b, &s, sizeof(s));
}

static void save_cohort(const struct cohort *c, struct buf *b)
{
	const struct threshold *t = &c->threshold;
	struct saved_cohort s;

	memset(&s, 0, sizeof(s));
	memcpy(s.cluster, c->cluster, sizeof(s.cluster));
	memcpy(s.name, c->name, sizeof(s.name));
	s.kind = c->kind;
	s.active = t->active;
	s.known = t->known;
	s.flags = (t->quorum_met ? QUORUM_MET : 0) | (t->half_bad ? HALF_BAD : 0) |
		  (t->coverage_low ? COVERAGE_LOW : 0) | (c->average.is_set ? AVERAGE_SET : 0);
	s.value = t->value;
	s.median = t->median;
	s.mad = t->mad;
	s.average_median = c->average.median;
	s.average_sigma = c->average.sigma;
	buf_append(b, &s, sizeof(s));
}

int nodes_save(const struct nodes *n, int64_t now_ns, struct buf *b)
{
	struct header h = {.version = VERSION,
		.node_bytes = sizeof(struct saved_node),
		.cohort_bytes = sizeof(struct saved_cohort),
		.nodes = (uint32_t)n->count,
		.saved_ns = now_ns,
		.episodes = n->episodes};
	const struct cohort *cluster, *c;
	size_t at = b->len;
	uint64_t sum;

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	LIST_FOREACH(cluster, &n->clusters, sibling)
	{
		h.cohorts++;
		LIST_FOREACH(c, &cluster->others, sibling)
		h.cohorts++;
	}
	buf_append(b, &h, sizeof(h));
	for (size_t i = 0; i < n->count; i++)
		save_node(n->order[i], b);
	LIST_FOREACH(cluster, &n->clusters, sibling)
	{
		save_cohort(cluster, b);
		LIST_FOREACH(c, &cluster->others, sibling)
		save_cohort(c, b);
	}
	if (b->err)
		return b->err;
	sum = hash_bytes(b->data + at, b->len - at);
	buf_append(b, &sum, sizeof(sum));
	return b->err;
}

static bool header_is_sound(
	const struct nodes *n, const struct header *h, const void *data, size_t len)
{
	uint64_t sum, body = sizeof(*h);

	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0 || h->version != VERSION ||
		h->node_bytes != sizeof(struct saved_node) ||
		h->cohort_bytes != sizeof(struct saved_cohort) || h->nodes > n->settings.nodes_max)
		return false;
	body += (uint64_t)h->nodes * h->node_bytes + (uint64_t)h->cohorts * h->cohort_bytes;
	if (len != body + sizeof(sum))
		return false;
	memcpy(&sum, (const char *)data + body, sizeof(sum));
	return sum == hash_bytes(data, body);
}

static bool saved_node_is_sound(const struct saved_node *s)
{
	unsigned signals = (1u << PUSH_SIGNAL_COUNT) - 1, reasons = (2u << NODES_SILENT_REASON) - 1;
	bool sound = push_refusal(&s->last) == NODES_NONE && !(s->reasons & ~reasons) &&
		     !((s->signals[0] | s->signals[1]) & ~signals) &&
		     s->reason <= NODES_SILENT_REASON &&
		     (!s->reasons || s->reasons & 1u << s->reason);

	for (size_t i = 0; i < ARRAY_SIZE(s->traces); i++) {
		const struct measure_trace *t = &s->traces[i];

		sound = sound && isfinite(t->deviation) && isfinite(t->noise) &&
			isfinite(t->level) && isfinite(t->sum);
	}
	return sound;
}

/* Ages are those of the moment it was saved: agents cannot push to a service that is down. */
static int restore_node(
	struct nodes *n, const struct saved_node *s, int64_t saved_ns, int64_t now_ns)
{
	struct node *d;

	if (!saved_node_is_sound(s) || s->last_ns > saved_ns ||
		node_find(n, s->last.who.cluster, s->last.who.node))
		return -EBADMSG;
	d = node_add(n, &s->last.who, token_has_room(n, s->token) ? s->token : 0);
	if (!d)
		return -ENOMEM;
	d->last = s->last;
	d->gap_ns = s->gap_ns;
	d->former = s->former;
	d->rival = s->rival;
	d->episode = s->episode;
	d->first_ns = MIN(s->first_ns, now_ns);
	d->last_ns = now_ns - (saved_ns - s->last_ns);
	d->since_ns = MIN(s->since_ns, now_ns);
	if (node_join(n, d) < 0)
		return -ENOMEM;
	d->reasons = s->reasons;
	d->reason = (enum nodes_reason)s->reason;
	memcpy(d->signals, s->signals, sizeof(d->signals));
	memcpy(d->traces, s->traces, sizeof(d->traces)); /* entering a cohort has cleared them */
	return 0;
}

static void restore_cohort(struct nodes *n, const struct saved_cohort *s, int64_t now_ns)
{
	struct cohort *c;

	if (s->kind >= COHORT_KIND_COUNT || memchr(s->cluster, 0, sizeof(s->cluster)) == NULL ||
		memchr(s->name, 0, sizeof(s->name)) == NULL)
		return;
	c = cohort_find(n, s->kind, s->cluster, s->name);
	if (!c || !isfinite(s->value) || !isfinite(s->median) || !isfinite(s->mad) ||
		!isfinite(s->average_median) || !isfinite(s->average_sigma))
		return;
	c->threshold = (struct threshold){.value = s->value,
		.quorum_met = s->flags & QUORUM_MET,
		.half_bad = s->flags & HALF_BAD,
		.coverage_low = s->flags & COVERAGE_LOW,
		.median = s->median,
		.mad = s->mad,
		.active = s->active,
		.known = s->known};
	c->average = (struct threshold_average){.median = s->average_median,
		.sigma = s->average_sigma,
		.is_set = s->flags & AVERAGE_SET};
	c->due_ns = now_ns + (int64_t)n->settings.interval_ns;
	c->deaf_ns = now_ns + (int64_t)nodes_ttl_ns(n);
}

static int restore_all(struct nodes *n, const struct header *h, const char *at, int64_t now_ns)
{
	for (uint32_t i = 0; i < h->nodes; i++, at += sizeof(struct saved_node)) {
		struct saved_node s;
		int r;

		memcpy(&s, at, sizeof(s));
		r = restore_node(n, &s, h->saved_ns, now_ns);
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < h->cohorts; i++, at += sizeof(struct saved_cohort)) {
		struct saved_cohort s;

		memcpy(&s, at, sizeof(s));
		restore_cohort(n, &s, now_ns);
	}
	n->episodes = h->episodes;
	return 0;
}

int nodes_restore(struct nodes *n, const void *data, size_t len, int64_t now_ns)
{
	struct header h;
	int r;

	if (n->count)
		return -EEXIST;
	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, data, sizeof(h));
	if (!header_is_sound(n, &h, data, len))
		return -EBADMSG;
	if (h.saved_ns > now_ns || now_ns - h.saved_ns > AGE_MAX)
		return -ESTALE;
	r = restore_all(n, &h, (const char *)data + sizeof(h), now_ns);
	if (r < 0)
		nodes_clear(n);
	return r;
}
