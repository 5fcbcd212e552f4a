/* SPDX-License-Identifier: Apache-2.0 */
/* blame_link.c - communications that take long themselves: all have come, and the job waits for the transfer.
 *
 * What a communication takes is counted from when the last one came until it could go on: of a collective on
 * the last one's own clock, of a message until its receiver had it. What of that lies on the critical path is
 * what the job waits for. It is compared with peers: links between the same stages, within a node or across
 * nodes alike, and communicators of the same size that do the same with as many bytes. Who has no peers, or is
 * like them, is compared with its own past. Nobody is blamed for it.
 *
 * Nor is a link slow that leads to or from a stage which is slow itself. A collective that is slower than before makes steps
 * longer by as much: where it seems to take more, hosts have come to be further ahead of their GPUs, and wait for their work in it.
 *
 * A host that runs ahead of its GPU posts calls long before they begin, so that its GPU's work would look like
 * a transfer: of a job in which calls are left before all have come nothing is said. */
#include "blame/blame_job.h"
#include "blame/comm_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/hash.h"
#include "stat/robust.h"

#define LOOKED_SHARE  0.01 /* of the job's time, on the path: less is not looked at */
#define NAMED_SHARE   0.02
#define AHEAD_SHARE   0.05 /* of the calls that are left before all have come */
#define FACTOR        2.0  /* longer than usual */
#define FACTOR_ALONE  3.0  /* likewise, than the only peer */
#define LASTING       1.5  /* likewise, in */
#define LASTING_SHARE 0.6  /* of the communications */
#define SAMPLES_LEAST 8    /* of one kind; likewise of its past */
#define PEERS_FEW     2    /* that it takes to tell the usual */
#define EXCESS_NS     1000000
#define GROUP_NS      100000 /* Sends and Recvs of one group begin within */
#define GROUP_NEAR    3      /* calls before and after that are looked at */
#define PAST_PARTS    3      /* the first of them is the past, the last the present */
#define GROWN_MOST    1.25   /* times what steps have grown by */
#define BETWEEN_SHARE 0.1    /* of the times of a collective: on the way from its past */
#define GROWN_PARTS   12     /* of its time, each of SAMPLES_LEAST at least */
#define SHORTER_SHARE 0.25   /* of a part */

struct taken { /* one communication */
	uint32_t kind;
	int64_t at_ns;
	uint32_t match;
	float ns;
};

struct kind { /* communications that should take equally long: taken[first .. first + count), by time */
	size_t first, count;
	uint32_t match;        /* one of them */
	uint64_t role, looser; /* peers have the same; looser where too few do */
	double path_ns;
	float median, past, now;
	double grown_ns,
		step_grown_ns; /* from past to now, in a step: all of its communications, and the step */
	uint64_t error_ns;
};

/* The receiver's call of a message; of a collective the last one's. */
static uint32_t end_of(const struct job *j, const struct job_match *m)
{
	for (uint32_t k = 0; k < m->count; k++)
		if (j->items[j->members[m->first + k]].op == NCCL_RECV)
			return j->members[m->first + k];
	return m->last;
}

static bool is_message(const struct job *j, const struct job_match *m)
{
	return blame_is_pair(j->items[m->last].op);
}

/* A group of Sends and Recvs ends as a whole: whether what @item waits for is one with another peer, too. */
static bool is_grouped(const struct job *j, uint32_t item)
{
	const struct job_item *t = &j->items[item];
	size_t first = j->first[t->worker], end = j->first[t->worker + 1];

	for (size_t i = item > first + GROUP_NEAR ? item - GROUP_NEAR : first;
		i < MIN(end, (size_t)item + GROUP_NEAR + 1); i++) {
		const struct job_item *o = &j->items[i];

		if (blame_is_pair(o->op) && llabs(o->enter_ns - t->enter_ns) <= GROUP_NS &&
			job_call(j, (uint32_t)i)->peer != job_call(j, item)->peer)
			return true;
	}
	return false;
}

