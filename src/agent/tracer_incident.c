/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_incident.c - explains while tracing: the engine runs over the last minutes whenever a 5 s
 * bucket is complete, on a thread of its own with low priority.
 *
 * The tracer's thread puts what it sees into a tray; the engine's thread takes the tray away and
 * leaves an empty one. The lock is held for that exchange and for one copy at a time, and the
 * tracer's thread only ever tries to take it: if the other has it, because it was preempted just
 * then, or if the tray is full, what was seen is missing in the live picture (and counted); it is
 * stored all the same, and the books do not know of any of this.
 *
 * What is found comes back the other way, is stored and handed to the sink by the tracer's thread.
 * Rows have no number before they are stored, so the evidence of a live incident is its query. */
#include "agent/tracer_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/correlate/recent.h"

#define TRAY_EVENTS      8192u /* 1.3 MB, twice */
#define TRAY_AGGREGATES  1024u /* 5 MB, twice, when so many ops are in use */
#define TRAY_SAMPLES     64u
#define TRAY_GPUS        512u
#define TRAY_COLLECTIVES 2048u
#define NEWS_MAX         64u /* incidents waiting for the tracer's thread; 0.5 MB */
#define NICENESS         10
#define NAP_NS           NS_PER_S /* the tray is taken away at least so often */
#define LOOKS_BEFORE     3        /* buckets that there must be before anything is called unusual */

struct tray_list {
	void *items;
	size_t count, capacity;
};

struct tray {
	struct tray_list events, aggregates, samples, gpus, collectives;
};

struct news {
	struct incident incident;
	wall_time detected;
	enum case_change change;
};

struct live_engine {
	const struct tracer_settings *settings;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* under the mutex */
	struct tray tray;
	struct accounting books;
	bool look_due, stop_due;
	struct news *news;
	size_t news_count;
	uint64_t unheard; /* news for which there was no room */
	/* the tracer's thread */
	uint64_t missed;
	unsigned buckets;
	/* the engine's thread */
	struct recent recent;
	struct casebook book;
	char node[256];
};

static void tray_done(struct tray *tray)
{
	free(tray->events.items);
	free(tray->aggregates.items);
	free(tray->samples.items);
	free(tray->gpus.items);
	free(tray->collectives.items);
}

/* ---- the tracer's side ---- */

static bool tray_put(struct tray_list *l, const void *item, size_t size, size_t max)
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

static void engine_put(
	struct live_engine *g, struct tray_list *l, const void *item, size_t size, size_t max)
{
	bool is_filling;

	if (pthread_mutex_trylock(&g->mutex)) {
		g->missed++;
		return;
	}
	g->missed += !tray_put(l, item, size, max);
	is_filling = l->count == max / 2;
	pthread_mutex_unlock(&g->mutex);
	if (is_filling)
		pthread_cond_signal(&g->wake);
}

void tracer_engine_event(struct tracer *t, const struct event *e)
{
	if (t->engine && recent_wants(e))
		engine_put(t->engine, &t->engine->tray.events, e, sizeof(*e), TRAY_EVENTS);
}

void tracer_engine_aggregate(struct tracer *t, const struct aggregate *a)
{
	if (t->engine)
		engine_put(t->engine, &t->engine->tray.aggregates, a, sizeof(*a), TRAY_AGGREGATES);
}

void tracer_engine_sample(struct tracer *t, const struct host_sample *s)
{
	if (t->engine)
		engine_put(t->engine, &t->engine->tray.samples, s, sizeof(*s), TRAY_SAMPLES);
}

void tracer_engine_gpu(struct tracer *t, const struct gpu_sample *s)
{
	if (t->engine)
		engine_put(t->engine, &t->engine->tray.gpus, s, sizeof(*s), TRAY_GPUS);
}

void tracer_engine_collective(struct tracer *t, const struct event *e, const struct collective *c)
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

	if (!t->engine)
		return;
	snprintf(row.node, sizeof(row.node), "%s", t->settings.node);
	engine_put(t->engine, &t->engine->tray.collectives, &row, sizeof(row), TRAY_COLLECTIVES);
}

/* A look that cannot be asked for now is made up for by the next. */
void tracer_engine_look(struct tracer *t)
{
	struct live_engine *g = t->engine;
	struct accounting books;

	if (!g || ++g->buckets < LOOKS_BEFORE)
		return;
	tracer_books(t, &books);
	if (pthread_mutex_trylock(&g->mutex))
		return;
	g->books = books;
	g->look_due = true;
	pthread_mutex_unlock(&g->mutex);
	pthread_cond_signal(&g->wake);
}

static void hand_on(struct tracer *t, const struct news *n)
{
	if (t->store && !store_writer_push_incident(t->store, &n->incident, n->detected))
		log_warning("the store's queue is full: an incident is lost");
	if (t->figures)
		figures_incident(t->figures, &n->incident, n->change);
	if (t->settings.incident_sink)
		t->settings.incident_sink(t->settings.event_arg, &n->incident, n->change);
}

