/* SPDX-License-Identifier: Apache-2.0 */
/* blame_match.c - which calls belong together: those of a collective by (communicator, sequence
 * number), the n-th Send of a worker to another with its n-th Recv.
 *
 * Sequence numbers of Send and Recv count per peer or per communicator, depending on who wrote the
 * calls. They are used where both sides have the same ones; else the order is, from the first or the
 * last call on, whichever lets fewer messages arrive before they were sent. */
#include "blame/blame_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "stat/robust.h"

#define DENSE_FACTOR 2 /* numbers for each call, at most, for an array of them */
#define DENSE_MORE   16
#define SEQ_SHARE    0.8 /* of the side with fewer calls that must agree */

struct job_member {
	uint32_t comm, worker; /* comm: index + 1; 0: free */
	int32_t rank;
};

struct table { /* from 64-bit keys to numbers in order of appearance */
	struct slot {
		uint64_t key, more;
		uint32_t number; /* + 1; 0: free */
	} * slots;
	size_t size; /* power of two, at least twice as many as are entered */
	uint32_t used;
};

static void table_done(struct table *t)
{
	free(t->slots);
}

static int table_init(struct table *t, size_t entries)
{
	t->size = 64;
	while (t->size < entries * 2)
		t->size *= 2;
	t->slots = calloc(t->size, sizeof(*t->slots));
	return t->slots ? 0 : -ENOMEM;
}

static int table_grow(struct table *t)
{
	struct table wider = {.size = t->size * 2, .used = t->used};

	wider.slots = calloc(wider.size, sizeof(*wider.slots));
	if (!wider.slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->size; i++) {
		size_t at;

		if (!t->slots[i].number)
			continue;
		at = hash_number(t->slots[i].key ^ hash_number(t->slots[i].more));
		while (wider.slots[at & (wider.size - 1)].number)
			at++;
		wider.slots[at & (wider.size - 1)] = t->slots[i];
	}
	free(t->slots);
	*t = wider;
	return 0;
}

/* The number of (@key, @more), given now if it has none. */
static int table_number(struct table *t, uint64_t key, uint64_t more, uint32_t *ret)
{
	size_t at = hash_number(key ^ hash_number(more));
	struct slot *s;

	for (;; at++) {
		s = &t->slots[at & (t->size - 1)];
		if (!s->number)
			break;
		if (s->key == key && s->more == more) {
			*ret = s->number - 1;
			return 0;
		}
	}
	*s = (struct slot){key, more, t->used + 1};
	*ret = t->used++;
	return (size_t)t->used * 2 > t->size ? table_grow(t) : 0;
}

static size_t rank_slot(uint32_t comm, int32_t rank, size_t size)
{
	return hash_number((uint64_t)comm << 32 | (uint32_t)rank) & (size - 1);
}

/* Of rank @rank of communicator @comm (an index); JOB_NONE: not seen. */
static uint32_t blame_worker_of(const struct job *j, uint32_t comm, int32_t rank)
{
	for (size_t at = rank_slot(comm, rank, j->ranks_size);;
		at = (at + 1) & (j->ranks_size - 1)) {
		const struct job_member *m = &j->ranks[at];

		if (!m->comm)
			return JOB_NONE;
		if (m->comm == comm + 1 && m->rank == rank)
			return m->worker;
	}
}

static void enter_rank(struct job *j, uint32_t comm, int32_t rank, uint32_t worker)
{
	size_t at = rank_slot(comm, rank, j->ranks_size);

	while (j->ranks[at].comm) {
		if (j->ranks[at].comm == comm + 1 && j->ranks[at].rank == rank)
			return; /* two claim it: the first is believed */
		at = (at + 1) & (j->ranks_size - 1);
	}
	j->ranks[at] = (struct job_member){comm + 1, worker, rank};
}

