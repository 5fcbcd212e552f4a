/* SPDX-License-Identifier: Apache-2.0 */
/* culprit.c - sums parts by cause and culprit, and finds who kept a device busy. See culprit.h.
 *
 * Several processes or threads of one name and container (a hog with eight workers) are one culprit;
 * the victim's own process is kept apart even when others bear its name. A device that several keep
 * busy is shared out among them by what each had in flight. Everything is sorted before it is
 * summed, so the result does not depend on the order of the input. O(n log n). */
#include "diagnose/calls/culprit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/accounts/home.h"
#include "diagnose/calls/part.h"
#include "diagnose/accounts/tracer_name.h"
#include "base/search.h"

#define SECTOR_BYTES      512
#define FLUSH_BYTES       4096 /* a flush moves nothing and still occupies the device */
#define DISK_SHARE        0.1  /* of the traffic: less is not what keeps a device busy */
#define ROWS_WHEN_FOLDING (INCIDENT_CAUSES - CAUSE_COUNT) /* leaves one row per cause */

struct claim { /* what one process had in flight, or took of the excess */
	uint32_t pid;
	bool own;
	const char *name;
	uint64_t home;
	double weight;
};

static int compare_who(const struct claim *a, const struct claim *b)
{
	int r;

	if (a->own != b->own)
		return a->own ? -1 : 1;
	r = strncmp(a->name, b->name, COMM_LEN);
	if (r)
		return r;
	if (a->home != b->home)
		return a->home < b->home ? -1 : 1;
	if (a->name[0])
		return 0;
	return (a->pid > b->pid) - (a->pid < b->pid); /* no name: only the pid tells them apart */
}

static int by_who_and_pid(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	int r = compare_who(x, y);

	return r ? r : (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_weight(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return by_who_and_pid(a, b);
}

/* Makes one claim of those of the same culprit, by its strongest process; strongest first. Returns
 * how many remain. */
static size_t claims_merge(struct claim *claims, size_t n)
{
	size_t next, kept = 0;

	if (n)
		qsort(claims, n, sizeof(*claims), by_who_and_pid);
	for (size_t i = 0; i < n; i = next) {
		struct claim sum = claims[i];
		double best = 0, of_pid = 0;

		sum.weight = 0;
		for (next = i; next < n && !compare_who(&claims[next], &sum); next++) {
			const struct claim *c = &claims[next];

			if (next == i || c->pid != claims[next - 1].pid)
				of_pid = 0;
			of_pid += c->weight;
			sum.weight += c->weight;
			if (of_pid > best) {
				best = of_pid;
				sum.pid = c->pid;
			}
		}
		claims[kept++] = sum;
	}
	if (kept)
		qsort(claims, kept, sizeof(*claims), by_weight);
	return kept;
}

struct cover { /* disjoint stretches of time, ascending */
	int64_t start_ns, end_ns;
	int64_t before_ns; /* covered before start */
};

static int64_t covered_until(const struct cover *c, size_t n, int64_t ns)
{
	size_t after = LOWER_BOUND(i, n, c[i].start_ns <= ns);

	if (!after)
		return 0;
	return c[after - 1].before_ns + MIN(ns, c[after - 1].end_ns) - c[after - 1].start_ns;
}

static int parts_by_device(const void *a, const void *b, void *events)
{
	const struct part *x = *(struct part *const *)a, *y = *(struct part *const *)b;
	const struct event *e = events;

	if (e[x->event].dev != e[y->event].dev)
		return e[x->event].dev < e[y->event].dev ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x > y) - (x < y);
}

/* Merges the times of @parts, which are in order of start. Returns how many stretches remain. */
static size_t cover_build(struct part *const *parts, size_t n, struct cover *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t start = parts[i]->start_ns, end = parts[i]->end_ns;

		if (count && start <= ret[count - 1].end_ns) {
			ret[count - 1].end_ns = MAX(ret[count - 1].end_ns, end);
			continue;
		}
		ret[count] = (struct cover){start, end, 0};
		if (count)
			ret[count].before_ns = ret[count - 1].before_ns + ret[count - 1].end_ns -
					       ret[count - 1].start_ns;
		count++;
	}
	return count;
}

/* First entry of x->requests whose device is not below @dev. */
static size_t device_seek(
	const struct recording *rec, const struct attribution_index *x, uint64_t dev)
{
	return LOWER_BOUND(i, x->request_count, rec->events[x->requests[i]].dev < dev);
}

static size_t claims_collect(const struct recording *rec, const struct attribution_index *x,
	uint32_t dev, const struct cover *cover, size_t cover_count, uint32_t victim_pid,
	struct claim *ret)
{
	size_t last = device_seek(rec, x, (uint64_t)dev + 1), n = 0;

