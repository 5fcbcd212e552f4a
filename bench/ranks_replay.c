/* SPDX-License-Identifier: Apache-2.0 */
/* ranks_replay.c - recordings of ranks, played to the cluster service's core as their agents would have sent them, by
 * the recordings' clocks and not by this machine's: the same recordings always give the same answers.
 *
 *	ranks_replay [--causes] NODE=FILE[@SHIFT_NS[,PID]]...
 *
 * A line of JSON each time that what the service says changes, and when it has brought calls together for the first time:
 * {"at_ns":…,"settled":…,"held":…,"episodes":[…]}. SHIFT_NS is added to the
 * node's times to get those of the service's clock; with PID, only that process is the node's. With
 * --causes the engine is asked why ranks are late, as agents do. tests/gpu/ranks.py --replay compares the lines with what was put in. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "cluster/detect/fleet.h"
#include "json/writer.h"
#include "node/push/pusher_private.h"
#include "push/push.h"
#include "store/read/nodedb_recent.h"

#define NODES_MAX  16
#define ROWS_MAX   (4u << 20)
#define WRITTEN_NS (100 * (int64_t)NS_PER_MS) /* the writer's batch */
#define ARRIVES_NS (5 * (int64_t)NS_PER_MS)   /* on the way to the service */
#define TICK_NS    (100 * (int64_t)NS_PER_MS)
/* A collective that nobody waits for is handed on once another one comes so much later, or with the second
 * (record/capture/waits.c). */
#define HELD_NS  (100 * (int64_t)NS_PER_MS)
#define LATE_MAX 16
#define FIND_NS  (700 * (int64_t)NS_PER_MS) /* what the engine takes */

struct entry {
	int64_t at_ns; /* it can be read in the recording, by the node's clock */
	struct collective_row row;
};

struct rank {
	int32_t rank;
	struct push_haste haste;
};

struct node {
	char name[PUSH_ID_MAX];
	const char *path;
	int64_t shift_ns;
	uint32_t pid; /* 0: all */
	struct entry *entries;
	size_t count, room, next;
	struct idmap processes;
	struct pusher_calls calls;
	int64_t look_ns, second_ns; /* by the node's clock */
	uint64_t batch;
	bool is_hasty;
	/* Why ranks are late (node/push/pusher_cause.c). */
	struct push_report found[LATE_MAX];
	int found_count;
	uint32_t asked[LATE_MAX];
	size_t asked_count;
	int64_t ask_ns, found_ns; /* it is asked again; it arrives. 0: nothing is under way */
	unsigned fruitless;
};

struct replay {
	struct node nodes[NODES_MAX];
	size_t node_count;
	struct fleet *fleet;
	bool has_causes;
	uint64_t said; /* hash */
	bool is_seen;
};

static struct rank *rank_of(struct node *n, uint32_t pid)
{
	struct rank *p = idmap_get(&n->processes, pid);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || idmap_put(&n->processes, pid, p) < 0)
		abort();
	p->rank = -1;
	return p;
}

static int take_process(void *arg, const struct recent_process *row)
{
	rank_of(arg, row->pid)->rank = row->rank;
	return 0;
}

static int take_row(void *arg, int64_t row _unused_, const struct collective_row *c)
{
	struct node *n = arg;

	if (!c || (n->pid && c->pid != n->pid))
		return 0;
	if (ARRAY_RESERVE(n->entries, n->room, n->count + 1, ROWS_MAX) < 0)
		return -ENOMEM;
	n->entries[n->count++] = (struct entry){collective_left_ns(c), *c};
	return 0;
}

static int visit(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	int r = nodedb_recent_processes(l, take_process, arg, reterr);

	return r < 0 ? r : nodedb_recent_collectives(l, 0, ROWS_MAX, take_row, arg, reterr);
}

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->row.start.ns > y->row.start.ns) - (x->row.start.ns < y->row.start.ns);
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->at_ns != y->at_ns ? (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns)
				    : by_start(a, b);
}

