/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_clock.c - how far the nodes' clocks are apart, by what they did together.
 *
 * Ranks leave a collective that all depend on at one moment: a rank that came early waits for the
 * last. So the difference of the moments at which two nodes left the same (communicator, number)
 * is the difference of their clocks, give or take the time to wake up. Moments of coming, or of
 * starting to record, say nothing about clocks.
 *
 * The moment of leaving is start + duration + wait_ns of the row: what the host did between the
 * call and the synchronisation is missing in it, which cancels out where ranks run the same
 * program. Of several ranks on a node the earliest counts, because delays only add. The median over
 * many collectives is the offset; its error is that of a median of normal data (1.2533 sigma / sqrt
 * n), sigma by the median distance from the median. Nodes that share none directly are joined
 * through others. Memory: 4096 differences for each of 1024 pairs at most, thinned evenly beyond.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "store/merge/nodedb_merge_private.h"
#include "stat/robust.h"

#define PAIRS_MAX   1024
#define KEPT_MAX    4096
#define LEAST       8 /* collectives that a pair must share */
#define BIAS        (INT64_C(1) << 62)
#define MEDIAN_LOSS 1.2533 /* error of a median over that of a mean */
#define MAD_SIGMA   1.4826

struct pair {
	size_t anchor, node; /* indexes of nodes */
	size_t kept;
	uint64_t seen, stride;
	uint64_t *differences; /* + BIAS */
	int64_t offset_ns;     /* of node, to anchor */
	double error_ns;
};

struct clocks {
	struct merge *m;
	struct pair pairs[PAIRS_MAX];
	size_t pair_count;
	int64_t comm, seq; /* of the group at hand */
	char op[32];
	bool mixed;    /* not all ranks called the same: no common moment */
	int64_t *left; /* by node, 0: not in this group */
	size_t *members;
	size_t member_count;
};

static struct pair *find_pair(struct clocks *c, size_t anchor, size_t node)
{
	struct pair *p;

	for (size_t i = 0; i < c->pair_count; i++)
		if (c->pairs[i].anchor == anchor && c->pairs[i].node == node)
			return &c->pairs[i];
	if (c->pair_count == PAIRS_MAX)
		return NULL;
	p = &c->pairs[c->pair_count];
	*p = (struct pair){.anchor = anchor, .node = node, .stride = 1};
	p->differences = malloc(KEPT_MAX * sizeof(*p->differences));
	c->pair_count += p->differences != NULL;
	return p->differences ? p : NULL;
}

static void add_difference(struct pair *p, int64_t ns)
{
	if (ns <= -BIAS / 2 || ns >= BIAS / 2 || p->seen++ % p->stride)
		return;
	if (p->kept == KEPT_MAX) {
		for (size_t i = 0; i < KEPT_MAX / 2; i++)
			p->differences[i] = p->differences[2 * i];
		p->kept = KEPT_MAX / 2;
		p->stride *= 2;
	}
	p->differences[p->kept++] = (uint64_t)(ns + BIAS);
}

/* All rows of a collective are in: each node against the first. */
static void end_group(struct clocks *c)
{
	size_t anchor = c->member_count ? c->members[0] : 0;

	for (size_t i = 1; i < c->member_count; i++)
		anchor = MIN(anchor, c->members[i]);
	for (size_t i = 0; i < c->member_count; i++) {
		struct pair *p = c->members[i] == anchor || c->mixed
					 ? NULL
					 : find_pair(c, anchor, c->members[i]);

		if (p)
			add_difference(p, c->left[c->members[i]] - c->left[anchor]);
	}
	for (size_t i = 0; i < c->member_count; i++)
		c->left[c->members[i]] = 0;
	c->member_count = 0;
	c->mixed = false;
}

static int take_row(struct clocks *c, sql_stmt *stmt, struct errinfo *reterr)
{
	int64_t comm = sql_column_int(stmt, 0), seq = sql_column_int(stmt, 1);
	int64_t left = sql_column_int(stmt, 4);
	struct merge_node *node;
	size_t len, index;
	const char *name;
	char op[32];
	int r;

	if (!reader_text(stmt, 2, op, sizeof(op)))
		return 0;
	if (comm != c->comm || seq != c->seq) {
		end_group(c);
		c->comm = comm;
		c->seq = seq;
		memcpy(c->op, op, sizeof(op));
	}
	c->mixed = c->mixed || strcmp(op, c->op) != 0;
	name = sql_column_text(stmt, 3, &len);
	r = merge_node(c->m, name, len, &node, reterr);
	if (r < 0)
		return r;
	index = (size_t)node->number - 1;
	if (!c->left[index])
		c->members[c->member_count++] = index;
	if (!c->left[index] || left < c->left[index])
		c->left[index] = left;
	return 0;
}

