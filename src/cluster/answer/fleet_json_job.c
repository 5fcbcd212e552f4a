/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_json_job.c - jobs: ranks that meet in communicators, and the nodes they run on. */
#include "cluster/answer/fleet_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/answer/people.h"

struct seat { /* a rank of a job */
	uint32_t job;
	const struct who *who;
};

static int compare_seats(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;
	int nodes = strcmp(x->who->node, y->who->node);

	if (x->job != y->job)
		return (x->job > y->job) - (x->job < y->job);
	if (nodes)
		return nodes;
	return (x->who->rank > y->who->rank) - (x->who->rank < y->who->rank);
}

static void put_nodes(struct json_writer *w, const struct seat *s, size_t count)
{
	size_t i = 0;

	json_begin_array_member(w, "nodes");
	while (i < count) {
		const char *node = s[i].who->node;

		json_begin_object(w);
		json_string_member(w, "node", node);
		json_begin_array_member(w, "ranks");
		for (; i < count && strcmp(s[i].who->node, node) == 0; i++)
			s[i].who->rank >= 0 ? json_put_int(w, s[i].who->rank) : json_put_null(w);
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

static size_t list_seats(const struct calls_jobs *j, const struct people *p, struct seat *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < p->count; i++)
		if (j->of[p->who[i].worker] != CALLS_NO_JOB)
			ret[n++] = (struct seat){j->of[p->who[i].worker], &p->who[i]};
	if (n)
		qsort(ret, n, sizeof(*ret), compare_seats);
	return n;
}

static void put_job(struct json_writer *w, const char *cluster, const struct job_view *v,
	const struct seat *s, size_t count)
{
	json_begin_object(w);
	json_string_member(w, "cluster_id", cluster);
	fleet_json_comm_member(w, "comm", v->comm);
	json_int_member(w, "nranks", v->nranks);
	json_uint_member(w, "ranks", v->ranks);
	json_uint_member(w, "communicators", v->comms);
	json_int_member(w, "last_ns", v->last_ns);
	put_nodes(w, s, count);
	json_end_object(w);
}

static int put_jobs(struct json_writer *w, const struct calls *c, const char *cluster, size_t limit,
	size_t *total)
{
	_cleanup_(calls_jobs_done) struct calls_jobs jobs = {0};
	_cleanup_(people_done) struct people people = {0};
	_cleanup_free_ struct seat *seats = NULL;
	size_t count;

	if (calls_jobs(c, &jobs) < 0 || people_list(c, &people) < 0)
		return -ENOMEM;
	seats = calloc(people.count + 1, sizeof(*seats));
	if (!seats)
		return -ENOMEM;
	count = list_seats(&jobs, &people, seats);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && seats[end].job == seats[i].job;)
			end++;
		if ((*total)++ < limit)
			put_job(w, cluster, &jobs.items[seats[i].job], seats + i, end - i);
	}
	return 0;
}

int fleet_json_jobs(struct json_writer *w, struct fleet *f, const struct fleet_json_query *q)
{
	size_t cursor = 0, total = 0, limit = fleet_json_limit(q, FLEET_JSON_JOBS_MAX);
	const char *cluster;
	int r = 0;

	json_begin_object(w);
	json_begin_array_member(w, "jobs");
	while (r == 0 && fleet_json_next_cluster(f, q, &cursor, &cluster)) {
		const struct calls *c = fleet_calls(f, cluster);

		if (c)
			r = put_jobs(w, c, cluster, limit, &total);
	}
	json_end_array(w);
	json_uint_member(w, "total", total);
	json_end_object(w);
	return r;
}
