/* SPDX-License-Identifier: Apache-2.0 */
/* explainer.c - see explainer.h.
 *
 * What the tracer sees goes into an inbox; the explaining side takes the inbox away and leaves an
 * empty one. The lock is held for that exchange and for one copy at a time, and the tracer's side
 * only ever tries to take it: if the other has it, because it was preempted just then, or if the
 * inbox is full, what was seen is missing in the live picture (and counted); it is stored all the
 * same, and the books do not know of any of this.
 *
 * Rows have no number before they are stored, so the evidence of a live incident is its query. */
#include "record/trace/explainer.h"

#include <sys/resource.h>
#include <time.h>

#include "base/mutex.h"
#include "diagnose/contrasts/account_task.h"
#include "diagnose/compose/diagnose.h"
#include "diagnose/live/live_window.h"
#include "base/log.h"

#define NICENESS 10
#define WAIT_S   1 /* the inbox is taken away at least so often */

struct inbox_list {
	void *items;
	size_t count, capacity;
};

struct inbox {
	struct inbox_list events, aggregates, samples, gpus, collectives, ledger, containers;
	struct inbox_list stacks; /* struct inbox_stack */
};

struct inbox_stack {
	struct stack *stack;
	size_t bytes;
};

struct explainer {
	struct explainer_config config;
	char node[256];
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* under the mutex */
	struct inbox inbox;
	struct accounting books;
	bool check_due, stop_due;
	struct explainer_finding *findings; /* NULL: none */
	size_t finding_count;
	uint64_t dropped_findings;
	struct step_counter steps;
	/* the tracer's side */
	uint64_t dropped_inputs;
	unsigned buckets;
	/* the explaining side */
	struct inbox taken;
	struct live_window live_window;
	struct incident_tracker book;
	struct step_counter step_counter;
};

static void inbox_done(struct inbox *b)
{
	const struct inbox_stack *stacks = b->stacks.items;

	for (size_t i = 0; i < b->stacks.count; i++)
		free(stacks[i].stack);
	free(b->stacks.items);
	free(b->ledger.items);
	free(b->containers.items);
	free(b->events.items);
	free(b->aggregates.items);
	free(b->samples.items);
	free(b->gpus.items);
	free(b->collectives.items);
}

/* ---- the tracer's side ---- */

static bool inbox_put(struct inbox_list *l, const void *item, size_t size, size_t max)
{
	if (l->count == l->capacity) {
		size_t cap = MIN(MAX(l->capacity * 2, (size_t)16), max);
		void *p = cap > l->capacity ? reallocarray(l->items, cap, size) : NULL;

		if (!p)
			return false;
		l->items = p;
		l->capacity = cap;
	}
	memcpy((char *)l->items + l->count++ * size, item, size);
	return true;
}

/* False: it was dropped, and counted. */
static bool put(
	struct explainer *x, struct inbox_list *l, const void *item, size_t size, size_t max)
{
	bool is_filling, is_in;

	if (pthread_mutex_trylock(&x->mutex)) {
		x->dropped_inputs++;
		return false;
	}
	is_in = inbox_put(l, item, size, max);
	x->dropped_inputs += !is_in;
	is_filling = l->count == max / 2;
	pthread_mutex_unlock(&x->mutex);
	if (is_filling)
		pthread_cond_signal(&x->wake);
	return is_in;
}

void explainer_event(struct explainer *x, const struct event *e)
{
	if (live_window_wants(e))
		put(x, &x->inbox.events, e, sizeof(*e), EXPLAINER_EVENTS_MAX);
}

void explainer_aggregate(struct explainer *x, const struct aggregate *a)
{
	if (live_window_wants_aggregate(a))
		put(x, &x->inbox.aggregates, a, sizeof(*a), EXPLAINER_AGGREGATES_MAX);
}

void explainer_sample(struct explainer *x, const struct host_sample *s)
{
	put(x, &x->inbox.samples, s, sizeof(*s), EXPLAINER_SAMPLES_MAX);
}

void explainer_gpu(struct explainer *x, const struct gpu_sample *s)
{
	put(x, &x->inbox.gpus, s, sizeof(*s), EXPLAINER_GPUS_MAX);
}