/* comms[] and the communicator of each item; how many (worker, communicator) there are. */
static int find_comms(struct job *j, struct table *ids, size_t *ret_memberships)
{
	size_t room = 0, memberships = 0;

	for (size_t i = 0; i < j->item_count; i++) {
		const struct push_call *c = job_call(j, (uint32_t)i);
		uint32_t worker = job_item_worker(j, (uint32_t)i), n;
		struct job_comm *m;
		int r = table_number(ids, c->comm, 0, &n);

		if (r < 0)
			return r;
		if (n == j->comm_count) {
			if (n == room) {
				size_t more = MAX(room * 2, (size_t)64);
				void *p = realloc(j->comms, more * sizeof(*j->comms));

				if (!p)
					return -ENOMEM;
				j->comms = p;
				room = more;
			}
			j->comms[j->comm_count++] = (struct job_comm){
				.id = c->comm, .first_seq = UINT64_MAX, .last_worker = JOB_NONE};
		}
		m = &j->comms[n];
		j->items[i].comm = n;
		if (m->last_worker != worker) {
			m->last_worker = worker;
			m->members++;
			memberships++;
		}
		if (c->nranks > 0)
			m->nranks = MAX(m->nranks, (uint32_t)c->nranks);
		if (blame_is_pair(c->op))
			continue;
		m->collectives++;
		m->bytes += MIN(c->bytes, UINT64_C(1) << 40);
		m->first_seq = MIN(m->first_seq, c->seq);
		m->last_seq = MAX(m->last_seq, c->seq);
	}
	*ret_memberships = memberships;
	return 0;
}

static int enter_ranks(struct job *j, size_t memberships)
{
	j->ranks_size = 64;
	while (j->ranks_size < memberships * 2)
		j->ranks_size *= 2;
	j->ranks = calloc(j->ranks_size, sizeof(*j->ranks));
	if (!j->ranks)
		return -ENOMEM;
	for (size_t i = 0; i < j->comm_count; i++)
		j->comms[i].last_worker = JOB_NONE;
	for (size_t i = 0; i < j->item_count; i++) {
		uint32_t worker = job_item_worker(j, (uint32_t)i), comm = j->items[i].comm;

		if (j->comms[comm].last_worker == worker)
			continue;
		j->comms[comm].last_worker = worker;
		enter_rank(j, comm, job_call(j, (uint32_t)i)->rank, worker);
	}
	return 0;
}

/* Whether the numbers of @m are too far apart for an array of them. */
static bool is_sparse(const struct job_comm *m)
{
	return m->collectives &&
	       m->last_seq - m->first_seq >= DENSE_FACTOR * (uint64_t)m->collectives + DENSE_MORE;
}

/* Sequence numbers far apart: those that occur, so that a match has a place among them. All communicators at once: somebody
 * may send a great many. */
static int list_seqs(struct job *j)
{
	for (size_t i = 0; i < j->comm_count; i++) {
		struct job_comm *m = &j->comms[i];

		if (!is_sparse(m))
			continue;
		m->seqs = calloc(m->collectives, sizeof(*m->seqs));
		if (!m->seqs)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < j->item_count; i++) {
		struct job_comm *m = &j->comms[j->items[i].comm];

		if (m->seqs && !blame_is_pair(j->items[i].op))
			m->seqs[m->seq_count++] = job_call(j, i)->seq;
	}
	for (size_t i = 0; i < j->comm_count; i++) {
		struct job_comm *m = &j->comms[i];
		size_t n = m->seq_count;

		robust_sort(m->seqs, n);
		m->seq_count = 0;
		for (size_t k = 0; k < n; k++)
			if (!m->seq_count || m->seqs[m->seq_count - 1] != m->seqs[k])
				m->seqs[m->seq_count++] = m->seqs[k];
	}
	return 0;
}

static uint32_t seq_place(const struct job_comm *m, uint64_t seq)
{
	size_t low = 0, high = m->seq_count;

	if (!m->seqs)
		return (uint32_t)(seq - m->first_seq);
	while (low + 1 < high) {
		size_t mid = (low + high) / 2;

		if (m->seqs[mid] <= seq)
			low = mid;
		else
			high = mid;
	}
	return (uint32_t)low;
}

static int match_collectives(struct job *j)
{
	if (list_seqs(j) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->comm_count; i++) {
		struct job_comm *m = &j->comms[i];

		m->match = (uint32_t)j->match_count;
		if (m->collectives)
			j->match_count += m->seqs ? m->seq_count : m->last_seq - m->first_seq + 1;
	}
	for (size_t i = 0; i < j->item_count; i++) {
		const struct job_comm *m = &j->comms[j->items[i].comm];

		if (!blame_is_pair(j->items[i].op))
			j->items[i].match = m->match + seq_place(m, job_call(j, (uint32_t)i)->seq);
	}
	return 0;
}

struct pair_call { /* a Send or Recv, of the pair (communicator, sender, receiver) */
	uint32_t pair, item;
	bool receives;
};

