/* SPDX-License-Identifier: Apache-2.0 */
/* infer_steps.c - see remediate.h. */
#include "notify/remediate/remediate.h"

#include "base/search.h"
#include "base/hash.h"
#include "wire/op_kind.h"

#define STEP_MAX_NS (60 * (int64_t)NS_PER_S)
#define ALPHA       0.05
#define P95_EVERY   8 /* steps: the p95 is reckoned as often */
#define PAUSED_MAX  1024

struct paused {
	int64_t until_ns;
};

void infer_init(struct infer_steps *s, const struct infer_settings *settings)
{
	*s = (struct infer_steps){.settings = *settings,
		.streams = IDMAP_INIT(INFER_STREAMS),
		.paused = IDMAP_INIT(PAUSED_MAX)};
}

static void free_all(struct idmap *m)
{
	size_t cursor = 0;
	void *p;

	while ((p = idmap_next(m, &cursor, NULL)))
		free(p);
	idmap_done(m);
}

void infer_done(struct infer_steps *s)
{
	free_all(&s->streams);
	free_all(&s->paused);
}

static void forget_process(struct infer_steps *s, uint32_t pid)
{
	struct infer_stream *st;
	size_t cursor = 0;

	free(idmap_remove(&s->paused, pid));
	while ((st = idmap_next(&s->streams, &cursor, NULL)))
		if (st->pid == pid)
			free(idmap_take(&s->streams, &cursor));
}

static void forget_oldest(struct infer_steps *s)
{
	struct infer_stream *st, *oldest = NULL;
	uint64_t key, oldest_key = 0;
	size_t cursor = 0;

	while ((st = idmap_next(&s->streams, &cursor, &key)))
		if (!oldest || st->last_ns < oldest->last_ns) {
			oldest = st;
			oldest_key = key;
		}
	free(idmap_remove(&s->streams, oldest_key));
}

static struct infer_stream *stream_of(struct infer_steps *s, const struct event *e, uint64_t stream)
{
	uint64_t key = hash_number(((uint64_t)e->pid << 32) ^ hash_number(stream));
	struct infer_stream *st = idmap_get(&s->streams, key);

	if (st)
		return st;
	if (s->streams.used == INFER_STREAMS)
		forget_oldest(s);
	st = calloc(1, sizeof(*st));
	if (!st || idmap_put(&s->streams, key, st) < 0) {
		free(st);
		return NULL;
	}
	st->pid = e->pid;
	st->stream = stream;
	return st;
}

ORDER(compare, uint64_t, COMPARE(*x, *y))

static void learn(struct infer_stream *st, uint64_t step_ns)
{
	uint64_t sorted[INFER_WINDOW];
	size_t n;

	st->mean_ns =
		st->count ? ALPHA * (double)step_ns + (1 - ALPHA) * st->mean_ns : (double)step_ns;
	st->window[st->count++ % INFER_WINDOW] = step_ns;
	n = MIN(st->count, (uint64_t)INFER_WINDOW);
	if (st->count > INFER_WINDOW && st->count % P95_EVERY)
		return;
	memcpy(sorted, st->window, n * sizeof(*sorted));
	SORT(sorted, n, compare);
	st->p95_ns = sorted[(n * 95 + 99) / 100 - 1];
}

static enum infer_bucket judge(
	const struct infer_steps *s, const struct infer_stream *st, uint64_t step_ns)
{
	double times = st->p95_ns ? (double)step_ns / (double)st->p95_ns : 0;

	if (st->count < s->settings.warmup)
		return INFER_ORDINARY;
	return times >= s->settings.ratio ? INFER_RATIO
	       : times >= 2               ? INFER_2X
	       : times >= 1.5             ? INFER_1_5X
					  : INFER_ORDINARY;
}

static bool is_paused(const struct infer_steps *s, uint32_t pid, int64_t now_ns)
{
	const struct paused *p = idmap_get(&s->paused, pid);

	return p && now_ns < p->until_ns;
}

/* A wait for an event or for the whole device belongs to no one stream. */
static uint64_t stream_waited_for(const struct event *e)
{
	bool one = (e->source == SOURCE_CUDA && e->op == CUDA_STREAM_SYNC) ||
		   (e->source == SOURCE_DRIVER && e->op == DRIVER_STREAM_SYNC);

	return one ? e->arg0 : 0;
}

bool infer_take(struct infer_steps *s, const struct event *e, struct infer_outlier *ret)
{
	int64_t end_ns = event_end_ns(e), step_ns;
	struct infer_stream *st;
	enum infer_bucket b;

	if (e->source == SOURCE_HOST && e->op == HOST_PROCESS_EXIT)
		forget_process(s, e->pid);
	if (!op_kind_is_gpu_wait(e->source, e->op) || e->flags & WIRE_NESTED)
		return false;
	st = stream_of(s, e, stream_waited_for(e));
	if (!st)
		return false;
	step_ns = st->last_ns ? end_ns - st->last_ns : 0;
	st->last_ns = MAX(st->last_ns, end_ns);
	st->cgroup_id = e->cgroup_id;
	st->place = e->place;
	if (step_ns <= 0)
		return false;
	s->steps++;
	if (step_ns > STEP_MAX_NS || is_paused(s, e->pid, end_ns)) {
		s->ignored++;
		return false;
	}
	b = judge(s, st, (uint64_t)step_ns);
	if (b == INFER_ORDINARY) {
		learn(st, (uint64_t)step_ns);
		return false;
	}
	s->outliers[b]++;
	*ret = (struct infer_outlier){
		.of = st, .bucket = b, .step_ns = (uint64_t)step_ns, .end = {end_ns}};
	return true;
}

void infer_pause(struct infer_steps *s, uint32_t pid, wall_time until)
{
	struct paused *p = idmap_get(&s->paused, pid);

	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p || idmap_put(&s->paused, pid, p) < 0) {
			free(p);
			return;
		}
	}
	p->until_ns = MAX(p->until_ns, until.ns);
}

const char *infer_bucket_name(
	const struct infer_steps *s, enum infer_bucket b, char out[INFER_NAME_MAX])
{
	static const double fixed[] = {[INFER_1_5X] = 1.5, [INFER_2X] = 2};

	snprintf(out, INFER_NAME_MAX, "%gx", b == INFER_RATIO ? s->settings.ratio : fixed[b]);
	return out;
}