	for (size_t i = device_seek(rec, x, dev); i < last; i++) {
		const struct event *e = &rec->events[x->requests[i]];
		int64_t ns = covered_until(cover, cover_count, event_end_ns(e)) -
			     covered_until(cover, cover_count, e->start.ns);
		double bytes = e->op == IO_FLUSH ? FLUSH_BYTES : (double)e->arg0 * SECTOR_BYTES;

		if (ns > 0)
			ret[n++] = (struct claim){.pid = e->pid,
				.own = e->pid == victim_pid,
				.name = e->comm,
				.home = home_key(rec, e->pid),
				.weight = bytes * (double)ns};
	}
	return n;
}

static void part_blame(struct part *p, const struct claim *c, double share_of_part, double traffic)
{
	p->ns = (uint64_t)((double)p->ns * share_of_part);
	p->culprit_pid = c->pid;
	p->culprit_share = traffic;
	memcpy(p->culprit, c->name, strnlen(c->name, COMM_LEN - 1));
	memset(p->culprit + strnlen(c->name, COMM_LEN - 1), 0,
		COMM_LEN - strnlen(c->name, COMM_LEN - 1));
}

/* Shares @parts, which are those of one device, out among @claims; what others than the first have
 * is added to @more. */
static int blame_device(struct part *const *parts, size_t n, const struct recording *rec,
	struct claim *claims, size_t claim_count, uint32_t victim_pid, struct part_list *more)
{
	const struct claim nobody_else = {
		.pid = victim_pid, .own = true, .name = rec->events[parts[0]->event].comm};
	double all = 0, told = 0;
	size_t groups = claims_merge(claims, claim_count), kept = 0;

