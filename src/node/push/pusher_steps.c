/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_steps.c - see pusher_steps.h. */
#include "node/push/pusher_steps.h"

#include <math.h>

#include "base/search.h"
#include "base/array.h"

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

static bool is_step_mark(uint8_t mark)
{
	return memchr(kinds, mark, sizeof(kinds)) != NULL;
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

	if (!is_step_mark(m->mark))
		return 0;
	if (m->mark == MARK_OPTIMIZER || m->mark == MARK_BACKWARD)
		s->is_training = true;
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
	qsort(v, n, sizeof(*v), compare_numbers);
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

	qsort(m, n, sizeof(*m), compare_marks);
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
