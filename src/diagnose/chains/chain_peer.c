/* SPDX-License-Identifier: Apache-2.0 */
/* chain_peer.c - who is at the other end of a pipe or a socket: a process of this machine, by who ended the waits,
 * or who listens on its port, else an address, by the rows of sends and receives. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "diagnose/accounts/kernel_thread.h"
#include "diagnose/chains/chain_private.h"
#include "diagnose/chains/chain.h"
#include "diagnose/rows/place.h"
#include "diagnose/thresholds.h"

#define PEERS_MAX 64

struct peer {
	char address[EVENT_PEER_MAX];
	uint64_t wait_ns, bytes;
	bool is_here;
	uint32_t pid; /* of who is there, on this machine; 0: not known */
};

struct peers {
	struct peer items[PEERS_MAX];
	int count;
	uint64_t wait_ns;
};

static struct peer *peer_get(struct peers *p, const struct event *e)
{
	char address[EVENT_PEER_MAX];
	int k = 0;

	event_peer(e, address);
	while (k < p->count && strcmp(p->items[k].address, address) != 0)
		k++;
	if (k == PEERS_MAX)
		return NULL;
	memcpy(p->items[k].address, address, sizeof(address));
	p->items[k].is_here = event_peer_is_here(e);
	p->count = MAX(p->count, k + 1);
	return &p->items[k];
}

/* Sends and receives of the job: a wait in poll() is followed by a receive that does not wait. */
static void add_transfers(const struct chain *c, struct peers *p)
{
	const struct event *e = NULL;

	while ((e = chain_event(c, SOURCE_NET, e))) {
		struct peer *x;

		if (e->pid != c->a->pid || !e->family)
			continue;
		x = peer_get(p, e);
		p->wait_ns += e->wait_ns;
		if (!x)
			continue;
		x->pid = e->peer_pid ? e->peer_pid : x->pid;
		x->wait_ns += e->wait_ns;
		x->bytes += e->arg1;
	}
}

static const struct peer *peer_most(const struct peers *p)
{
	const struct peer *most = NULL;

	for (int i = 0; i < p->count; i++) {
		const struct peer *x = &p->items[i];

		if (!most || x->wait_ns > most->wait_ns ||
			(x->wait_ns == most->wait_ns && x->bytes > most->bytes))
			most = x;
	}
	return most;
}

static bool is_pipe_or_socket(uint8_t line)
{
	return line == LEDGER_PIPE || line == LEDGER_SOCKET || line == LEDGER_POLL ||
	       line == LEDGER_CHILD || line == LEDGER_LOCK || line == LEDGER_STOPPED;
}

/* By the ledger's long stays: which other processes ended those of the job. */
static void add_wakers(const struct chain *c, struct program_sums *s)
{
	for (size_t i = 0; i < c->rec->ledger_count; i++) {
		const struct ledger_row *r = &c->rec->ledger[i];
		struct program *p;

		if (r->pid != c->a->pid || r->tid != c->a->tid || r->mark != MARK_STAY ||
			r->waker != WAKER_TASK || !r->waker_pid || r->waker_pid == r->pid ||
			!is_pipe_or_socket(r->stay_line) || !chain_time(c, ledger_end_ns(r) - 1))
			continue;
		p = program_get_last(c->rec, s, r->waker_pid, r->waker_comm);
		if (p)
			p->ns[0] += r->stay_ns;
	}
}

/* By the account: another process's time, or one that is the culprit of the job's. */
static void add_entries(const struct chain *c, struct program_sums *s)
{
	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];
		bool is_other = e->owner == OWNER_PROCESS && e->pid;
		uint32_t pid = is_other ? e->pid : e->culprit_pid;
		const char *comm = is_other ? e->comm : e->culprit;
		struct program *p;

		if (e->slow_ns <= e->ordinary_ns || !pid || pid == c->a->pid || !comm[0] ||
			(e->line != c->line && c->d->kind != DELAY_BY_PROCESS &&
				c->d->kind != DELAY_BY_LOADER) ||
			(!is_other && e->owner != OWNER_SELF && e->owner != OWNER_THREAD) ||
			kernel_thread_is(comm))
			continue;
		p = program_get_last(c->rec, s, pid, comm);
		if (p)
			p->ns[1] += account_entry_more(e);
	}
}