/* By pair, the Sends first; the order within stays. */
static int sort_pairs(struct pair_call **list, size_t n, uint32_t pairs)
{
	_cleanup_free_ size_t *at = calloc(2 * (size_t)pairs + 2, sizeof(*at));
	_cleanup_free_ struct pair_call *sorted = calloc(n + 1, sizeof(*sorted));
	struct pair_call *unsorted = *list;

	if (!at || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		at[2 * (size_t)unsorted[i].pair + unsorted[i].receives + 1]++;
	for (size_t i = 0; i < 2 * (size_t)pairs; i++)
		at[i + 1] += at[i];
	for (size_t i = 0; i < n; i++)
		sorted[at[2 * (size_t)unsorted[i].pair + unsorted[i].receives]++] = unsorted[i];
	*list = TAKE(sorted);
	free(unsorted);
	return 0;
}

static int list_pairs(struct job *j, struct pair_call **ret, size_t *ret_count)
{
	_cleanup_(table_done) struct table ids = {0};
	_cleanup_free_ struct pair_call *list = NULL;
	size_t n = 0;

	for (size_t i = 0; i < j->item_count; i++)
		n += blame_is_pair(j->items[i].op);
	list = calloc(n + 1, sizeof(*list));
	if (!list || table_init(&ids, 64) < 0)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < j->item_count; i++) {
		const struct push_call *c;
		uint32_t worker = job_item_worker(j, i), peer;
		bool receives = j->items[i].op == NCCL_RECV;

		if (!blame_is_pair(j->items[i].op))
			continue;
		c = job_call(j, i);
		peer = blame_worker_of(j, j->items[i].comm, c->peer);
		if (peer == JOB_NONE || peer == worker)
			continue;
		list[n] = (struct pair_call){.item = i, .receives = receives};
		if (table_number(&ids, (uint64_t)j->items[i].comm,
			    receives ? (uint64_t)peer << 32 | worker
				     : (uint64_t)worker << 32 | peer,
			    &list[n].pair) < 0)
			return -ENOMEM;
		/* the same call told twice */
		if (n && i && list[n - 1].item == i - 1 && list[n - 1].pair == list[n].pair &&
			list[n - 1].receives == receives && job_call(j, i - 1)->seq == c->seq &&
			j->items[i - 1].enter_ns == j->items[i].enter_ns)
			continue;
		n++;
	}
	if (sort_pairs(&list, n, ids.used) < 0)
		return -ENOMEM;
	*ret = TAKE(list);
	*ret_count = n;
	return 0;
}

static void join(struct job *j, const struct pair_call *send, const struct pair_call *receive)
{
	j->items[send->item].match = j->items[receive->item].match = (uint32_t)j->match_count++;
}

/* By sequence number, or only counts how many would be. */
static size_t join_by_seq(struct job *j, const struct pair_call *sends, size_t n,
	const struct pair_call *receives, size_t m, bool doing)
{
	size_t i = 0, k = 0, found = 0;

	while (i < n && k < m) {
		uint64_t x = job_call(j, sends[i].item)->seq,
			 y = job_call(j, receives[k].item)->seq;

		if (x == y) {
			found += j->items[receives[k].item].leave_ns >=
				 j->items[sends[i].item].enter_ns -
					 (int64_t)MIN(
						 blame_error(j, job_item_worker(j, sends[i].item),
							 job_item_worker(j, receives[k].item)),
						 (uint64_t)INT32_MAX);
			if (doing)
				join(j, &sends[i], &receives[k]);
			i++;
			k++;
		} else if (x < y) {
			i++;
		} else {
			k++;
		}
	}
	return found;
}

static size_t early_count(const struct job *j, const struct pair_call *sends,
	const struct pair_call *receives, size_t n)
{
	size_t early = 0;

	for (size_t i = 0; i < n; i++)
		early += j->items[receives[i].item].leave_ns < j->items[sends[i].item].enter_ns;
	return early;
}

static void match_pair(struct job *j, const struct pair_call *sends, size_t n,
	const struct pair_call *receives, size_t m)
{
	size_t fewer = MIN(n, m);

	if (!fewer)
		return;
	if (push_call_is_numbered(job_call(j, sends->item)) &&
		push_call_is_numbered(job_call(j, receives->item)) &&
		(double)join_by_seq(j, sends, n, receives, m, false) >= SEQ_SHARE * (double)fewer) {
		join_by_seq(j, sends, n, receives, m, true);
		return;
	}
	if (n != m && early_count(j, sends + n - fewer, receives + m - fewer, fewer) <=
			      early_count(j, sends, receives, fewer)) {
		sends += n - fewer;
		receives += m - fewer;
	}
	for (size_t i = 0; i < fewer; i++)
		join(j, &sends[i], &receives[i]);
}