/* When each row was in the file. */
static void set_times(struct node *n)
{
	size_t later = 0;

	qsort(n->entries, n->count, sizeof(*n->entries), by_start);
	for (size_t i = 0; i < n->count; i++) {
		struct entry *e = &n->entries[i];

		while (later < n->count &&
			n->entries[later].row.start.ns < e->row.start.ns + HELD_NS)
			later++;
		if (e->row.c.wait_ns < 0)
			e->at_ns =
				MIN(later < n->count ? n->entries[later].row.start.ns : INT64_MAX,
					e->row.start.ns + (int64_t)NS_PER_S);
		e->at_ns += WRITTEN_NS;
	}
	qsort(n->entries, n->count, sizeof(*n->entries), by_time);
}

static int node_load(struct node *n, const char *spec, struct errinfo *reterr)
{
	const char *path = strchr(spec, '=');
	char *at = path ? strrchr(path, '@') : NULL, *end;
	int r;

	if (!path)
		return errinfo_set(reterr, -EINVAL, "give NODE=FILE, not %s", spec);
	*n = (struct node){.path = path + 1, .processes = IDMAP_INIT(65536)};
	snprintf(n->name, sizeof(n->name), "%.*s", (int)(path - spec), spec);
	if (at) {
		n->shift_ns = strtoll(at + 1, &end, 10);
		n->pid = *end == ',' ? (uint32_t)strtoul(end + 1, NULL, 10) : 0;
		*at = 0;
	}
	pusher_calls_init(&n->calls);
	r = nodedb_snapshot_read(n->path, visit, n, reterr);

	if (r == 0 && n->count == 0)
		r = errinfo_set(reterr, -ENODATA, "%s has no collectives", n->path);
	if (r < 0)
		return r;
	set_times(n);
	n->look_ns = n->entries[0].at_ns;
	return 0;
}

static bool is_new(const struct node *n, uint32_t pid)
{
	for (size_t i = 0; i < n->asked_count; i++)
		if (n->asked[i] == pid)
			return false;
	return true;
}

/* As pusher_cause_ask(), with what the reply to the last batch says. */
static void node_ask(struct replay *p, struct node *n)
{
	uint32_t pids[LATE_MAX];
	size_t count = fleet_late(p->fleet, "replay", n->name, pids, LATE_MAX);
	bool any_new = count != n->asked_count;

	for (size_t i = 0; i < count; i++)
		any_new |= is_new(n, pids[i]);
	if (!p->has_causes || !count || n->found_ns || (!any_new && n->look_ns < n->ask_ns))
		return;
	n->fruitless = any_new ? 0 : n->fruitless;
	memcpy(n->asked, pids, sizeof(pids));
	n->asked_count = count;
	n->found_count = pusher_cause_find(n->path, pids, count, n->look_ns, n->found, NULL);
	n->found_ns = n->look_ns + FIND_NS;
	n->ask_ns = n->found_ns + (pusher_cause_is_whole(n->found, n->found_count, count)
						  ? 10
						  : 1 << MIN(n->fruitless++, 5u)) *
					  (int64_t)NS_PER_S;
}

static void node_explain(struct replay *p, struct node *n)
{
	if (!n->found_ns || n->look_ns < n->found_ns)
		return;
	n->found_ns = 0;
	for (int i = 0; i < n->found_count; i++) {
		struct push_report *r = &n->found[i];

		r->who = (struct push_who){.rank = -1, .boot = 1, .cluster = "replay"};
		memcpy(r->who.node, n->name, sizeof(n->name));
		r->world_rank = rank_of(n, r->pid)->rank;
		(void)fleet_take_report(p->fleet, r, n->look_ns + n->shift_ns + ARRIVES_NS);
	}
}

/* What an agent does every PUSH_HASTE_NS (node/push/pusher.c). */
static void node_look(struct replay *p, struct node *n)
{
	struct push_calls c = {.batch = n->batch + 1, .sent_ns = n->look_ns};
	struct calls_taken taken;

	for (; n->next < n->count && n->entries[n->next].at_ns <= n->look_ns; n->next++) {
		const struct collective_row *row = &n->entries[n->next].row;
		struct rank *q = rank_of(n, row->pid);
		const struct push_call left = {.leave_ns = row->start.ns + (int64_t)row->dur_ns +
							   MAX(row->c.wait_ns, INT64_C(0))};

		n->is_hasty |= push_haste_take(&q->haste, &left);
		if (pusher_calls_add(&n->calls, row, q->rank, row->start) < 0)
			abort();
	}
	while ((n->is_hasty || n->look_ns >= n->second_ns) && n->calls.count) {
		if (pusher_calls_take(&n->calls, PUSHER_BATCH_CALLS, &c) < 0)
			abort();
		c.batch = ++n->batch;
		c.who = (struct push_who){.rank = -1, .boot = 1, .cluster = "replay"};
		memcpy(c.who.node, n->name, sizeof(n->name));
		(void)fleet_take_calls(p->fleet, &c, n->look_ns + n->shift_ns + ARRIVES_NS, &taken);
		free(c.items);
		node_ask(p, n);
	}
	node_explain(p, n);
	if (n->look_ns >= n->second_ns)
		n->second_ns = n->look_ns + (int64_t)NS_PER_S;
	n->is_hasty = false;
	n->look_ns += PUSH_HASTE_NS;
}