/* What belongs together was told by when it ended: with the call before it, its transfer is what comes between. */
static bool is_supposed(const struct job *j, const struct job_match *m)
{
	return job_call(j, m->last)->seq >= COMM_JOIN_MADE_UP;
}

/* What the transfer took, as far as somebody waited for it; 0: not known. */
static float took(const struct job *j, const struct job_match *m)
{
	const struct job_item *e = &j->items[end_of(j, m)];

	int64_t from = MAX(m->arrival_ns, e->start_ns);

	return (float)MAX(e->leave_ns - from, INT64_C(0));
}

/* Sizes that are alike: a quarter of an octave. */
static uint64_t size_class(uint64_t bytes)
{
	int log = bytes ? 63 - __builtin_clzll(bytes) : 0;

	return (uint64_t)log << 2 | ((log > 2 ? bytes >> (log - 2) : bytes) & 3);
}

static uint64_t key_of(const struct job *j, const struct job_match *m)
{
	const struct push_call *c = job_call(j, end_of(j, m));
	uint64_t key =
		hash_number(c->comm ^ hash_number(size_class(c->bytes) ^ (uint64_t)c->op << 48));

	if (!is_message(j, m))
		return key;
	return hash_number(key ^ ((uint64_t)(uint32_t)c->rank << 32 | (uint32_t)c->peer));
}

/* How many changes of the node there are from member to member. */
static uint32_t node_changes(const struct job *j, const struct job_match *m)
{
	uint32_t n = 0;

	for (uint32_t k = 1; k < m->count; k++)
		n += !blame_is_one_node(j, job_item_worker(j, j->members[m->first + k]),
			job_item_worker(j, j->members[m->first + k - 1]));
	return n;
}

static void set_roles(const struct job *j, struct kind *k)
{
	const struct job_match *m = &j->matches[k->match];
	const struct push_call *c = job_call(j, end_of(j, m));
	uint32_t a = job_item_worker(j, j->members[m->first]);
	uint32_t b = job_item_worker(j, j->members[m->first + m->count - 1]);
	uint64_t role = hash_number(
		size_class(c->bytes) ^ (uint64_t)c->op << 48 ^ (uint64_t)m->count << 32);

	k->looser = k->role = hash_number(role ^ node_changes(j, m));
	if (is_message(j, m))
		k->role = hash_number(
			k->role ^ ((uint64_t)(uint32_t)j->stage[a] << 32 | (uint32_t)j->stage[b]));
}

/* Calls that are left before all have come: the host does not wait in them. */
static bool runs_ahead(const struct job *j)
{
	size_t all = 0, ahead = 0;

	for (size_t i = 0; i < j->item_count; i++) {
		const struct job_item *t = &j->items[i];
		const struct job_match *m;
		uint64_t error;

		if (t->match == JOB_NONE || t->op == NCCL_SEND)
			continue;
		m = &j->matches[t->match];
		error = blame_error(j, t->worker, job_item_worker(j, m->last));
		all++;
		ahead += t->leave_ns + (int64_t)error < m->arrival_ns;
	}
	return (double)ahead > AHEAD_SHARE * (double)all;
}

/* Messages that come while the receiver is busy are there already: of a step the longest tells. Sorted by time;
 * how many are left. */
static size_t keep_longest(const struct job *j, struct taken *t, size_t n)
{
	size_t kept = 0, step = 0, last = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		while (step + 1 < j->step_count && j->cuts[step + 1] <= t[i].at_ns)
			step++;
		if (step != last)
			t[kept++] = t[i];
		else if (t[i].ns > t[kept - 1].ns)
			t[kept - 1].ns = t[i].ns;
		last = step;
	}
	return kept;
}

static float median_of(const struct taken *t, size_t n, float *room)
{
	for (size_t i = 0; i < n; i++)
		room[i] = t[i].ns;
	return blame_median(room, n);
}