static int read_groups(struct clocks *c, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	/* Only those in which every rank waits for every other. comm 0 names no communicator. */
	int r = sql_prepare(c->m->out,
		"SELECT comm, seq, op, node, timestamp + duration + wait_ns FROM collectives"
		" WHERE seq > 0 AND comm <> 0 AND wait_ns > 0 AND wait_ns < 86400000000000"
		" AND duration < 86400000000000"
		" AND op IN ('AllReduce', 'AllGather', 'ReduceScatter', 'AlltoAll')"
		" ORDER BY comm, seq",
		&stmt, reterr);

	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0)
		r = take_row(c, stmt, reterr);
	end_group(c);
	return r;
}

static void estimate(struct pair *p)
{
	if (p->kept < LEAST)
		return;
	robust_sort(p->differences, p->kept);
	p->offset_ns = (int64_t)robust_median(p->differences, p->kept) - BIAS;
	p->error_ns = MEDIAN_LOSS * MAD_SIGMA * (double)robust_mad(p->differences, p->kept) /
		      sqrt((double)p->kept);
}

struct place { /* of a node, relative to the first one it is joined with */
	bool known;
	size_t reference;
	int64_t offset_ns;
	double variance;
	uint64_t collectives; /* of the weakest pair on the way */
};

static bool join(struct place *from, struct place *to, const struct pair *p, int sign)
{
	if (!from->known || to->known)
		return false;
	*to = (struct place){.known = true,
		.reference = from->reference,
		.offset_ns = from->offset_ns + sign * p->offset_ns,
		.variance = from->variance + p->error_ns * p->error_ns,
		.collectives = MIN(from->collectives, p->seen)};
	return true;
}

/* Spreads from each node that nothing joins yet. */
static void place_all(struct clocks *c, struct place *places)
{
	for (size_t i = 0; i < c->m->node_count; i++) {
		bool more = !places[i].known;

		if (more)
			places[i] = (struct place){
				.known = true, .reference = i, .collectives = UINT64_MAX};
		while (more) {
			more = false;
			for (size_t k = 0; k < c->pair_count; k++) {
				struct pair *p = &c->pairs[k];

				if (p->kept < LEAST)
					continue;
				more |= join(&places[p->anchor], &places[p->node], p, 1);
				more |= join(&places[p->node], &places[p->anchor], p, -1);
			}
		}
	}
}

static int apply(struct merge *m, struct merge_node *node, int64_t offset, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r = sql_prepare(m->out,
		"UPDATE OR IGNORE collectives SET timestamp = timestamp - ?2 WHERE node = ?1"
		" AND timestamp > ?2",
		&stmt, reterr);

	node->align_ns = -offset;
	return r < 0 ? r : SQL_PUT(stmt, reterr, SQL_S(node->name), SQL_I(offset));
}

static int record(struct clocks *c, const struct place *places, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *put = NULL;
	struct merge_result *res = &c->m->result;
	struct merge *m = c->m;
	int r = sql_prepare(
		m->out, "INSERT INTO node_clocks VALUES (?1,?2,?3,?4,?5,?6)", &put, reterr);

	for (size_t i = 0; r >= 0 && i < m->node_count; i++) {
		const struct place *p = &places[i];
		bool is_known = p->reference != i;
		struct merge_clock *clock = &res->clocks[res->clock_count];

		if (!m->nodes[i]->len || (i == 0 && !is_known))
			continue;
		*clock = (struct merge_clock){.offset_ns = p->offset_ns,
			.error_ns = (uint64_t)ceil(sqrt(p->variance)),
			.collectives = is_known ? p->collectives : 0,
			.applied = is_known && m->options->align};
		memcpy(clock->node, m->nodes[i]->name, MERGE_NODE_LEN);
		memcpy(clock->reference, m->nodes[p->reference]->name, MERGE_NODE_LEN);
		res->clock_count++;
		if (!is_known)
			continue;
		r = SQL_PUT(put, reterr, SQL_S(clock->node), SQL_S(clock->reference),
			SQL_I(clock->offset_ns), SQL_I(clock->error_ns), SQL_I(clock->collectives),
			SQL_I(clock->applied));
		if (r == 0 && clock->applied)
			r = apply(m, m->nodes[i], clock->offset_ns, reterr);
	}
	return r;
}

static void clocks_free(struct clocks *c)
{
	for (size_t i = 0; i < c->pair_count; i++)
		free(c->pairs[i].differences);
	free(c->left);
	free(c->members);
	free(c);
}
DEFINE_CLEANUP(struct clocks *, clocks_free)

int merge_clocks(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(clocks_freep) struct clocks *c = calloc(1, sizeof(*c));
	_cleanup_free_ struct place *places = calloc(MERGE_NODES_MAX, sizeof(*places));
	int r;

	if (!c || !places)
		return -ENOMEM;
	c->m = m;
	c->left = calloc(MERGE_NODES_MAX, sizeof(*c->left));
	c->members = calloc(MERGE_NODES_MAX, sizeof(*c->members));
	m->result.clocks = calloc(m->node_count + 1, sizeof(*m->result.clocks));
	if (!c->left || !c->members || !m->result.clocks)
		return -ENOMEM;
	r = read_groups(c, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->pair_count; i++)
		estimate(&c->pairs[i]);
	place_all(c, places);
	return record(c, places, reterr);
}
