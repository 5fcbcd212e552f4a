/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_counters.c - counters of control groups, signals of health and the length of steps, from recorded rows: see pusher_recording.h. */
#include <math.h>

#include "base/array.h"
#include "base/search.h"
#include "node/push/pusher_recording.h"
#include "wire/op_kind.h"

enum direction { H2H, H2D, D2H, D2D, UNKNOWN };

void pusher_counters_init(struct pusher_counters *c, int64_t now_ns)
{
	int64_t begin = now_ns - now_ns % (int64_t)NODEDB_BUCKET_FINE;

	*c = (struct pusher_counters){.start_ns = begin, .settled_until_ns = begin};
}

void pusher_counters_done(struct pusher_counters *c)
{
	free(c->items);
	*c = (struct pusher_counters){0};
}

int64_t pusher_counters_begin(struct pusher_counters *c)
{
	for (size_t i = 0; i < c->count; i++)
		c->items[i].settling = c->items[i].fresh = (struct pusher_amounts){0};
	return c->settled_until_ns;
}

static int group_find(struct pusher_counters *c, const char *name, struct pusher_group **ret)
{
	int r;

	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->items[i].name, name)) {
			*ret = &c->items[i];
			return 0;
		}
	if (c->count >= PUSHER_GROUPS_MAX - 1 && strcmp(name, PUSHER_GROUP_OTHERS))
		return group_find(c, PUSHER_GROUP_OTHERS, ret);
	r = ARRAY_RESERVE(c->items, c->room, c->count + 1, PUSHER_GROUPS_MAX);
	if (r < 0)
		return r;
	*ret = &c->items[c->count++];
	**ret = (struct pusher_group){0};
	snprintf((*ret)->name, sizeof((*ret)->name), "%.16s", name);
	return 0;
}

/* Of the runtime's copies only the argument tells, which aggregates do not have. */
static enum direction direction_of(const struct recent_calls *c)
{
	if (c->source != SOURCE_DRIVER)
		return c->op == CUDA_MEMCPY_PEER || c->op == CUDA_MEMCPY_PEER_ASYNC ? D2D : UNKNOWN;
	switch (c->op) {
	case DRIVER_MEMCPY_HTOD:
	case DRIVER_MEMCPY_HTOD_ASYNC: return H2D;
	case DRIVER_MEMCPY_DTOH:
	case DRIVER_MEMCPY_DTOH_ASYNC: return D2H;
	case DRIVER_MEMCPY_DTOD:
	case DRIVER_MEMCPY_DTOD_ASYNC:
	case DRIVER_MEMCPY_PEER:
	case DRIVER_MEMCPY_PEER_ASYNC: return D2D;
	default: return UNKNOWN;
	}
}

/* A batch's argument is how many copies it has, not bytes. */
static bool is_copy(const struct recent_calls *c)
{
	return !c->nested && op_kind_is_cuda(c->source) &&
	       op_kind_line(c->source, c->op) == LEDGER_COPY &&
	       c->op != (c->source == SOURCE_CUDA ? CUDA_MEMCPY_BATCH : DRIVER_MEMCPY_BATCH);
}

int pusher_counters_add(struct pusher_counters *c, const struct recent_calls *row,
	const char *group, int64_t now_ns)
{
	bool is_launch = pusher_is_launch(row);
	struct pusher_amounts *to;
	struct pusher_group *g;
	int r;

	if (row->bucket_ns < c->settled_until_ns || (!is_launch && !is_copy(row)))
		return 0;
	r = group_find(c, group, &g);
	if (r < 0)
		return r;
	to = row->bucket_ns < now_ns - PUSHER_SETTLE_NS ? &g->settling : &g->fresh;
	if (is_launch)
		to->launches += row->count;
	else
		to->copied_bytes[direction_of(row)] += row->bytes;
	return 0;
}

int pusher_counters_stall(struct pusher_counters *c, const char *group, uint64_t ns)
{
	struct pusher_group *g;
	int r = ns ? group_find(c, group, &g) : 0;

	if (r == 0 && ns)
		g->settled.stall_ns += ns;
	return r;
}

static void settle(struct pusher_amounts *to, struct pusher_amounts *from)
{
	to->launches += from->launches;
	for (size_t d = 0; d < ARRAY_SIZE(to->copied_bytes); d++)
		to->copied_bytes[d] += from->copied_bytes[d];
	*from = (struct pusher_amounts){0};
}

void pusher_counters_end(struct pusher_counters *c, int64_t now_ns)
{
	int64_t until = now_ns - PUSHER_SETTLE_NS;

	/* The first bucket that was not settled: those are multiples of their width. */
	until += (int64_t)NODEDB_BUCKET_FINE - 1;
	until -= until % (int64_t)NODEDB_BUCKET_FINE;
	c->settled_until_ns = MAX(c->settled_until_ns, until);
	c->launches = 0;
	for (size_t i = 0; i < c->count; i++) {
		settle(&c->items[i].settled, &c->items[i].settling);
		c->launches += c->items[i].settled.launches + c->items[i].fresh.launches;
	}
}

