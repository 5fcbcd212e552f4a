/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_ask.c - questions: what they read, the connections they run on, and their deadlines.
 *
 * Any thread asks, on a connection of its own for the time. A thread interrupts those that are over their
 * deadline, again and again: an interrupt that comes before the statement has begun is lost. */

#include "base/mutex.h"
#include "cluster/store/store_duck_private.h"

#define IDLE_MAX 8                /* connections that are kept for the next question */
#define AGAIN_NS (20 * NS_PER_MS) /* between two interrupts of the same */
#define SUSPECT_NS                                                                                 \
	(60 * NS_PER_S) /* a sum that was right is not looked at again by whoever makes errors */

struct asking {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	pthread_t thread;
	bool started, end, is_hurried;
	struct ask *running;
	struct duck_connection *idle[IDLE_MAX];
	size_t idle_count;
};

/* ---- deadlines ---- */

/* Interrupts those that are late; when to look again. */
static uint64_t interrupt_late(struct asking *a, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct ask *k = a->running; k; k = k->next) {
		if (a->is_hurried || k->deadline_ns <= now) {
			k->late = true;
			duck_interrupt(k->connection);
			next = MIN(next, now + AGAIN_NS);
		} else {
			next = MIN(next, k->deadline_ns);
		}
	}
	return next;
}

static void *watch_deadlines(void *arg)
{
	struct asking *a = arg;

	MUTEX_HELD(&a->mutex);
	while (!a->end) {
		uint64_t next = interrupt_late(a, mono_now().ns);
		struct timespec at = {(time_t)(next / NS_PER_S), (long)(next % NS_PER_S)};

		if (next == UINT64_MAX)
			pthread_cond_wait(&a->changed, &a->mutex);
		else
			pthread_cond_timedwait(&a->changed, &a->mutex, &at);
	}
	return NULL;
}

int asking_new(struct asking **ret)
{
	struct asking *a = calloc(1, sizeof(*a));
	pthread_condattr_t monotonic;

	if (!a)
		return -ENOMEM;
	pthread_mutex_init(&a->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&a->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	a->started = pthread_create(&a->thread, NULL, watch_deadlines, a) == 0;
	*ret = a;
	return a->started ? 0 : -EAGAIN;
}

void asking_free(struct asking *a)
{
	pthread_mutex_lock(&a->mutex);
	a->end = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->mutex);
	if (a->started)
		pthread_join(a->thread, NULL);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->mutex);
	free(a);
}

/* ---- connections ---- */

int connection_get(struct store_duck *s, struct duck_connection **ret, struct errinfo *reterr)
{
	struct asking *a = s->asking;
	struct duck_connection *c = NULL;

	pthread_mutex_lock(&a->mutex);
	if (a->idle_count)
		c = a->idle[--a->idle_count];
	pthread_mutex_unlock(&a->mutex);
	if (!c)
		return duck_connect(s->duck, ret, reterr);
	*ret = c;
	return 0;
}

void connection_put(struct asking *a, struct duck_connection *c)
{
	pthread_mutex_lock(&a->mutex);
	if (a->idle_count < IDLE_MAX)
		a->idle[a->idle_count++] = TAKE(c);
	pthread_mutex_unlock(&a->mutex);
	duck_disconnectp(&c);
}

void asking_disconnect(struct store_duck *s)
{
	while (s->asking->idle_count)
		duck_disconnect(s->asking->idle[--s->asking->idle_count]);
}

void asking_hurry(struct asking *a)
{
	MUTEX_HELD(&a->mutex);

	a->is_hurried = true;
	pthread_cond_signal(&a->changed);
}

void ask_begin(struct asking *a, struct ask *k)
{
	MUTEX_HELD(&a->mutex);

	k->next = a->running;
	a->running = k;
	pthread_cond_signal(&a->changed);
}

void ask_end(struct asking *a, struct ask *k)
{
	MUTEX_HELD(&a->mutex);

	for (struct ask **p = &a->running; *p; p = &(*p)->next)
		if (*p == k) {
			*p = k->next;
			break;
		}
}

/* ---- what is read ---- */

static bool table_meets(const struct part *p, enum store_table t, const struct store_scope *scope)
{
	return p->rows[t] &&
	       (!scope || ((!scope->since_ns || p->last_ns[t] >= scope->since_ns) &&
				  (!scope->until_ns || p->first_ns[t] < scope->until_ns)));
}

bool part_meets(const struct part *p, const struct store_scope *scope)
{
	if (p->gone || !scope_has(scope, p->cluster))
		return false;
	return EXISTS(t, TABLE_COUNT, p->rows[t] && table_meets(p, t, scope));
}

int reading_begin(struct store_duck *s, const struct store_scope *scope, struct reading *ret)
{
	*ret = (struct reading){0};
	MUTEX_HELD(&s->set_mutex);
	ret->parts = calloc(s->parts.count + 1, sizeof(*ret->parts));
	for (size_t i = 0; ret->parts && i < s->parts.count; i++)
		if (part_meets(s->parts.items[i], scope)) {
			ret->parts[ret->part_count++] = s->parts.items[i];
			s->parts.items[i]->users++;
		}
	if (ret->parts && s->frozen)
		ret->live[ret->live_count++] = s->frozen;
	if (ret->parts)
		ret->live[ret->live_count++] = s->current;
	for (size_t i = 0; i < ret->live_count; i++) {
		ret->live[i]->users++;
		ret->live_rows += ret->live[i]->row_count;
	}
	ret->position = s->visible;
	ret->durable = s->durable;
	ret->dropped_rows = s->dropped_rows;
	return ret->parts ? 0 : -ENOMEM;
}