/* Median length of the steps from @from_ns to @to_ns, and how many there are. @room has room for all. */
static float steps_between(
	const struct job *j, int64_t from_ns, int64_t to_ns, float *room, size_t *ret_count)
{
	size_t n = 0;

	for (size_t s = 0; s < j->step_count; s++)
		if (j->cuts[s + 1] > from_ns && j->cuts[s] <= to_ns)
			room[n++] = (float)(j->cuts[s + 1] - j->cuts[s]);
	*ret_count = n;
	return blame_median(room, n);
}

/* What of the path @n communications are. */
static double path_of(const struct job *j, const struct taken *t, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)j->transfer[t[i].match];
	return sum;
}

/* The first @part of @k's communications against the last. */
static void set_past(
	const struct job *j, const struct taken *t, size_t part, float *room, struct kind *k)
{
	const struct taken *now = t + k->count - part;
	size_t steps[2];
	float before = steps_between(j, t[0].at_ns, t[part - 1].at_ns, room, &steps[0]);
	float since = steps_between(j, now[0].at_ns, now[part - 1].at_ns, room, &steps[1]);

	k->past = median_of(t, part, room);
	k->now = median_of(now, part, room);
	k->step_grown_ns = (double)(since - before);
	k->grown_ns = path_of(j, now, part) / (double)MAX(steps[1], (size_t)1) -
		      path_of(j, t, part) / (double)MAX(steps[0], (size_t)1);
}

static int list_kinds(
	const struct job *j, struct taken *t, size_t n, struct kind **ret, size_t *ret_count)
{
	_cleanup_free_ float *room = calloc(MAX(n, j->step_count) + 1, sizeof(*room));
	_cleanup_free_ struct kind *list = calloc(n + 1, sizeof(*list));
	size_t count = 0, next;

	if (!room || !list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i = next) {
		struct kind k = {.first = i, .match = t[i].match};
		size_t part;

		for (next = i; next < n && t[next].kind == t[i].kind; next++) {
			const struct job_match *m = &j->matches[t[next].match];
			uint64_t error = blame_error(
				j, job_item_worker(j, m->last), job_item_worker(j, end_of(j, m)));

			k.path_ns += (double)j->transfer[t[next].match];
			k.error_ns = MAX(k.error_ns, error);
		}
		k.count = next - i;
		if (is_message(j, &j->matches[k.match]))
			k.count = keep_longest(j, t + i, k.count);
		if (k.count < SAMPLES_LEAST)
			continue;
		part = k.count / PAST_PARTS;
		k.median = median_of(t + i, k.count, room);
		if (part >= SAMPLES_LEAST)
			set_past(j, t + i, part, room, &k);
		set_roles(j, &k);
		list[count++] = k;
	}
	*ret = TAKE(list);
	*ret_count = count;
	return 0;
}

/* Lower median of the medians of @k's peers; 0: there are none. */
static float usual_of_peers(const struct kind *list, size_t n, const struct kind *k, bool loose,
	float *room, size_t *ret_count)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (&list[i] != k &&
			(loose ? list[i].looser == k->looser : list[i].role == k->role))
			room[count++] = list[i].median;
	*ret_count = count;
	return blame_median(room, count);
}

/* From where on most are long: what follows has the most long ones beyond short ones; up to the last long one. */
static void set_since(const struct taken *t, const struct kind *k, struct blame_transfer *s)
{
	long score = 0, best = 0;

	s->since_ns = t[k->first].at_ns;
	s->until_ns = 0;
	for (size_t i = k->first + k->count; i-- > k->first;) {
		bool is_long = (double)t[i].ns >= LASTING * (double)s->usual_ns;

		score += is_long ? 1 : -1;
		if (is_long && !s->until_ns)
			s->until_ns = t[i].at_ns;
		if (score <= best)
			continue;
		best = score;
		s->since_ns = t[i].at_ns;
	}
}

/* Whether it takes longer than @usual, in most communications of the part that is looked at. */
static bool is_slow(const struct taken *t, const struct kind *k, size_t from, float median,
	float usual, double factor)
{
	size_t lasting = 0;

	if (usual <= 0 || (double)median < factor * (double)usual || median - usual < EXCESS_NS ||
		median - usual < 2 * (float)k->error_ns)
		return false;
	for (size_t i = k->first + from; i < k->first + k->count; i++)
		lasting += t[i].ns >= (float)LASTING * usual;
	return (double)lasting >= LASTING_SHARE * (double)(k->count - from);
}