void pusher_counters_roll(struct pusher_counters *c)
{
	for (size_t i = 0; i < c->count; i++)
		settle(&c->items[i].settled, &c->items[i].fresh);
}

int pusher_counters_list(
	const struct pusher_counters *c, struct push_counters **ret, size_t *ret_count)
{
	struct push_counters *list = calloc(c->count ? c->count : 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < c->count; i++) {
		const struct pusher_group *g = &c->items[i];

		list[i] = (struct push_counters){.cohort = g->name,
			.launches = g->settled.launches + g->fresh.launches,
			.stall_ns = g->settled.stall_ns};
		for (size_t d = 0; d < ARRAY_SIZE(g->fresh.copied_bytes); d++)
			list[i].copied_bytes[d] =
				g->settled.copied_bytes[d] + g->fresh.copied_bytes[d];
	}
	*ret = list;
	*ret_count = c->count;
	return 0;
}

/* ---- signals of health ---- */

#define LOW_MEMORY     0.05 /* share of the host's memory below which it is short */
#define FAILED_ALLOC   0.5  /* pressure that one failed allocation shows */
#define FAILED_FURTHER 0.1  /* and each further one */

bool pusher_is_launch(const struct recent_calls *c)
{
	return !c->nested && (op_kind_is_graph_launch(c->source, c->op) ||
				     (op_kind_is_cuda(c->source) &&
					     op_kind_line(c->source, c->op) == LEDGER_LAUNCH));
}

uint64_t pusher_activity_add(struct pusher_activity *a, const struct recent_calls *c)
{
	int64_t end = c->bucket_ns + (int64_t)NODEDB_BUCKET_FINE;

	if (c->bucket_ns < a->from_ns || end > a->to_ns + 2 * (int64_t)NODEDB_BUCKET_FINE ||
		!c->count || !pusher_is_launch(c))
		return 0;
	a->to_ns = MAX(a->to_ns, end); /* it is written already */
	a->launches += c->count;
	if (!a->busy_buckets || a->last_busy_ns != c->bucket_ns)
		a->busy_buckets++;
	a->last_busy_ns = c->bucket_ns;
	return c->count;
}

static int64_t window_of(const struct pusher_activity *a)
{
	return MAX(a->to_ns - a->from_ns, (int64_t)NODEDB_BUCKET_FINE);
}

double pusher_launch_rate(const struct pusher_activity *a, uint64_t launches)
{
	return (double)launches * (double)NS_PER_S / (double)window_of(a);
}

static double share(double v)
{
	return fmin(fmax(v, 0), 1);
}

static double memory_pressure(const struct recent_readings *r)
{
	double pressure = 0;

	if (r->psi_memory_pct >= 0)
		pressure = r->psi_memory_pct / 100;
	else if (r->mem_avail_share >= 0)
		pressure = (LOW_MEMORY - r->mem_avail_share) / LOW_MEMORY;
	if (r->failed_allocs)
		pressure = fmax(
			pressure, FAILED_ALLOC + FAILED_FURTHER * (double)(r->failed_allocs - 1));
	return pressure;
}

void pusher_signals_make(const struct pusher_activity *a, const struct recent_readings *r,
	double ret[HEALTH_SIGNAL_COUNT])
{
	double buckets = (double)(window_of(a) / (int64_t)NODEDB_BUCKET_FINE);

	ret[HEALTH_THROUGHPUT] = pusher_launch_rate(a, a->launches);
	ret[HEALTH_COMPUTE] = share(
		r->gpu_busy_pct >= 0 ? r->gpu_busy_pct / 100 : (double)a->busy_buckets / buckets);
	ret[HEALTH_MEMORY] = share(1 - memory_pressure(r));
	ret[HEALTH_CPU] = r->cpu_pct >= 0 ? share(1 - r->cpu_pct / 100) : 1;
}

/* ---- the length of steps: see pusher_recording.h ---- */

#define INTERVALS_MIN 3
#define THREADS_MAX   64 /* of which a median is made */

/* The surest first. */
static const uint8_t kinds[] = {MARK_OPTIMIZER, MARK_BACKWARD, MARK_EXECUTE, MARK_LOADER,
	MARK_GRAPH, MARK_COLLECTIVE, MARK_WAIT};

void pusher_steps_done(struct pusher_steps *s)
{
	free(s->marks);
	free(s->waits);
	*s = (struct pusher_steps){0};
}

/* Half is dropped at once, so that a full array costs little. */
static void halve(void *items, size_t *count, size_t size)
{
	size_t drop = (*count + 1) / 2;

	memmove(items, (char *)items + drop * size, (*count - drop) * size);
	*count -= drop;
}