void reading_end(struct store_duck *s, struct reading *r)
{
	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; i < r->part_count; i++)
		r->parts[i]->users--;
	for (size_t i = 0; i < r->live_count; i++)
		r->live[i]->users--;
	pthread_mutex_unlock(&s->set_mutex);
	free(r->parts);
	*r = (struct reading){0};
}

static void put_source(struct buf *b, enum store_table t, const char *alias)
{
	buf_printf(b, "SELECT * FROM %s.%s", alias, store_tables[t].name);
}

static void put_reading(
	void *arg, struct buf *b, enum store_table t, const struct store_scope *scope)
{
	const struct reading *r = arg;
	char alias[STORE_ALIAS_MAX];

	buf_putc(b, '(');
	for (size_t i = 0; i < r->live_count; i++) {
		buf_puts(b, i ? " UNION ALL " : "");
		put_source(b, t, generation_alias(r->live[i], alias));
		put_scope(b, t, scope, true);
	}
	for (size_t i = 0; i < r->part_count; i++) {
		const struct part *p = r->parts[i];

		if (!table_meets(p, t, scope))
			continue;
		/* by name: a part of before a column has none */
		buf_puts(b, " UNION ALL BY NAME ");
		put_source(b, t, part_alias(p, alias));
		put_scope(b, t, scope, false);
	}
	buf_putc(b, ')');
}

int reading_expand(struct reading *r, const char *question, const struct store_scope *scope,
	struct buf *ret, struct errinfo *reterr)
{
	static const struct store_dialect dialect = {
		.table = put_reading,
		.quantile = "quantile_cont(@2, @1)",
		.last = "arg_max(@1, @2)",
		.div = "((@1) // (@2))",
		.text = "CAST(@1 AS VARCHAR)",
	};

	return store_expand(&dialect, r, question, scope, ret, reterr);
}

/* ---- asking ---- */

/* A statement with a deadline. */
static int ask_run(struct store_duck *s, struct duck_connection *c, const char *text,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr)
{
	struct duck_limits most = {.rows_max = limits->rows_max, .bytes_max = limits->bytes_max};
	struct ask k = {.connection = c, .deadline_ns = mono_now().ns + limits->timeout_ns};
	int r;

	ask_begin(s->asking, &k);
	r = duck_select(c, text, &most, ret, reterr);
	ask_end(s->asking, &k);
	if (r == -ECANCELED && k.late)
		return errinfo_set(reterr, -ETIMEDOUT,
			"the query took longer than %llu ms: use a shorter time range or fewer nodes",
			(unsigned long long)(limits->timeout_ns / NS_PER_MS));
	return r;
}

void reading_suspect(struct store_duck *s, struct reading *r)
{
	uint64_t now = mono_now().ns;

	MUTEX_HELD(&s->set_mutex);
	for (size_t i = 0; i < r->part_count; i++) {
		struct part *p = r->parts[i];

		p->suspect |= !p->scrubbed.ns || now - p->scrubbed.ns >= SUSPECT_NS;
	}
}

/* The question is one of ours: that it is wrong is not what fails. */
static bool is_damage(int r)
{
	return r < 0 && r != -ETIMEDOUT && r != -ENOMEM && r != -ENOSPC;
}

static int ask_reading(struct store_duck *s, struct reading *reading,
	const struct store_scope *scope, const char *question, const struct store_limits *limits,
	struct sql_table *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf text = BUF_INIT(STORE_TEXT_MAX);
	struct duck_connection *c;
	int r = reading_expand(reading, question, scope, &text, reterr);

	r = r ?: connection_get(s, &c, reterr);
	if (r < 0)
		return r;
	r = ask_run(s, c, buf_str(&text), limits, ret, reterr);
	connection_put(s->asking, c);
	if (is_damage(r))
		reading_suspect(s, reading);
	return r;
}

int ask_once(struct store_duck *s, ask_fn *fn, const struct store_scope *scope,
	const char *question, const struct store_limits *limits, struct sql_table *ret,
	struct errinfo *reterr)
{
	struct reading reading;
	int r = instance_use(s, reterr);

	if (r < 0)
		return r;
	r = reading_begin(s, scope, &reading);
	if (r == 0) {
		r = fn(s, &reading, scope, question, limits, ret, reterr);
		reading_end(s, &reading);
	}
	instance_leave(s);
	return r;
}

/* A part that turns out to be damaged is set aside, and the rest answers. */
int ask_select(struct store *store, const struct store_scope *scope, const char *question,
	const struct store_limits *limits, struct sql_table *ret, struct errinfo *reterr)
{
	struct store_duck *s = (struct store_duck *)store;
	int r;

	limits = limits ? limits : &STORE_LIMITS;
	r = ask_once(s, ask_reading, scope, question, limits, ret, reterr);
	if (!is_damage(r))
		return r;
	instance_check(s, false);
	suspects_check(s);
	return ask_once(s, ask_reading, scope, question, limits, ret, reterr);
}