void explainer_collective(struct explainer *x, const struct event *e, const struct collective *c)
{
	struct collective_row row = {.start = e->start,
		.dur_ns = e->dur_ns,
		.pid = e->pid,
		.tid = e->tid,
		.op = e->op,
		.device = e->device,
		.ret = e->ret,
		.stream = e->stream,
		.c = *c};

	snprintf(row.node, sizeof(row.node), "%s", x->node);
	put(x, &x->inbox.collectives, &row, sizeof(row), EXPLAINER_COLLECTIVES_MAX);
}

void explainer_ledger(struct explainer *x, const struct ledger_row *row)
{
	put(x, &x->inbox.ledger, row, sizeof(*row), EXPLAINER_LEDGER_MAX);
}

void explainer_container(struct explainer *x, const struct container_sample *s)
{
	put(x, &x->inbox.containers, s, sizeof(*s), EXPLAINER_CONTAINERS_MAX);
}

void explainer_stack(struct explainer *x, const struct stack *s)
{
	struct inbox_stack copy = {0};

	copy.stack = stack_copy(s, &copy.bytes);
	if (!copy.stack)
		x->dropped_inputs++;
	else if (!put(x, &x->inbox.stacks, &copy, sizeof(copy), EXPLAINER_STACKS_MAX))
		free(copy.stack);
}

void explainer_look(struct explainer *x, const struct accounting *books)
{
	if (++x->buckets < EXPLAINER_BUCKETS_MIN || pthread_mutex_trylock(&x->mutex))
		return;
	x->books = *books;
	x->check_due = true;
	pthread_mutex_unlock(&x->mutex);
	pthread_cond_signal(&x->wake);
}

void explainer_poll(struct explainer *x, explainer_sink *sink, void *arg)
{
	_cleanup_free_ struct explainer_finding *findings = NULL;
	size_t count;

	if (pthread_mutex_trylock(&x->mutex))
		return;
	findings = TAKE(x->findings);
	count = x->finding_count;
	x->finding_count = 0;
	pthread_mutex_unlock(&x->mutex);
	for (size_t i = 0; i < count; i++)
		sink(arg, &findings[i]);
}

bool explainer_steps(struct explainer *x, struct step_counter *ret)
{
	if (pthread_mutex_trylock(&x->mutex))
		return false;
	*ret = x->steps;
	pthread_mutex_unlock(&x->mutex);
	return true;
}

struct explainer_dropped explainer_dropped(const struct explainer *x)
{
	return (struct explainer_dropped){x->dropped_inputs, x->dropped_findings};
}

/* ---- the explaining side ---- */

static void find(
	void *arg, const struct incident *i, wall_time detected, enum incident_change change)
{
	struct explainer *x = arg;

	MUTEX_HELD(&x->mutex);
	x->findings = x->findings ?: calloc(EXPLAINER_FINDINGS_MAX, sizeof(*x->findings));
	if (x->findings && x->finding_count < EXPLAINER_FINDINGS_MAX)
		x->findings[x->finding_count++] = (struct explainer_finding){*i, detected, change};
	else
		x->dropped_findings++;
}

/* What is left when memory runs out is freed here: the list owns it no more. */
static int empty_stacks(struct explainer *x, struct inbox_list *l)
{
	const struct inbox_stack *stacks = l->items;
	int r = 0;

	for (size_t i = 0; i < l->count; i++) {
		if (r == 0)
			r = live_window_add_stack(
				&x->live_window, stacks[i].stack, stacks[i].bytes);
		else
			free(stacks[i].stack);
	}
	l->count = 0;
	return r;
}

#define INBOX_EMPTY(list, add, type)                                                               \
	for (size_t i = 0; r == 0 && i < (list).count; i++)                                        \
		r = add(&x->live_window, (const type *)(list).items + i);                          \
	(list).count = 0

static int inbox_empty(struct explainer *x, struct inbox *b)
{
	int r = empty_stacks(x, &b->stacks);

	INBOX_EMPTY(b->events, live_window_add_event, struct event);
	INBOX_EMPTY(b->aggregates, live_window_add_aggregate, struct aggregate);
	INBOX_EMPTY(b->samples, live_window_add_sample, struct host_sample);
	INBOX_EMPTY(b->gpus, live_window_add_gpu, struct gpu_sample);
	INBOX_EMPTY(b->collectives, live_window_add_collective, struct collective_row);
	INBOX_EMPTY(b->ledger, live_window_add_ledger, struct ledger_row);
	INBOX_EMPTY(b->containers, live_window_add_container, struct container_sample);
	return r;
}