	for (size_t i = 0; i < groups; i++)
		all += claims[i].weight;
	for (; kept < groups && claims[kept].weight >= DISK_SHARE * all; kept++)
		told += claims[kept].weight;
	for (size_t i = 0; i < n; i++) {
		struct part whole = *parts[i];

		if (!(told > 0))
			part_blame(parts[i], &nobody_else, 1, 1);
		for (size_t k = 0; told > 0 && k < kept; k++) {
			struct part p = whole;

			part_blame(&p, &claims[k], claims[k].weight / told, claims[k].weight / all);
			if (k == 0)
				*parts[i] = p;
			else if (p.ns && part_add(more, &p) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int parts_by_call(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return strncmp(x->culprit, y->culprit, COMM_LEN);
}

/* Parts stay in order of call. */
static int parts_join(struct part_list *l, const struct part_list *more)
{
	if (!more->count)
		return 0;
	for (size_t i = 0; i < more->count; i++)
		if (part_add(l, &more->items[i]) < 0)
			return -ENOMEM;
	qsort(l->items, l->count, sizeof(*l->items), parts_by_call);
	return 0;
}

int culprit_blame_disk(const struct recording *rec, const struct attribution_index *x,
	struct part_list *l, uint32_t victim_pid)
{
	_cleanup_free_ struct part **parts = calloc(l->count + 1, sizeof(*parts));
	_cleanup_free_ struct cover *cover = NULL;
	_cleanup_free_ struct claim *claims = NULL;
	_cleanup_(part_list_done) struct part_list more = {0};
	size_t n = 0, next;

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].cause == CAUSE_BLOCK_IO &&
			rec->events[l->items[i].event].source == SOURCE_IO)
			parts[n++] = &l->items[i];
	if (!n)
		return 0;
	cover = calloc(n, sizeof(*cover));
	claims = calloc(x->request_count, sizeof(*claims));
	if (!cover || !claims)
		return -ENOMEM;
	qsort_r(parts, n, sizeof(*parts), parts_by_device, (void *)rec->events);
	for (size_t i = 0; i < n; i = next) {
		uint32_t dev = rec->events[parts[i]->event].dev;
		size_t slow_episodees, found;

		for (next = i; next < n && rec->events[parts[next]->event].dev == dev;)
			next++;
		slow_episodees = cover_build(parts + i, next - i, cover);
		found = claims_collect(rec, x, dev, cover, slow_episodees, victim_pid, claims);
		if (blame_device(parts + i, next - i, rec, claims, found, victim_pid, &more) < 0)
			return -ENOMEM;
	}
	return parts_join(l, &more);
}

static struct claim claim_of(const struct part *p, uint32_t victim_pid)
{
	return (struct claim){.pid = p->culprit_pid,
		.own = p->culprit_pid == victim_pid,
		.name = p->culprit,
		.home = p->culprit_home,
		.weight = (double)p->ns * p->culprit_share};
}

static int compare_parts(const struct part *x, const struct part *y, uint32_t victim_pid)
{
	struct claim a = claim_of(x, victim_pid), b = claim_of(y, victim_pid);

	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	return compare_who(&a, &b);
}

static int parts_by_cause(const void *a, const void *b, void *victim)
{
	const struct part *x = *(const struct part *const *)a, *y = *(const struct part *const *)b;
	int r = compare_parts(x, y, *(const uint32_t *)victim);

	if (r)
		return r;
	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	return (x > y) - (x < y);
}

/* One row from parts of the same cause and culprit, in order of call. */
static struct incident_cause row_of(
	const struct part *const *parts, size_t n, uint32_t victim_pid, struct claim *claims)
{
	struct incident_cause row = {.cause = parts[0]->cause};
	double own = 0;

	for (size_t i = 0; i < n; i++) {
		row.ns += parts[i]->ns;
		row.calls += i == 0 || parts[i]->call != parts[i - 1]->call;
		claims[i] = claim_of(parts[i], victim_pid);
	}
	claims_merge(claims, n);
	if (!claims[0].pid || !(claims[0].weight > 0))
		return row; /* nobody in particular, or nothing left after scaling */
	row.culprit_pid = claims[0].pid;
	row.culprit_home = parts[0]->culprit_home;
	memcpy(row.culprit, parts[0]->culprit, COMM_LEN);
	for (size_t i = 0; i < n; i++)
		if (parts[i]->culprit_pid == row.culprit_pid)
			own += (double)parts[i]->ns * parts[i]->culprit_share;
	row.culprit_share = row.ns ? MIN(own / (double)row.ns, 1.0) : 0;
	return row;
}

static int rows_by_size(const void *a, const void *b)
{
	const struct incident_cause *x = a, *y = b;
	int r;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	r = strncmp(x->culprit, y->culprit, COMM_LEN);
	return r ? r : (x->culprit_pid > y->culprit_pid) - (x->culprit_pid < y->culprit_pid);
}

/* Folds the smaller rows into one per cause when there are too many to list. */
static size_t rows_fold(struct incident_cause *rows, size_t n)
{
	struct incident_cause rest[CAUSE_COUNT] = {0};
	size_t kept = MIN(n, (size_t)ROWS_WHEN_FOLDING);

	if (n < INCIDENT_CAUSES)
		return n;
	for (size_t i = kept; i < n; i++) {
		struct incident_cause *r = &rest[rows[i].cause];

		r->cause = rows[i].cause;
		r->is_many = true;
		r->ns += rows[i].ns;
		r->calls = MAX(r->calls, rows[i].calls);
	}
	for (int c = 0; c < CAUSE_COUNT; c++)
		if (rest[c].ns)
			rows[kept++] = rest[c];
	qsort(rows, kept, sizeof(*rows), rows_by_size);
	return kept;
}

int culprit_sum(const struct recording *rec, struct part_list *l, struct incident *inc)
{
	_cleanup_free_ const struct part **parts = calloc(l->count + 1, sizeof(*parts));
	_cleanup_free_ struct claim *claims = calloc(l->count + 1, sizeof(*claims));
	_cleanup_free_ struct incident_cause *rows = calloc(l->count + 2, sizeof(*rows));
	size_t n = 0, next;
	uint64_t explained = 0;

	if (!parts || !claims || !rows)
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++) {
		parts[i] = &l->items[i];
		l->items[i].culprit_home = home_key(rec, l->items[i].culprit_pid);
		if (tracer_is(l->items[i].culprit))
			snprintf(l->items[i].culprit, COMM_LEN, TRACER_NAME);
	}
	qsort_r(parts, l->count, sizeof(*parts), parts_by_cause, &inc->pid);
	for (size_t i = 0; i < l->count; i = next) {
		for (next = i; next < l->count && !compare_parts(parts[next], parts[i], inc->pid);)
			next++;
		rows[n] = row_of(parts + i, next - i, inc->pid, claims);
		explained += rows[n].ns;
		n += rows[n].ns > 0;
	}
	qsort(rows, n, sizeof(*rows), rows_by_size);
	n = rows_fold(rows, n);
	explained = MIN(explained, inc->excess_ns);
	if (explained < inc->excess_ns)
		rows[n++] = (struct incident_cause){.cause = CAUSE_UNEXPLAINED,
			.ns = inc->excess_ns - explained,
			.calls = (uint32_t)inc->slow_calls};
	qsort(rows, n, sizeof(*rows), rows_by_size);
	memcpy(inc->causes, rows, n * sizeof(*rows));
	inc->cause_count = (int)n;
	inc->explained = inc->excess_ns ? (double)explained / (double)inc->excess_ns : 0;
	return 0;
}