/* Whether it has grown as work does whose input grows. What a network does to it is there or not. Of each part of the time the
 * shorter ones count: who leaves last may do so milliseconds after the others, but not each time. */
static bool has_grown_slowly(const struct taken *t, const struct kind *k, uint64_t *room)
{
	size_t size = MAX(k->count / GROWN_PARTS, (size_t)SAMPLES_LEAST), parts = 0;
	uint64_t *scratch = room + k->count;

	for (size_t first = 0; first + size <= k->count; first += size) {
		for (size_t i = 0; i < size; i++)
			scratch[i] = (uint64_t)t[k->first + first + i].ns;
		robust_sort(scratch, size);
		room[parts++] = robust_quantile(scratch, size, SHORTER_SHARE);
	}
	return robust_on_the_way(room, parts, (uint64_t)k->now, scratch) >= BETWEEN_SHARE;
}

/* By its peers; if it is like them, or has none, by its own past: all may have become slower. */
static void compare(const struct taken *t, const struct kind *list, size_t n, const struct kind *k,
	float *room, uint64_t *lengths, struct blame_transfer *s)
{
	size_t peers, past = k->count - k->count / PAST_PARTS;
	float usual = usual_of_peers(list, n, k, false, room, &peers);

	if (peers < PEERS_FEW)
		usual = usual_of_peers(list, n, k, true, room, &peers);
	s->took_ns = (uint64_t)k->median;
	s->usual_ns = (uint64_t)usual;
	s->is_slow = is_slow(t, k, 0, k->median, usual, peers < PEERS_FEW ? FACTOR_ALONE : FACTOR);
	if (s->is_slow || k->now <= 0)
		return;
	s->is_slow = is_slow(t, k, past, k->now, k->past, FACTOR) &&
		     (s->from != UINT32_MAX || (k->grown_ns <= GROWN_MOST * k->step_grown_ns &&
						       !has_grown_slowly(t, k, lengths)));
	s->by_past = s->is_slow || usual <= 0;
	if (!s->by_past)
		return;
	s->took_ns = (uint64_t)k->now;
	s->usual_ns = (uint64_t)k->past;
}

/* What a stage computes behind a Send that its host has posted already looks like its transfer. */
static bool is_of_slow_stage(const struct job *j, const struct blame_transfer *t)
{
	double span = (double)(j->cuts[j->step_count] - j->cuts[0]);

	if (t->from == UINT32_MAX || j->stage_count < 2)
		return false;
	for (int32_t s = 0; s < j->stage_count; s++)
		if ((j->stage[t->from] == s || j->stage[t->to] == s) &&
			j->stage_ratio[s] >= JOB_STAGE_RATIO &&
			j->stage_cost_ns[s] >= NAMED_SHARE * span)
			return true;
	return false;
}

static void judge(const struct job *j, const struct taken *t, const struct kind *list, size_t n,
	const struct kind *k, float *room, uint64_t *lengths, struct blame *b)
{
	const struct job_match *m = &j->matches[k->match];
	const struct job_item *e = &j->items[end_of(j, m)];
	const struct push_call *c = job_call(j, end_of(j, m));
	double span = (double)(j->cuts[j->step_count] - j->cuts[0]);
	struct blame_transfer s = {.comm = c->comm,
		.bytes = c->bytes,
		.op = c->op,
		.from = UINT32_MAX,
		.to = UINT32_MAX,
		.ranks = m->count,
		.count = k->count,
		.path_ns = (uint64_t)k->path_ns};

	if (is_message(j, m)) {
		s.to = e->worker;
		s.from = job_item_worker(j, j->members[m->first]) == s.to
				 ? job_item_worker(j, j->members[m->first + 1])
				 : job_item_worker(j, j->members[m->first]);
	}
	compare(t, list, n, k, room, lengths, &s);
	if (s.took_ns > s.usual_ns && s.usual_ns)
		s.lost_ns = (uint64_t)(k->path_ns * (1 - (double)s.usual_ns / (double)s.took_ns));
	s.share = MIN((double)s.lost_ns / span, 1.0);
	s.is_slow = s.is_slow && s.share >= NAMED_SHARE && !is_of_slow_stage(j, &s);
	set_since(t, k, &s);
	b->transfers[b->transfer_count++] = s;
}