int pusher_steps_mark(struct pusher_steps *s, const struct recent_mark *m)
{
	int r;

	if (!memchr(kinds, m->mark, sizeof(kinds)))
		return 0;
	s->is_training |= m->mark == MARK_OPTIMIZER || m->mark == MARK_BACKWARD;
	if (s->mark_count == PUSHER_MARKS_MAX)
		halve(s->marks, &s->mark_count, sizeof(*s->marks));
	r = ARRAY_RESERVE(s->marks, s->mark_room, s->mark_count + 1, PUSHER_MARKS_MAX);
	if (r == 0)
		s->marks[s->mark_count++] = *m;
	return r;
}

int pusher_steps_wait(struct pusher_steps *s, const struct pusher_wait *w)
{
	int r;

	s->is_training = true;
	/* Collectives that one synchronisation waited for have its wait each: it is one wait. */
	for (size_t i = s->wait_count; i > 0 && s->wait_count - i < 64; i--)
		if (s->waits[i - 1].pid == w->pid) {
			if (s->waits[i - 1].wait_ns == w->wait_ns)
				return 0;
			break;
		}
	if (s->wait_count == PUSHER_WAITS_MAX)
		halve(s->waits, &s->wait_count, sizeof(*s->waits));
	r = ARRAY_RESERVE(s->waits, s->wait_room, s->wait_count + 1, PUSHER_WAITS_MAX);
	if (r == 0)
		s->waits[s->wait_count++] = *w;
	return r;
}

void pusher_steps_forget(struct pusher_steps *s, int64_t before_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < s->mark_count; i++)
		if (s->marks[i].end_ns >= before_ns)
			s->marks[n++] = s->marks[i];
	s->mark_count = n;
	n = 0;
	for (size_t i = 0; i < s->wait_count; i++)
		if (s->waits[i].end_ns >= before_ns)
			s->waits[n++] = s->waits[i];
	s->wait_count = n;
}

ORDER(compare_numbers, double, COMPARE(*x, *y))

static double median(double *v, size_t n)
{
	SORT(v, n, compare_numbers);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

ORDER(compare_marks, struct recent_mark, ASCENDING(tid) ?: ASCENDING(end_ns))

static uint64_t waited(const struct pusher_steps *s, uint32_t pid, int64_t from, int64_t to)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->wait_count; i++)
		if (s->waits[i].pid == pid && s->waits[i].end_ns >= from &&
			s->waits[i].end_ns <= to)
			sum += s->waits[i].wait_ns;
	return sum;
}

/* Marks @m[0..n) of one thread, in order. @scratch has room for n. */
static struct pusher_step thread_step(
	const struct pusher_steps *s, const struct recent_mark *m, size_t n, double *scratch)
{
	double span, own;

	for (size_t i = 1; i < n; i++)
		scratch[i - 1] = (double)(m[i].end_ns - m[i - 1].end_ns) / 1e9;
	span = (double)(m[n - 1].end_ns - m[0].end_ns) / 1e9;
	own = span - (double)waited(s, m->pid, m[0].end_ns, m[n - 1].end_ns) / 1e9;
	return (struct pusher_step){
		.step_s = median(scratch, n - 1), .own_s = fmax(own, 0) / (double)(n - 1)};
}

/* Of @n marks of one kind; false: no thread has enough of them. */
static bool kind_step(const struct pusher_steps *s, struct recent_mark *m, size_t n,
	double *scratch, struct pusher_step *ret)
{
	double steps[THREADS_MAX], own[THREADS_MAX];
	size_t threads = 0, end;

	SORT(m, n, compare_marks);
	for (size_t i = 0; i < n && threads < THREADS_MAX; i = end) {
		for (end = i + 1; end < n && m[end].tid == m[i].tid;)
			end++;
		if (end - i <= INTERVALS_MIN)
			continue;
		*ret = thread_step(s, m + i, end - i, scratch);
		steps[threads] = ret->step_s;
		own[threads++] = ret->own_s;
	}
	if (!threads)
		return false;
	*ret = (struct pusher_step){median(steps, threads), median(own, threads)};
	return true;
}

struct pusher_step pusher_steps_median(const struct pusher_steps *s)
{
	struct pusher_step none = {-1, -1}, got;
	_cleanup_free_ struct recent_mark *some = malloc((s->mark_count + 1) * sizeof(*some));
	_cleanup_free_ double *scratch = malloc((s->mark_count + 1) * sizeof(*scratch));

	for (size_t k = 0; k < ARRAY_SIZE(kinds) && some && scratch; k++) {
		size_t n = 0;

		for (size_t i = 0; i < s->mark_count; i++)
			if (s->marks[i].mark == kinds[k])
				some[n++] = s->marks[i];
		if (n > INTERVALS_MIN && kind_step(s, some, n, scratch, &got))
			return got;
	}
	return none;
}