static const struct program *program_most(const struct program_sums *s, int by, uint64_t *ret_all)
{
	const struct program *most = NULL;

	*ret_all = 0;
	for (int i = 0; i < s->count; i++) {
		*ret_all += s->items[i].ns[by];
		if (s->items[i].ns[by] && (!most || s->items[i].ns[by] > most->ns[by]))
			most = &s->items[i];
	}
	return most;
}

static uint64_t grown_of(const struct chain *c, uint32_t pid)
{
	uint64_t ns = 0;

	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];

		if (e->owner == OWNER_PROCESS && e->pid == pid)
			ns += account_entry_more(e);
	}
	return ns;
}

/* Of several processes of one name those count that have more than a little of what the one with most has. */
static void keep_awaited(const struct chain *c, struct resource_use *ret, const struct program *p)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < p->pid_count; i++)
		most = MAX(most, grown_of(c, p->pids[i]));
	ret->count = 0;
	for (uint32_t i = 0; i < p->pid_count; i++) {
		uint64_t ns = grown_of(c, p->pids[i]);

		if ((double)ns < THRESHOLD(LITTLE) * (double)most)
			continue;
		ret->count++;
		ret->pid = p->pids[i];
	}
	ret->pid = ret->count == 1 ? ret->pid : 0;
}

/* What the job asks for while it waits for processes of @p, by the stacks of these waits: who holds the lock of a file, or
 * does not read what is written to it, is asked for nothing. */
static enum resource waited_for(const struct chain *c, const struct program *p)
{
	uint64_t locks = 0, writes = 0;

	if (c->d->kind != DELAY_BY_PROCESS && c->d->kind != DELAY_BY_LOCK)
		return RESOURCE_PROCESS;
	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];
		uint64_t ns = account_entry_more(e);
		const struct stack *s;

		if (e->owner != OWNER_PROCESS || !program_has(p, e->pid))
			continue;
		s = stack_find(c->rec->stacks, e->wait_hash);
		locks += s && place_is_file_lock(s) ? ns : 0;
		writes += s && place_is_output(s) ? ns : 0;
	}
	if (locks && (double)locks >= THRESHOLD(CHAIN_MOST) * (double)p->ns[1])
		return RESOURCE_FILE_LOCK;
	if (writes && (double)writes >= THRESHOLD(CHAIN_MOST) * (double)p->ns[1])
		return RESOURCE_PIPE_FULL;
	return RESOURCE_PROCESS;
}

static void frame_text(const struct chain *c, uint64_t hash, char *out, size_t size);

/* What it does meanwhile, if it is one and its line is known. */
static void put_doing(const struct chain *c, struct resource_use *ret)
{
	const struct account_entry *e = c->d->lead;
	char at[80] = "";

	if (e && e->owner == OWNER_PROCESS && e->pid == ret->pid)
		frame_text(c, e->stack_hash, at, sizeof(at));
	if (at[0])
		snprintf(ret->detail, sizeof(ret->detail), "meanwhile it is at %s", at);
}

static bool by_process(const struct chain *c, struct resource_use *ret)
{
	_cleanup_free_ struct program_sums *s = calloc(1, sizeof(*s));
	uint64_t grown = c->d->slow_ns - MIN(c->d->slow_ns, c->d->ordinary_ns), all;
	const struct program *most;

	if (!s)
		return false;
	ret->resource = RESOURCE_PROCESS;
	add_entries(c, s);
	most = program_most(s, 1, &all);
	if (most && (double)all >= THRESHOLD(CHAIN_MOST) * (double)grown) {
		ret->share = MIN((double)most->ns[1] / (double)MAX(grown, UINT64_C(1)), 1.0);
		ret->resource = waited_for(c, most);
		program_name(most, ret);
		if (ret->count > 1)
			keep_awaited(c, ret, most);
		if (ret->resource != RESOURCE_PROCESS)
			put_doing(c, ret);
		return true;
	}
	add_wakers(c, s);
	most = program_most(s, 0, &all);
	if (!most || (double)all < THRESHOLD(CHAIN_MOST) * (double)chain_lost_ns(c))
		return false;
	ret->share = MIN((double)most->ns[0] / (double)chain_lost_ns(c), 1.0);
	program_name(most, ret);
	return true;
}