ORDER(by_path, struct kind, DESCENDING(path_ns))

struct slot {
	uint64_t key;
	uint32_t kind; /* + 1; 0: free */
};

/* The number of @key, given now if it has none; *count of them have one. */
static uint32_t number_of(struct slot *slots, size_t size, uint64_t key, uint32_t *count)
{
	size_t at = key & (size - 1);

	while (slots[at].kind && slots[at].key != key)
		at = (at + 1) & (size - 1);
	if (!slots[at].kind)
		slots[at] = (struct slot){key, ++*count};
	return slots[at].kind - 1;
}

/* All that were waited for, by kind. Matches of a kind are in the order of their time, and stay so. */
static int list_taken(const struct job *j, struct taken **ret, size_t *ret_count)
{
	size_t size = 64, n = 0;
	_cleanup_free_ struct taken *list = calloc(j->match_count + 1, sizeof(*list));
	_cleanup_free_ struct taken *sorted = calloc(j->match_count + 1, sizeof(*sorted));
	_cleanup_free_ struct slot *slots = NULL;
	_cleanup_free_ size_t *first = NULL;
	uint32_t kinds = 0;

	while (size < 2 * j->match_count)
		size *= 2;
	slots = calloc(size, sizeof(*slots));
	if (!list || !sorted || !slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->match_count; i++) {
		const struct job_match *m = &j->matches[i];
		float ns;

		if (m->count < 2 || m->arrival_ns < j->cuts[0])
			continue;
		ns = took(j, m);
		if (ns <= 0 || is_supposed(j, m) ||
			(is_message(j, m) && (j->is_guessed || is_grouped(j, end_of(j, m)))))
			continue;
		list[n++] = (struct taken){
			number_of(slots, size, key_of(j, m), &kinds), m->arrival_ns, i, ns};
	}
	first = calloc((size_t)kinds + 2, sizeof(*first));
	if (!first)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		first[list[i].kind + 1]++;
	for (uint32_t k = 0; k < kinds; k++)
		first[k + 1] += first[k];
	for (size_t i = 0; i < n; i++)
		sorted[first[list[i].kind]++] = list[i];
	*ret = TAKE(sorted);
	*ret_count = n;
	return 0;
}

int blame_link(const struct job *j, struct blame *b)
{
	double all = 0, least = LOOKED_SHARE * (double)(j->cuts[j->step_count] - j->cuts[0]);
	_cleanup_free_ struct taken *taken = NULL;
	_cleanup_free_ struct kind *kinds = NULL;
	_cleanup_free_ float *room = NULL;
	_cleanup_free_ uint64_t *lengths = NULL;
	size_t n, count;

	for (size_t m = 0; m < j->match_count; m++)
		all += (double)j->transfer[m];
	if (all < least || runs_ahead(j))
		return 0;
	if (list_taken(j, &taken, &n) < 0 || list_kinds(j, taken, n, &kinds, &count) < 0)
		return -ENOMEM;
	room = calloc(count + 1, sizeof(*room));
	lengths = calloc(2 * n + 1, sizeof(*lengths));
	if (!room || !lengths)
		return -ENOMEM;
	qsort(kinds, count, sizeof(*kinds), by_path);
	for (size_t i = 0; i < MIN(count, (size_t)BLAME_TRANSFERS_MAX); i++)
		if (kinds[i].path_ns >= least)
			judge(j, taken, kinds, count, &kinds[i], room, lengths, b);
	return 0;
}