void tracer_poll_engine(struct tracer *t)
{
	struct live_engine *g = t->engine;
	struct news *news;
	size_t count;

	if (!g || pthread_mutex_trylock(&g->mutex))
		return;
	news = TAKE(g->news);
	count = g->news_count;
	g->news_count = 0;
	pthread_mutex_unlock(&g->mutex);
	for (size_t i = 0; i < count; i++)
		hand_on(t, &news[i]);
	free(news);
}

/* ---- the engine's side ---- */

static void tell(void *arg, const struct incident *i, wall_time detected, enum case_change change)
{
	struct live_engine *g = arg;

	pthread_mutex_lock(&g->mutex);
	if (!g->news)
		g->news = calloc(NEWS_MAX, sizeof(*g->news));
	if (g->news && g->news_count < NEWS_MAX)
		g->news[g->news_count++] = (struct news){*i, detected, change};
	else
		g->unheard++;
	pthread_mutex_unlock(&g->mutex);
}

#define TRAY_EMPTY(list, add, type)                                                                \
	for (size_t i = 0; r == 0 && i < (list).count; i++)                                        \
		r = add(&g->recent, (const type *)(list).items + i);                               \
	(list).count = 0

static int tray_empty(struct live_engine *g, struct tray *tray)
{
	int r = 0;

	TRAY_EMPTY(tray->events, recent_add_event, struct event);
	TRAY_EMPTY(tray->aggregates, recent_add_aggregate, struct aggregate);
	TRAY_EMPTY(tray->samples, recent_add_sample, struct host_sample);
	TRAY_EMPTY(tray->gpus, recent_add_gpu, struct gpu_sample);
	TRAY_EMPTY(tray->collectives, recent_add_collective, struct collective_row);
	return r;
}

static int look(struct live_engine *g, const struct accounting *books)
{
	_cleanup_free_ struct incident *found = NULL;
	wall_time now = wall_now();
	struct recording rec;
	size_t count;
	int r;

	recent_recording(&g->recent, now, &rec);
	rec.books = books;
	rec.node = g->node;
	if (!rec.aggregate_count)
		return 0; /* nothing says what is ordinary */
	r = correlate_run(&rec, &found, &count);
	if (r < 0)
		return r;
	return casebook_look(&g->book, found, count, now,
		(wall_time){now.ns - RECENT_NS - CASEBOOK_QUIET_NS}, tell, g);
}

static void nap(struct live_engine *g)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(NAP_NS / NS_PER_S);
	if (!g->look_due && !g->stop_due)
		pthread_cond_timedwait(&g->wake, &g->mutex, &until);
}

static void *engine_main(void *arg)
{
	struct live_engine *g = arg;
	struct tray tray = {0};
	bool is_last = false;

	(void)pthread_setname_np(pthread_self(), "ingero-explain");
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
	tracer_confine_engine(g->settings);
	while (!is_last) {
		struct accounting books;
		struct tray full;
		bool is_due;
		int r;

		pthread_mutex_lock(&g->mutex);
		nap(g);
		full = g->tray;
		g->tray = tray;
		is_due = g->look_due || g->stop_due;
		is_last = g->stop_due;
		g->look_due = false;
		books = g->books;
		pthread_mutex_unlock(&g->mutex);
		tray = full;
		r = tray_empty(g, &tray);
		if (r == 0 && is_due)
			r = look(g, &books);
		if (r < 0)
			log_warning("not enough memory to explain while tracing");
	}
	tray_done(&tray);
	return NULL;
}

/* ---- start and stop ---- */

int tracer_open_engine(struct tracer *t)
{
	struct live_engine *g = calloc(1, sizeof(*g));
	pthread_condattr_t monotonic;
	int err;

	if (!g)
		return -ENOMEM;
	g->settings = &t->settings;
	snprintf(g->node, sizeof(g->node), "%s", t->settings.node ? t->settings.node : "");
	pthread_mutex_init(&g->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&g->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	err = pthread_create(&g->thread, NULL, engine_main, g);
	if (err) {
		pthread_mutex_destroy(&g->mutex);
		pthread_cond_destroy(&g->wake);
		free(g);
		return -err;
	}
	t->engine = g;
	return 0;
}

/* One last look; what is open then stays open. */
void tracer_finish_engine(struct tracer *t)
{
	struct live_engine *g = t->engine;
	struct accounting books;

	if (!g)
		return;
	if (t->reader) {
		tracer_books(t, &books);
		pthread_mutex_lock(&g->mutex);
		g->books = books;
		pthread_mutex_unlock(&g->mutex);
	}
	pthread_mutex_lock(&g->mutex);
	g->stop_due = true;
	pthread_mutex_unlock(&g->mutex);
	pthread_cond_signal(&g->wake);
	pthread_join(g->thread, NULL);
	tracer_poll_engine(t);
	if (g->missed || g->unheard)
		log_info(
			"%llu events and %llu incidents were not analysed live; `ingero explain` analyses all that was stored",
			(unsigned long long)g->missed, (unsigned long long)g->unheard);
	t->engine = NULL;
	casebook_done(&g->book);
	recent_done(&g->recent);
	tray_done(&g->tray);
	free(g->news);
	pthread_mutex_destroy(&g->mutex);
	pthread_cond_destroy(&g->wake);
	free(g);
}