/* Who is stopped, and by whom: both are to be named. */
bool chain_stop(const struct chain *c, struct resource_use *ret)
{
	_cleanup_free_ struct program_sums *s = calloc(2, sizeof(*s));
	uint64_t grown = c->d->slow_ns - MIN(c->d->slow_ns, c->d->ordinary_ns), known, all;
	const struct program *by, *on;

	for (int i = 0; s && i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];
		uint64_t ns = account_entry_more(e);
		struct program *p[2] = {NULL, NULL};

		if (e->line != ACCOUNT_STOPPED || !ns || !delay_has(c->rec, c->d->kind, e))
			continue;
		if (e->culprit_pid)
			p[0] = program_get_last(c->rec, &s[0], e->culprit_pid, e->culprit);
		if (e->pid && e->pid != c->a->pid)
			p[1] = program_get_last(c->rec, &s[1], e->pid, e->comm);
		for (int k = 0; k < 2; k++)
			if (p[k])
				p[k]->ns[0] += ns;
	}
	by = s ? program_most(&s[0], 0, &known) : NULL;
	on = s ? program_most(&s[1], 0, &all) : NULL;
	if (by && (double)known >= THRESHOLD(CHAIN_MOST) * (double)grown) {
		if (on && (double)all >= THRESHOLD(CHAIN_MOST) * (double)grown) {
			program_name(on, ret);
			memcpy(ret->on, ret->who, sizeof(ret->on));
			ret->on_pid = ret->pid;
			ret->on_count = ret->count;
		}
		program_name(by, ret);
		ret->resource = RESOURCE_STOPPER;
		ret->share = MIN((double)by->ns[0] / (double)MAX(grown, UINT64_C(1)), 1.0);
		return true;
	}
	if (!on || (double)all < THRESHOLD(CHAIN_MOST) * (double)grown)
		return false;
	program_name(on, ret);
	ret->resource = RESOURCE_PROCESS;
	ret->share = MIN((double)on->ns[0] / (double)MAX(grown, UINT64_C(1)), 1.0);
	return true;
}

/* *ret_waited: what of the loss was waited in these, as far as it is recorded. */
static bool by_address(const struct chain *c, struct resource_use *ret, double *ret_waited)
{
	_cleanup_free_ struct peers *p = calloc(1, sizeof(*p));
	const struct peer *most;

	if (!p || c->line != ACCOUNT_NETWORK)
		return false;
	add_transfers(c, p);
	most = peer_most(p);
	if (!most)
		return false;
	ret->resource = most->pid ? RESOURCE_PROCESS : RESOURCE_ADDRESS;
	ret->pid = most->pid;
	if (most->pid)
		process_words_last(c->rec, most->pid, "", ret->who);
	if (!ret->who[0])
		snprintf(ret->who, sizeof(ret->who), "%s", most->address);
	snprintf(ret->detail, sizeof(ret->detail), "%s%s%.1f MB in that time",
		most->pid       ? most->address
		: most->is_here ? "this machine"
				: "",
		most->pid || most->is_here ? ", " : "", (double)most->bytes / 1e6);
	ret->share = p->wait_ns ? (double)most->wait_ns / (double)p->wait_ns : 1;
	*ret_waited = (double)p->wait_ns / (double)MAX(chain_lost_ns(c), UINT64_C(1));
	return true;
}

/* A line of a program in Python that waits for an answer, other than by way of an event loop. */
static bool is_asking(const struct chain *c)
{
	const struct account_entry *lead = c->d->lead;
	const struct stack *s = lead ? stack_find(c->rec->stacks, lead->stack_hash) : NULL;
	const struct stack_frame *user = s ? stack_user_frame(s) : NULL;

	return user && stack_frame_is_python(user) && !place_is_event_loop(s);
}

/* What no thread ends and has no peer elsewhere waits for a timer of its own: an event loop whose tasks sleep, or somebody
 * who has set a time limit and gets no answer. */
static bool by_timer(const struct chain *c, struct resource_use *ret)
{
	uint64_t ns = 0;
	uint32_t waits = 0;

	if (c->line != ACCOUNT_NETWORK)
		return false;
	for (size_t i = 0; i < c->rec->ledger_count; i++) {
		const struct ledger_row *r = &c->rec->ledger[i];

		if (r->pid != c->a->pid || r->mark != MARK_STAY || r->stay_line != LEDGER_POLL ||
			(r->waker != WAKER_TIMER && r->waker != WAKER_INTERRUPT) ||
			place_is_driver_thread(r->comm) || !chain_time(c, ledger_end_ns(r) - 1))
			continue;
		ns += r->stay_ns;
		waits++;
	}
	ret->share = MIN((double)ns / (double)MAX(chain_lost_ns(c), UINT64_C(1)), 1.0);
	if (ret->share < THRESHOLD(CHAIN_MOST))
		return false;
	ret->resource = is_asking(c) ? RESOURCE_TIMEOUT : RESOURCE_TIMER;
	if (ret->resource == RESOURCE_TIMEOUT)
		snprintf(ret->detail, sizeof(ret->detail),
			"%" PRIu32 " waits of %.3g ms on average", waits,
			(double)ns / waits / NS_PER_MS);
	return true;
}