static int match_pairs(struct job *j)
{
	_cleanup_free_ struct pair_call *list = NULL;
	size_t n, next;
	int r = list_pairs(j, &list, &n);

	for (size_t i = 0; r == 0 && i < n; i = next) {
		size_t sends = 0;

		for (next = i; next < n && list[next].pair == list[i].pair; next++)
			sends += !list[next].receives;
		match_pair(j, list + i, sends, list + i + sends, next - i - sends);
	}
	return r;
}

/* members[], and who came last. A worker's second call of the same collective is left out. */
static int list_members(struct job *j)
{
	_cleanup_free_ uint32_t *seen = calloc(j->match_count + 1, sizeof(*seen));
	uint32_t sum = 0;

	j->matches = calloc(j->match_count + 1, sizeof(*j->matches));
	j->members = calloc(j->item_count + 1, sizeof(*j->members));
	if (!seen || !j->matches || !j->members)
		return -ENOMEM;
	for (uint32_t i = 0; i < j->item_count; i++) {
		uint32_t m = j->items[i].match, worker = job_item_worker(j, i);

		if (m == JOB_NONE)
			continue;
		if (seen[m] == worker + 1) { /* items are in order of workers */
			j->items[i].match = JOB_NONE;
			continue;
		}
		seen[m] = worker + 1;
		j->matches[m].count++;
	}
	for (size_t m = 0; m < j->match_count; m++) {
		j->matches[m].first = sum;
		sum += j->matches[m].count > 1 ? j->matches[m].count : 0;
	}
	memset(seen, 0, (j->match_count + 1) * sizeof(*seen));
	for (uint32_t i = 0; i < j->item_count; i++) {
		uint32_t m = j->items[i].match;

		if (m != JOB_NONE && j->matches[m].count > 1)
			j->members[j->matches[m].first + seen[m]++] = i;
		else
			j->items[i].match = JOB_NONE;
		/* what a rank sends to itself has no other end */
		j->unmatched += j->items[i].match == JOB_NONE &&
				(!blame_is_pair(j->items[i].op) ||
					job_call(j, i)->peer != job_call(j, i)->rank);
	}
	return 0;
}

/* match of each item, which may be the only one with that number. */
static int number_matches(struct job *j)
{
	_cleanup_(table_done) struct table ids = {0};
	size_t memberships;
	int r = table_init(&ids, 1024);

	r = r < 0 ? r : find_comms(j, &ids, &memberships);
	r = r < 0 ? r : enter_ranks(j, memberships);
	r = r < 0 ? r : match_collectives(j);
	return r < 0 ? r : match_pairs(j);
}

int blame_match(struct job *j)
{
	int r = number_matches(j);

	return r < 0 ? r : list_members(j);
}

static int list_meetings(const struct job *j, struct blame_meetings *ret)
{
	_cleanup_free_ size_t *at = calloc(j->match_count + 1, sizeof(*at));
	size_t sum = 0;

	ret->calls = calloc(j->item_count + 1, sizeof(*ret->calls));
	ret->first = calloc(j->match_count + 1, sizeof(*ret->first));
	if (!at || !ret->calls || !ret->first)
		return -ENOMEM;
	for (size_t i = 0; i < j->item_count; i++)
		if (j->items[i].match != JOB_NONE)
			at[j->items[i].match]++;
	for (size_t m = 0; m < j->match_count; m++) {
		size_t n = at[m];

		at[m] = sum;
		if (n)
			ret->first[ret->count++] = sum;
		sum += n;
	}
	ret->first[ret->count] = sum;
	for (size_t i = 0; i < j->item_count; i++)
		if (j->items[i].match != JOB_NONE)
			ret->calls[at[j->items[i].match]++] = j->items[i].call;
	return 0;
}

int blame_meet(const struct blame_worker *workers, size_t worker_count,
	const struct blame_call *calls, size_t call_count, struct blame_meetings *ret)
{
	_cleanup_(blame_job_done) struct job j = {.workers = workers,
		.calls = calls,
		.worker_count = worker_count,
		.call_count = call_count};
	int r = blame_load(&j);

	*ret = (struct blame_meetings){0};
	r = r < 0 ? r : number_matches(&j);
	r = r < 0 ? r : list_meetings(&j, ret);
	if (r < 0)
		blame_meetings_done(ret);
	return r;
}

void blame_meetings_done(struct blame_meetings *m)
{
	free(m->calls);
	free(m->first);
	*m = (struct blame_meetings){0};
}