static int count_steps(struct explainer *x, struct account_task *accounts, wall_time now)
{
	int r = account_task_end(accounts);

	if (r < 0)
		return r;
	step_counter_update(&x->step_counter, &accounts->report, now, LIVE_WINDOW_NS);
	MUTEX_HELD(&x->mutex);
	x->steps = x->step_counter;
	return 0;
}

static int look(struct explainer *x, const struct accounting *books)
{
	_cleanup_(account_task_done) struct account_task accounts = {0};
	_cleanup_free_ struct incident *found = NULL;
	wall_time now = x->config.clock();
	struct recording rec;
	size_t count;
	int r = 0;

	live_window_recording(&x->live_window, now, &rec);
	rec.books = books;
	rec.node = x->node;
	if (!rec.aggregate_count && !rec.ledger_count)
		return 0; /* nothing says what is ordinary */
	if (x->config.wants_steps) {
		account_task_begin(&accounts, &rec, false);
		r = count_steps(x, &accounts, now);
		rec.accounts = &accounts;
	}
	r = r ?: diagnose_run(&rec, &found, &count);
	if (r < 0)
		return r;
	return incident_tracker_update(&x->book, found, count, now,
		(wall_time){now.ns - LIVE_WINDOW_NS - INCIDENT_TRACKER_QUIET_NS}, find, x);
}

int explainer_step(struct explainer *x)
{
	struct accounting books;
	struct inbox empty;
	bool is_due;
	int r;

	pthread_mutex_lock(&x->mutex);
	empty = x->taken;
	x->taken = x->inbox;
	x->inbox = empty;
	is_due = x->check_due;
	x->check_due = false;
	books = x->books;
	pthread_mutex_unlock(&x->mutex);
	r = inbox_empty(x, &x->taken);
	return r == 0 && is_due ? look(x, &books) : r;
}

/* True: this is the last time. */
static bool wait_for_work(struct explainer *x)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_S;
	MUTEX_HELD(&x->mutex);
	if (!x->check_due && !x->stop_due)
		pthread_cond_timedwait(&x->wake, &x->mutex, &until);
	return x->stop_due;
}

static void *run(void *arg)
{
	struct explainer *x = arg;
	bool is_last;

	(void)pthread_setname_np(pthread_self(), "ingero-explain");
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
	if (x->config.begin)
		x->config.begin(x->config.begin_arg);
	do {
		is_last = wait_for_work(x);
		if (explainer_step(x) < 0)
			log_warning("not enough memory to explain while tracing");
	} while (!is_last);
	return NULL;
}

/* ---- start and stop ---- */

int explainer_new(const struct explainer_config *config, struct explainer **ret)
{
	struct explainer *x = calloc(1, sizeof(*x));
	pthread_condattr_t monotonic;

	if (!x)
		return -ENOMEM;
	x->config = *config;
	x->config.clock = x->config.clock ?: wall_now;
	snprintf(x->node, sizeof(x->node), "%s", config->node ? config->node : "");
	pthread_mutex_init(&x->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&x->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*ret = x;
	return 0;
}

int explainer_start(struct explainer *x)
{
	int err = pthread_create(&x->thread, NULL, run, x);

	x->has_thread = err == 0;
	return -err;
}

void explainer_stop(struct explainer *x, const struct accounting *books)
{
	pthread_mutex_lock(&x->mutex);
	if (books)
		x->books = *books;
	x->check_due = x->stop_due = true;
	pthread_mutex_unlock(&x->mutex);
	if (x->has_thread) {
		pthread_cond_signal(&x->wake);
		pthread_join(x->thread, NULL);
		x->has_thread = false;
	} else if (explainer_step(x) < 0) {
		log_warning("not enough memory to explain while tracing");
	}
}

void explainer_free(struct explainer *x)
{
	incident_tracker_done(&x->book);
	live_window_done(&x->live_window);
	inbox_done(&x->inbox);
	inbox_done(&x->taken);
	free(x->findings);
	pthread_mutex_destroy(&x->mutex);
	pthread_cond_destroy(&x->wake);
	free(x);
}