bool chain_peer(const struct chain *c, struct resource_use *ret)
{
	struct resource_use timer = {0};
	double waited = 0;

	if (by_process(c, ret)) {
		chain_delayed_ack(c, ret);
		return true;
	}
	*ret = (struct resource_use){0};
	if (by_address(c, ret, &waited)) {
		if (waited < THRESHOLD(CHAIN_MOST) && by_timer(c, &timer)) {
			*ret = timer;
			return true;
		}
		chain_delayed_ack(c, ret);
		return true;
	}
	*ret = (struct resource_use){0};
	return by_timer(c, ret);
}

/* What processes hand to each other is packed, sent through a pipe and unpacked. */

/* A process that begins imports what packs, too. */
static bool is_pickling(const struct stack *s)
{
	static const char *const imports[] = {"importlib", NULL};
	static const char *const files[] = {"multiprocessing/connection.py",
		"multiprocessing/reduction.py", "multiprocessing/queues.py", "/pickle.py",
		"/cloudpickle/", "torch/multiprocessing/reductions.py", NULL};

	return place_has_file(s, files) && !place_has_file(s, imports);
}

/* Who waits for a pipe does no packing. */
static bool is_busy(enum account_line line)
{
	return line == ACCOUNT_HOST || line == ACCOUNT_GIL || line == ACCOUNT_CPU ||
	       line == ACCOUNT_MEMORY;
}

bool chain_pickle(const struct chain *c, struct resource_use *ret)
{
	uint64_t all = 0, packing = 0;

	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];
		const struct stack *s = stack_find(c->rec->stacks, e->stack_hash);

		if (e->slow_ns <= e->ordinary_ns || !delay_has(c->rec, c->d->kind, e))
			continue;
		all += account_entry_more(e);
		if (s && is_busy(e->line) && is_pickling(s))
			packing += account_entry_more(e);
	}
	if (!packing || (double)packing < THRESHOLD(CHAIN_MOST) * (double)all)
		return false;
	if (c->d->kind != DELAY_BY_PROCESS || !by_process(c, ret))
		*ret = (struct resource_use){0};
	ret->resource = RESOURCE_PICKLE;
	ret->share = (double)packing / (double)all;
	return true;
}

/* Who holds a lock: the thread, and the line that it ran meanwhile. */

/* "train.py:42 (collate)", or the native function; "": the stack says nothing. */
static void frame_text(const struct chain *c, uint64_t hash, char *out, size_t size)
{
	const struct stack *s = stack_find(c->rec->stacks, hash);
	const struct stack_frame *f = s ? stack_user_frame(s) : NULL;

	if (s && !f)
		f = stack_place(s);
	out[0] = 0;
	if (f && stack_frame_is_python(f))
		snprintf(out, size, "%s:%" PRIu32 " (%s)", stack_base_name(f->py_file), f->py_line,
			f->py_func);
	else if (f && f->symbol && strcmp(f->symbol, "syscall") != 0)
		snprintf(out, size, "%s", f->symbol);
}

/* Who lets go of a file is not always seen; what the thread asked for is. */
static bool is_file_lock(const struct chain *c, const struct account_entry *e)
{
	const struct stack *s = stack_find(c->rec->stacks, e->stack_hash);

	return s && place_is_file_lock(s);
}

/* ---- locks of databases ---- */

static const char *database_of(const struct chain *c, uint64_t hash)
{
	const struct stack *s = stack_find(c->rec->stacks, hash);

	return s ? place_database(s) : NULL;
}

/* The process that uses such databases as well, if it is the only one: by where its threads ran and slept. */
static void name_other_user(const struct chain *c, const char *database, struct resource_use *ret)
{
	const struct event *other = NULL;

	for (size_t i = 0; i < c->rec->event_count; i++) {
		const struct event *e = &c->rec->events[i];
		const char *used = e->source == SOURCE_HOST && e->pid != c->a->pid
					   ? database_of(c, e->stack_hash)
					   : NULL;

		if (!used || strcmp(used, database) != 0)
			continue;
		if (other && other->pid != e->pid)
			return;
		other = e;
	}
	if (!other)
		return;
	process_words(c->rec, other->pid, other->comm, ret->who);
	ret->pid = other->pid;
}