static void put_episode(struct json_writer *w, const struct fleet_episode *e)
{
	json_begin_object(w);
	json_uint_member(w, "id", e->id);
	json_string_member(w, "problem", fleet_problem_id(e->problem));
	json_string_member(w, "node", e->node);
	if (e->rank < 0)
		json_null_member(w, "rank");
	else
		json_int_member(w, "rank", e->rank);
	json_int_member(w, "stage", e->stage);
	json_bool_member(w, "provisional", e->provisional);
	json_string_member(w, "text", e->text);
	json_string_member(w, "cause", e->cause);
	json_end_object(w);
}

static void say(struct replay *p, int64_t now_ns)
{
	_cleanup_buf_ struct buf b = BUF_INIT(16u << 20);
	struct fleet_episode e;
	struct json_writer w = json_writer_to_buf(&b);
	const struct calls *calls = fleet_calls(p->fleet, "replay");
	uint64_t said, settled = calls ? calls_settled(calls) : 0;
	size_t cursor = 0, from;

	json_begin_object(&w);
	json_int_member(&w, "at_ns", now_ns);
	json_uint_member(&w, "settled", settled);
	json_uint_member(&w, "held", calls ? calls_stats(calls).held : 0);
	from = b.len;
	json_begin_array_member(&w, "episodes");
	while (fleet_episode_next(p->fleet, "replay", &cursor, &e))
		put_episode(&w, &e);
	json_end_array(&w);
	json_end_object(&w);
	if (json_finish(&w) < 0)
		abort();
	said = hash_bytes(buf_str(&b) + from, b.len - from);
	if (said != p->said || (settled && !p->is_seen))
		fputs(buf_str(&b), stdout);
	p->said = said;
	p->is_seen |= settled > 0;
}

static int64_t next_look(const struct replay *p, struct node **ret)
{
	int64_t at = INT64_MAX;

	for (size_t i = 0; i < p->node_count; i++) {
		const struct node *n = &p->nodes[i];

		if (n->look_ns + n->shift_ns < at) {
			at = n->look_ns + n->shift_ns;
			*ret = (struct node *)n;
		}
	}
	return at;
}

static void play(struct replay *p)
{
	struct node *n = NULL;
	int64_t now = next_look(p, &n), end = 0;

	for (size_t i = 0; i < p->node_count; i++) {
		const struct node *x = &p->nodes[i];

		end = MAX(end, x->entries[x->count - 1].at_ns + x->shift_ns);
	}
	while (now < end + (int64_t)NS_PER_S) {
		while (next_look(p, &n) <= now)
			node_look(p, n);
		now += TICK_NS;
		fleet_tick(p->fleet, now);
		say(p, now);
	}
}

int main(int argc, char **argv)
{
	static struct replay p;
	struct fleet_settings s = fleet_defaults;
	struct errinfo e = {0};

	s.nodes = nodes_defaults;
	s.calls = calls_defaults;
	if (argc < 2 || argc - 1 > NODES_MAX) {
		fputs("usage: ranks_replay [--causes] NODE=FILE[@SHIFT_NS[,PID]]...\n", stderr);
		return 2;
	}
	p.has_causes = !strcmp(argv[1], "--causes");
	for (int i = 1 + p.has_causes; i < argc; i++)
		if (node_load(&p.nodes[p.node_count++], argv[i], &e) < 0) {
			fprintf(stderr, "ranks_replay: %s\n", e.text);
			return 1;
		}
	if (fleet_new(&s, &p.fleet) < 0)
		return 1;
	play(&p);
	return 0;
}
