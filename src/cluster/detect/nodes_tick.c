/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_tick.c - what is due every interval, a cluster at a time: who has gone silent, the thresholds
 * of its cohorts, and who is a straggler by them. O(n log n) of the cluster's nodes. */

#include "cluster/detect/nodes_table.h"

#define FORGET_NS (3600 * 1000000000LL) /* a silent node is remembered for so long */

/* Others go on: at least half of those that are not known to be silent. Where fewer do, the network
 * or the job has ended for all, and nobody is to be singled out. */
static bool others_go_on(const struct nodes *n, const struct cohort *cluster, int64_t now_ns)
{
	size_t heard = 0, all = 0;
	struct node *d;

	LIST_FOREACH(d, &cluster->members, with[COHORT_CLUSTER])
	{
		if (d->reasons & 1u << NODES_SILENT_REASON)
			continue;
		all++;
		heard += now_ns - d->last_ns <= (int64_t)nodes_ttl_ns(n);
	}
	return heard > 0 && 2 * heard >= all && now_ns >= cluster->deaf_ns;
}

static enum nodes_work work_of(const struct nodes *n, const struct node *d)
{
	return n->work ? n->work(n->work_arg, d->last.who.cluster, d->last.who.node)
		       : NODES_WORK_GOES_ON;
}

static void expire(struct nodes *n, struct cohort *cluster, int64_t now_ns)
{
	bool go_on = others_go_on(n, cluster, now_ns);
	struct node *d;

	LIST_FOREACH(d, &cluster->members, with[COHORT_CLUSTER])
	{
		int64_t quiet_ns = now_ns - d->last_ns;
		bool is_silent = d->reasons & 1u << NODES_SILENT_REASON;
		enum nodes_work work;

		if (quiet_ns <= (int64_t)nodes_ttl_ns(n) || now_ns < cluster->deaf_ns)
			continue;
		work = is_silent ? NODES_WORK_GOES_ON : work_of(n, d);
		if (d->last.state != PUSH_ACTIVE || quiet_ns > FORGET_NS ||
			work == NODES_WORK_ENDED) {
			node_end_all(n, d);
			d->is_gone = true;
		} else if (go_on && !is_silent && work == NODES_WORK_GOES_ON) {
			node_end_all(n, d); /* what it was before is another episode */
			node_begin(n, d, NODES_SILENT_REASON, now_ns);
		}
	}
}

static double score_of(const struct node *d, unsigned part)
{
	const double parts[] = {
		d->last.throughput, d->last.compute, d->last.memory, d->last.cpu, d->last.score};

	return parts[part];
}
#define PART_SCORE 4

static size_t collect(struct nodes *n, struct cohort *c, unsigned part, int64_t now_ns)
{
	struct node *d;
	size_t count = 0;

	LIST_FOREACH(d, &c->members, with[c->kind])
	if (node_counts(n, d, now_ns))
		n->values[count++] = score_of(d, part);
	spread_sort(n->values, count);
	return count;
}

/* How many nodes the job has, by its world size and the GPUs of a node. */
static uint32_t nodes_expected(struct cohort *c)
{
	uint32_t most = 0;
	struct node *d;

	LIST_FOREACH(d, &c->members, with[c->kind])
	{
		uint32_t gpus = MAX(d->last.gpu_count, 1u), world = d->last.who.world_size;

		most = MAX(most, (world + gpus - 1) / gpus);
	}
	return most;
}

static void compute_threshold(struct nodes *n, struct cohort *c, int64_t now_ns)
{
	struct threshold_input in = {.known = c->count, .expected = nodes_expected(c)};

	for (unsigned part = 0; part < ARRAY_SIZE(c->usual) && c->kind != COHORT_CLUSTER; part++)
		c->usual[part] = spread_median(n->values, collect(n, c, part, now_ns));
	in.count = collect(n, c, PART_SCORE, now_ns);
	in.sorted = n->values;
	threshold_update(&c->average, &n->settings, &in, &c->threshold);
}

static void compute(struct nodes *n, struct cohort *cluster, int64_t now_ns)
{
	struct cohort *c;
	struct node *d;

	compute_threshold(n, cluster, now_ns);
	LIST_FOREACH(c, &cluster->others, sibling)
	{
		if (c->kind != COHORT_PEERS)
			compute_threshold(n, c, now_ns);
		cohort_measure(n, c, now_ns);
	}
	LIST_FOREACH(d, &cluster->members, with[COHORT_CLUSTER])
	{
		if (d->is_fresh && node_counts(n, d, now_ns))
			node_judge(n, d, now_ns);
		d->is_fresh = false;
	}
	cluster->unjudged = 0;
}

/* A cluster that is not known well enough yet does not wait for its turn. */
static bool is_due(const struct cohort *cluster, int64_t now_ns)
{
	const struct threshold *t = &cluster->threshold;

	return now_ns >= cluster->due_ns || (cluster->unjudged && !t->quorum_met && !t->half_bad);
}

void nodes_tick(struct nodes *n, int64_t now_ns)
{
	int64_t interval_ns = (int64_t)n->settings.interval_ns;
	bool was_deaf = n->ticked_ns != INT64_MIN && now_ns - n->ticked_ns > 2 * interval_ns;
	struct cohort *cluster;

	n->ticked_ns = now_ns;
	LIST_FOREACH(cluster, &n->clusters, sibling)
	{
		if (was_deaf)
			cluster->deaf_ns = now_ns + (int64_t)nodes_ttl_ns(n);
		if (!is_due(cluster, now_ns))
			continue;
		expire(n, cluster, now_ns);
		compute(n, cluster, now_ns);
		cluster->due_ns = now_ns + interval_ns;
	}
	nodes_forget_gone(n);
}