static bool database_lock(const struct chain *c, struct resource_use *ret)
{
	const char *database = NULL;
	uint64_t locks = 0, all = 0;

	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];
		const char *of = e->line == c->line ? database_of(c, e->stack_hash) : NULL;

		all += e->line == c->line ? account_entry_more(e) : 0;
		locks += of ? account_entry_more(e) : 0;
		database = of ? of : database;
	}
	if (!database || (double)locks < THRESHOLD(CHAIN_MOST) * (double)all)
		return false;
	ret->resource = RESOURCE_DATABASE_LOCK;
	ret->share = (double)locks / (double)all;
	snprintf(ret->detail, sizeof(ret->detail), "%s", database);
	name_other_user(c, database, ret);
	return true;
}

bool chain_lock(const struct chain *c, struct resource_use *ret)
{
	const struct account_entry *most = NULL;
	uint64_t held = 0, all = 0, of_files = 0;

	if (database_lock(c, ret))
		return true;
	for (int i = 0; i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];

		if (e->line != c->line || e->slow_ns <= e->ordinary_ns)
			continue;
		all += account_entry_more(e);
		of_files += is_file_lock(c, e) ? account_entry_more(e) : 0;
		if (!e->culprit[0] || kernel_thread_is(e->culprit))
			continue;
		held += account_entry_more(e);
		if (!most || account_entry_more(e) > account_entry_more(most))
			most = e;
	}
	if (of_files > held) {
		ret->resource = RESOURCE_FILE_LOCK;
		ret->share = (double)of_files / (double)all;
		return true;
	}
	if (!most)
		return false;
	ret->resource = RESOURCE_LOCK;
	ret->pid = most->culprit_pid;
	snprintf(ret->who, sizeof(ret->who), "thread %s", most->culprit);
	frame_text(c, most->stack_hash, ret->detail, sizeof(ret->detail));
	ret->share = (double)held / (double)MAX(all, UINT64_C(1));
	return true;
}

/* ---- processes that take turns ---- */

/* The time of @r in which a process of @p waits for a lock that another of them lets go of. Where the program's own line is not
 * what asks for the lock it is idle: a library's queue has one, too. */
static uint64_t turn_ns(const struct chain *c, const struct program *p, const struct ledger_row *r)
{
	const struct stack *s = stack_find(c->rec->stacks, r->stack_hash);
	int64_t end = MIN(ledger_end_ns(r), c->to_ns);
	int64_t start = MAX(ledger_end_ns(r) - (int64_t)r->stay_ns, c->from_ns);
	size_t i = 0;

	if (!s || end <= start || r->mark != MARK_STAY || r->stay_line != LEDGER_LOCK ||
		r->tid != r->pid || r->waker != WAKER_TASK || r->waker_pid == r->pid ||
		!program_has(p, r->pid) || !program_has(p, r->waker_pid))
		return 0;
	while (i < s->count && (!stack_frame_is_python(&s->frames[i]) ||
				       strstr(s->frames[i].py_file, "/synchronize.py")))
		i++;
	return i < s->count && stack_frame_is_user(&s->frames[i]) ? (uint64_t)(end - start) : 0;
}

bool chain_turns(const struct chain *c, struct resource_use *ret)
{
	_cleanup_free_ struct program_sums *s = calloc(1, sizeof(*s));
	uint64_t all = 0, longest = 0;
	struct program *p = NULL;

	for (int i = 0; s && i < c->a->entry_count; i++) {
		const struct account_entry *e = &c->a->entries[i];

		if (e->owner > OWNER_THREAD && e->pid && delay_has(c->rec, c->d->kind, e))
			p = program_get(c->rec, s, e->pid, e->comm);
	}
	if (!p || s->count > 1 || p->pid_count < 2)
		return false;
	for (size_t i = 0; i < c->rec->ledger_count; i++) {
		const struct ledger_row *r = &c->rec->ledger[i];
		uint64_t ns = turn_ns(c, p, r);

		all += ns;
		if (ns <= longest)
			continue;
		longest = ns;
		ret->stack_hash = r->stack_hash;
	}
	if ((double)all <
		THRESHOLD(CHAIN_MOST) * (double)p->pid_count * (double)(c->to_ns - c->from_ns))
		return false;
	ret->resource = RESOURCE_LOCK;
	ret->share = 1;
	program_name(p, ret);
	return true;
}
