/* SPDX-License-Identifier: Apache-2.0 */
/* blame_weigh.c - what of the path is more than the peers need.
 *
 * In a step a worker has an excess over the median of its peers' own time. Far beyond what is ordinary
 * in its group (6 robust standard deviations, 5 % of a step) it is late, and that part of the path is
 * its fault: path x excess / own. A small excess in one step is chance, since somebody is always the
 * slowest; over BLOCK steps chance averages out: there the sums are compared, late steps left out.
 *
 * Lag that nobody's step is longer by costs nothing: a host that is behind while its GPU is busy. Where steps are known
 * to be no longer the longer the worker's own time is, or no longer than those in which it was in time, that part is
 * not counted.
 *
 * Nor does what the others would have waited for anyway: they are held up from when they have made a call until the last
 * one makes it, and for no longer than they wait; the rest of that is their own GPU's time.
 *
 * A worker without peers, as in a pipeline of one rank a stage, is compared with its own ordinary steps.
 *
 * What a worker's peers need as well but other stages do not is the stage's: path x (1 - what is more than its
 * peers' in the same step, its own part or load that moves) x (1 - median of the other stages / its own median), since the
 * step from which on it is slower than before. So the parts never add up to more than
 * the path. Fill and drain of a pipeline are waits, and nobody's. */
#include "blame/blame_job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 16
#define USUAL_PART                                                                                 \
	3 /* of its steps, in which one without peers needs no more than it ordinarily does */
#define LATE_SIGMAS 6
#define LATE_SHARE  0.05 /* of a step */
#define SAMPLES_MAX 8192
#define STEPS_TELL  20 /* that it takes to tell whether lag makes steps longer */
#define START_STEPS                                                                                \
	3 /* of a job that begins: lazily loaded code, caches and connections that are made */
#define OUTLIER      3 /* times what is usual */
#define SLOPE_ERRORS 2
#define VARIES       0.1 /* of its lag: what it takes has to change, to tell whether steps do with it */
#define MAD_TO_SIGMA 1.4826
#define STAGE_BEFORE 8 /* steps, before and since a stage is slow */

/* Members of each group, one after the other. */
struct crowd {
	uint32_t *workers;
	size_t *first; /* by group */
};

static void crowd_done(struct crowd *c)
{
	free(c->workers);
	free(c->first);
}

static int crowd_init(const struct job *j, struct crowd *c)
{
	_cleanup_free_ size_t *at = calloc(j->group_count + 1, sizeof(*at));

	c->workers = calloc(j->worker_count + 1, sizeof(*c->workers));
	c->first = calloc((size_t)j->group_count + 2, sizeof(*c->first));
	if (!at || !c->workers || !c->first)
		return -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++)
		c->first[j->group[w] + 1]++;
	for (uint32_t g = 0; g < j->group_count; g++) {
		c->first[g + 1] += c->first[g];
		at[g] = c->first[g];
	}
	for (uint32_t w = 0; w < j->worker_count; w++)
		c->workers[at[j->group[w]]++] = w;
	return 0;
}

/* For each of @n values the lower median of the others; of one alone itself. @sorted is room. */
static void medians_of_others(const float *values, size_t n, float *sorted, float *ret)
{
	size_t k = n >= 2 ? (n - 2) / 2 : 0;

	memcpy(sorted, values, n * sizeof(*values));
	blame_median(sorted, n);
	for (size_t i = 0; i < n; i++)
		ret[i] = n < 2 ? values[i] : values[i] > sorted[k] ? sorted[k] : sorted[k + 1];
}

/* Standard deviation over mean. */
static double spread_of(const float *values, size_t n)
{
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < n; i++) {
		sum += (double)values[i];
		squares += (double)values[i] * (double)values[i];
	}
	mean = sum / (double)n;
	return mean > 0 ? sqrt(MAX(squares / (double)n - mean * mean, 0.0)) / mean : 0;
}

struct room { /* for the values of one group */
	float *values, *sorted, *medians;
};

static void room_done(struct room *m)
{
	free(m->values);
	free(m->sorted);
	free(m->medians);
}

static int room_init(struct room *m, size_t n)
{
	m->values = calloc(n + 1, sizeof(*m->values));
	m->sorted = calloc(n + 1, sizeof(*m->sorted));
	m->medians = calloc(n + 1, sizeof(*m->medians));
	return m->values && m->sorted && m->medians ? 0 : -ENOMEM;
}

/* excess[] of a group. Who did nothing in a step was not there: it says nothing of what the others need. */
static void find_excess(struct job *j, const uint32_t *workers, size_t n, struct room *m)
{
	for (size_t s = 0; s < j->step_count; s++) {
		size_t count = 0, at = 0;

		for (size_t i = 0; i < n; i++)
			if (j->own[workers[i] * j->step_count + s] > 0)
				m->values[count++] = j->own[workers[i] * j->step_count + s];
		medians_of_others(m->values, count, m->sorted, m->medians);
		for (size_t i = 0; i < n; i++) {
			size_t cell = workers[i] * j->step_count + s;

			if (j->own[cell] <= 0)
				continue;
			j->excess[cell] = m->values[at] - m->medians[at];
			if (m->medians[at] < m->values[at]) {
				float more = j->path[cell] * (1 - m->medians[at] / m->values[at]);

				j->costs[workers[i]].uneven_ns += (double)more;
				j->uneven[s] += more;
			}
			at++;
		}
	}
}

/* What a worker needs in the first steps alone, or far more there than ever after, is the start of its job. */
static void forgive_start(struct job *j, uint32_t worker)
{
	float *excess = j->excess + worker * j->step_count;
	bool *late = j->late + worker * j->step_count;
	float most = 0;

	if (j->step_count < STEPS_TELL)
		return;
	for (size_t s = START_STEPS; s < j->step_count; s++)
		most = late[s] ? MAX(most, excess[s]) : most;
	for (size_t s = 0; s < START_STEPS; s++) {
		if (!late[s] || excess[s] <= OUTLIER * most)
			continue;
		late[s] = false;
		excess[s] = 0;
	}
}

/* What is needed in the better part of @n steps. @room has room for them. */
static float usual_of(const float *values, size_t n, float *room)
{
	size_t count = 0;

	for (size_t s = 0; s < n; s++)
		if (values[s] > 0)
			room[count++] = values[s];
	(void)blame_median(room, count);
	return count ? room[count / USUAL_PART] : 0;
}

/* excess[] of a worker that has no peers: over what it ordinarily needs itself, as far as the step has become longer by
 * it. What waits that nobody recorded look like is in no step's length. */
static void find_excess_alone(struct job *j, uint32_t worker, struct room *m)
{
	const int64_t *cuts = j->group_cuts + (size_t)j->group[worker] * (j->step_count + 1);
	float *own = j->own + worker * j->step_count;
	float usual = usual_of(own, j->step_count, m->sorted), step;

	for (size_t s = 0; s < j->step_count; s++)
		m->values[s] = (float)(cuts[s + 1] - cuts[s]);
	step = usual_of(m->values, j->step_count, m->sorted);
	for (size_t s = 0; s < j->step_count; s++)
		if (own[s] > 0)
			j->excess[worker * j->step_count + s] =
				MIN(own[s] - usual, MAX(m->values[s] - step, 0.0F));
}

/* late[] of a group: what is far from its ordinary distances. */
static int find_late(struct job *j, uint32_t group, const uint32_t *workers, size_t n)
{
	size_t cells = n * j->step_count, every = cells / SAMPLES_MAX + 1, count = 0;
	_cleanup_free_ float *sample = calloc(cells / every + 2, sizeof(*sample));
	double least;

	if (!sample)
		return -ENOMEM;
	for (size_t i = 0; i < cells; i += every)
		sample[count++] = fabsf(
			j->excess[workers[i / j->step_count] * j->step_count + i % j->step_count]);
	j->sigma[group] = (float)MAD_TO_SIGMA * blame_median(sample, count);
	least = MAX(LATE_SIGMAS * (double)j->sigma[group], LATE_SHARE * (double)j->step_ns);
	for (size_t i = 0; i < n; i++) {
		for (size_t s = 0; s < j->step_count; s++)
			j->late[workers[i] * j->step_count + s] =
				(double)j->excess[workers[i] * j->step_count + s] > least;
		forgive_start(j, workers[i]);
	}
	return 0;
}

static double length_of(const struct job *j, size_t step)
{
	return (double)(j->cuts[step + 1] - j->cuts[step]);
}

/* What the late steps of @worker are longer than its others; INFINITY: these are too few to tell. */
static double longer_by(const struct job *j, uint32_t worker, float *room)
{
	double sum = 0, usual;
	size_t n = 0;

	for (size_t s = 0; s < j->step_count; s++)
		if (!j->late[worker * j->step_count + s])
			room[n++] = (float)length_of(j, s);
	if (n < STEPS_TELL)
		return INFINITY;
	usual = (double)blame_median(room, n);
	for (size_t s = 0; s < j->step_count; s++)
		if (j->late[worker * j->step_count + s])
			sum += length_of(j, s) - usual;
	return MAX(sum, 0.0);
}

/* The longest that one of the group takes in a step; 0: the step is no ordinary one. */
static double longest_own(const struct job *j, const uint32_t *workers, size_t n, size_t step)
{
	double most = 0;

	if (length_of(j, step) > OUTLIER * (double)j->step_ns)
		return 0;
	for (size_t i = 0; i < n; i++)
		most = MAX(most, (double)j->own[workers[i] * j->step_count + step]);
	return most;
}

struct exposure {
	double share; /* by how much steps are longer for each nanosecond that the slowest takes longer, at most */
	double varies_ns; /* how much that changes: it tells of no more than a few times that */
};

static struct exposure find_exposure(const struct job *j, const uint32_t *workers, size_t n)
{
	double count = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0, slope, error;

	for (size_t s = 0; s < j->step_count; s++) {
		double own = longest_own(j, workers, n, s), step = length_of(j, s);

		if (own <= 0)
			continue;
		count++;
		x += own;
		y += step;
		xx += own * own;
		xy += own * step;
		yy += step * step;
	}
	if (count < STEPS_TELL)
		return (struct exposure){1, 0};
	xx -= x * x / count;
	xy -= x * y / count;
	yy -= y * y / count;
	if (xx <= 0)
		return (struct exposure){1, 0};
	slope = xy / xx;
	error = sqrt(MAX(yy - slope * xy, 0.0) / (count - 2) / xx);
	return (struct exposure){
		MIN(MAX(slope + SLOPE_ERRORS * error, 0.0), 1.0), sqrt(xx / count)};
}

/* How much of what @worker lags by makes steps longer; all of it where that cannot be told. */
static double exposed_share(const struct job *j, uint32_t worker, const struct exposure *e)
{
	double lag = 0;

	for (size_t s = 0; s < j->step_count; s++)
		lag += (double)j->excess[worker * j->step_count + s];
	return e->varies_ns >= VARIES * lag / (double)j->step_count ? e->share : 1;
}

/* What @worker's path costs in the late steps. */
static void weigh_late(struct job *j, uint32_t worker, const struct exposure *e, float *room)
{
	struct job_cost *c = &j->costs[worker];
	double longer;

	for (size_t s = 0; s < j->step_count; s++) {
		size_t at = worker * j->step_count + s;

		c->seen += j->own[at] > 0;
		if (!j->late[at])
			continue;
		c->late++;
		c->late_ns += (double)(j->path[at] * (j->excess[at] / j->own[at]));
		c->excess_ns += (double)j->excess[at];
	}
	longer = c->late ? longer_by(j, worker, room) : 0;
	c->late_ns =
		isinf(longer) ? c->late_ns * exposed_share(j, worker, e) : MIN(c->late_ns, longer);
	c->lost_ns += c->late_ns;
}

/* The other steps, by blocks: sums of a member against those of its peers in the same steps. */
static void weigh_blocks(struct job *j, const uint32_t *workers, size_t n, const struct exposure *e)
{
	size_t size = j->step_count < 2 * BLOCK ? j->step_count : BLOCK;

	for (size_t i = 0; n > 1 && i < n; i++) {
		struct job_cost *c = &j->costs[workers[i]];
		double exposed = exposed_share(j, workers[i], e);

		for (size_t first = 0; first < j->step_count; first += size) {
			size_t end =
				first + size * 2 > j->step_count ? j->step_count : first + size;
			double own = 0, excess = 0, path = 0;

			for (size_t s = first; s < end; s++) {
				size_t at = workers[i] * j->step_count + s;

				if (j->late[at])
					continue;
				own += (double)j->own[at];
				excess += (double)j->excess[at];
				path += (double)j->path[at];
			}
			if (excess > 0 && own > 0) {
				c->lost_ns += path * excess / own * exposed;
				c->excess_ns += excess * exposed;
			}
			if (end == j->step_count)
				break;
		}
	}
}

/* Sums over all steps, and how much chance is in them. */
static void weigh_lasting(struct job *j, const uint32_t *workers, size_t n, struct room *m)
{
	for (size_t i = 0; i < n; i++) {
		struct job_cost *c = &j->costs[workers[i]];
		double sum = 0, squares = 0, steps = (double)j->step_count;

		for (size_t s = 0; s < j->step_count; s++) {
			size_t at = workers[i] * j->step_count + s;
			double peers = (double)(j->own[at] - j->excess[at]);
			double ratio = peers > 0 ? (double)j->own[at] / peers : 1;

			c->own_ns += (double)j->own[at];
			sum += ratio;
			squares += ratio * ratio;
		}
		m->values[i] = (float)c->own_ns;
		c->noise = sqrt(MAX(squares / steps - sum / steps * (sum / steps), 0.0) / steps);
	}
	medians_of_others(m->values, n, m->sorted, m->medians);
	for (size_t i = 0; i < n; i++)
		j->costs[workers[i]].peer_ns = (double)m->medians[i];
}

/* How far the members of a group are apart in the steps from @from up to @to. */
static void add_spread(const struct job *j, const uint32_t *workers, size_t n, size_t from,
	size_t to, struct room *m, struct job_load *ret)
{
	double spread = 0;

	for (size_t s = from; s < to; s++) {
		size_t count = 0;

		for (size_t i = 0; i < n; i++)
			if (j->own[workers[i] * j->step_count + s] > 0)
				m->values[count++] = j->own[workers[i] * j->step_count + s];
		spread += count > 1 ? spread_of(m->values, count) : 0;
	}
	ret->spread_step += spread / ret->steps * (double)n / (double)j->worker_count;
	for (size_t i = 0; i < n; i++) {
		m->values[i] = 0;
		for (size_t s = from; s < to; s++)
			m->values[i] += j->own[workers[i] * j->step_count + s];
	}
	ret->spread_lasting += spread_of(m->values, n) * (double)n / (double)j->worker_count;
}

/* Load that moves does so in most steps, by more and less: of what somebody pauses for now and then no more counts than
 * OUTLIER ordinary steps lose. */
static void weigh_load(const struct job *j, const struct crowd *c, size_t from, size_t to,
	struct room *m, struct job_load *ret)
{
	size_t steps = to - from;
	double most;

	*ret = (struct job_load){
		.steps = (double)steps, .span_ns = (double)(j->cuts[to] - j->cuts[from])};
	for (uint32_t g = 0; g < j->group_count; g++)
		if (c->first[g + 1] > c->first[g] + 1)
			add_spread(j, c->workers + c->first[g], c->first[g + 1] - c->first[g], from,
				to, m, ret);
	memcpy(m->values, j->uneven + from, steps * sizeof(*m->values));
	most = OUTLIER * (double)blame_median(m->values, steps);
	for (size_t s = 0; s < steps; s++)
		ret->uneven_ns += MIN((double)m->values[s], most);
}

/* Nobody costs the others more than any of them was held up: where the GPU of those that wait is at work, they would have
 * waited for that. */
static void bound_costs(struct job *j)
{
	double most[2] = {0}; /* of all, and of all but the first of these */
	uint32_t top = 0;

	for (uint32_t w = 0; w < j->worker_count; w++) {
		double held = j->held_ns[w];

		if (held > most[0]) {
			most[1] = most[0];
			most[0] = held;
			top = w;
		} else {
			most[1] = MAX(most[1], held);
		}
	}
	for (uint32_t w = 0; w < j->worker_count; w++) {
		struct job_cost *c = &j->costs[w];
		double held = most[w == top];

		c->exposed = c->lost_ns > held ? held / c->lost_ns : 1;
		c->lost_ns *= c->exposed;
		c->late_ns *= c->exposed;
	}
}

static int weigh_groups(struct job *j)
{
	_cleanup_(crowd_done) struct crowd c = {0};
	_cleanup_(room_done) struct room m = {0};
	_cleanup_free_ float *lengths = calloc(j->step_count + 1, sizeof(*lengths));
	struct job_load before;
	struct exposure e;
	uint32_t since;
	int r = lengths ? crowd_init(j, &c) : -ENOMEM;

	r = r < 0 ? r : room_init(&m, MAX(j->worker_count, j->step_count));
	for (uint32_t g = 0; r == 0 && g < j->group_count; g++) {
		const uint32_t *workers = c.workers + c.first[g];
		size_t n = c.first[g + 1] - c.first[g];

		if (n > 1)
			find_excess(j, workers, n, &m);
		else if (j->is_steady) /* parts of steps are never alike */
			find_excess_alone(j, workers[0], &m);
		r = find_late(j, g, workers, n);
		if (r < 0)
			break;
		e = find_exposure(j, workers, n);
		for (size_t i = 0; i < n; i++)
			weigh_late(j, workers[i], &e, lengths);
		weigh_blocks(j, workers, n, &e);
		weigh_lasting(j, workers, n, &m);
	}
	if (r < 0)
		return r;
	bound_costs(j);
	weigh_load(j, &c, 0, j->step_count, &m, &j->load);
	since = blame_since(j->uneven, j->step_count, lengths);
	weigh_load(j, &c, since, j->step_count, &m, &j->begun);
	if (since) {
		weigh_load(j, &c, 0, since, &m, &before);
		j->spread_before = before.spread_step;
	}
	return 0;
}

/* Own time of @stage in @step against that of all others. */
static float stage_against(const struct job *j, int32_t stage, size_t step)
{
	double own[2] = {0}, workers[2] = {0};

	for (uint32_t w = 0; w < j->worker_count; w++) {
		own[j->stage[w] == stage] += (double)j->own[w * j->step_count + step];
		workers[j->stage[w] == stage]++;
	}
	return own[0] > 0 && workers[1] > 0 ? (float)(own[1] / workers[1] / (own[0] / workers[0]))
					    : 1;
}

static float median_of(const float *values, size_t n, float *room)
{
	memcpy(room, values, n * sizeof(*values));
	return blame_median(room, n);
}

/* Found where the most of the steps before are below the median of all, and of those after above it. */
uint32_t blame_since(const float *series, size_t n, float *room)
{
	float middle = median_of(series, n, room);
	int64_t sum = 0, least = 0;
	uint32_t since = 0;

	for (size_t s = 0; s < n; s++) {
		sum += (series[s] > middle) - (series[s] < middle);
		if (sum < least) {
			least = sum;
			since = (uint32_t)(s + 1);
		}
	}
	if (since < STAGE_BEFORE || since + STAGE_BEFORE > n ||
		(double)median_of(series + since, n - since, room) <
			JOB_STAGE_RATIO * (double)median_of(series, since, room))
		return 0;
	return since;
}

/* The step from which on @stage is slower than before; 0: it always was, at least by the greater part. */
static int stage_since(const struct job *j, int32_t stage, uint32_t *ret)
{
	_cleanup_free_ float *against = calloc(2 * j->step_count + 1, sizeof(*against));
	float *room;

	if (!against)
		return -ENOMEM;
	for (size_t s = 0; s < j->step_count; s++)
		against[s] = stage_against(j, stage, s);
	room = against + j->step_count;
	*ret = blame_since(against, j->step_count, room);
	if (*ret) {
		double before = (double)median_of(against, *ret, room);
		double since = (double)median_of(against + *ret, j->step_count - *ret, room);

		if (since - before < before - 1)
			*ret = 0;
	}
	return 0;
}

/* Median own time of a stage's workers, in all steps from @from on. */
static double stage_own(const struct job *j, int32_t stage, size_t from, float *room)
{
	size_t n = 0;

	for (uint32_t w = 0; w < j->worker_count; w++) {
		if (j->stage[w] != stage)
			continue;
		room[n] = 0;
		for (size_t s = from; s < j->step_count; s++)
			room[n] += j->own[w * j->step_count + s];
		n++;
	}
	return (double)blame_median(room, n);
}

/* What @stage costs since it is slow. */
static int weigh_stage(struct job *j, int32_t stage, struct room *m, float *room)
{
	size_t n = (size_t)j->stage_count, from;
	int r = stage_since(j, stage, &j->stage_since[stage]);

	if (r < 0)
		return r;
	from = j->stage_since[stage];
	for (size_t s = 0; s < n; s++)
		m->values[s] = (float)stage_own(j, (int32_t)s, from, room);
	medians_of_others(m->values, n, m->sorted, m->medians);
	j->stage_ratio[stage] =
		m->medians[stage] > 0 ? (double)(m->values[stage] / m->medians[stage]) : 1;
	if (j->stage_ratio[stage] <= 1)
		return 0;
	for (uint32_t w = 0; w < j->worker_count; w++) {
		double path = 0, all = 0, more = MAX(j->costs[w].lost_ns, j->costs[w].uneven_ns);

		if (j->stage[w] != stage)
			continue;
		for (size_t i = 0; i < j->step_count; i++) {
			double p = (double)j->path[w * j->step_count + i];

			all += p;
			path += i >= from ? p : 0;
		}
		path = MAX(path - (all > 0 ? more * path / all : 0), 0.0);
		j->stage_cost_ns[stage] += path * (1 - 1 / j->stage_ratio[stage]);
	}
	return 0;
}

static int weigh_stages(struct job *j)
{
	size_t n = (size_t)j->stage_count;
	_cleanup_free_ float *room = calloc(j->worker_count + 1, sizeof(*room));
	_cleanup_(room_done) struct room m = {0};
	int r = room ? room_init(&m, n) : -ENOMEM;

	j->stage_cost_ns = calloc(n + 1, sizeof(*j->stage_cost_ns));
	j->stage_ratio = calloc(n + 1, sizeof(*j->stage_ratio));
	j->stage_since = calloc(n + 1, sizeof(*j->stage_since));
	if (r < 0 || !j->stage_cost_ns || !j->stage_ratio || !j->stage_since)
		return -ENOMEM;
	for (int32_t s = 0; r == 0 && n > 1 && s < j->stage_count; s++)
		r = weigh_stage(j, s, &m, room);
	return r;
}

int blame_weigh(struct job *j)
{
	size_t cells = j->worker_count * j->step_count + 1;
	int r;

	j->excess = calloc(cells, sizeof(*j->excess));
	j->late = calloc(cells, sizeof(*j->late));
	j->costs = calloc(j->worker_count + 1, sizeof(*j->costs));
	j->sigma = calloc((size_t)j->group_count + 1, sizeof(*j->sigma));
	j->uneven = calloc(j->step_count + 1, sizeof(*j->uneven));
	if (!j->uneven || !j->excess || !j->late || !j->costs || !j->sigma)
		return -ENOMEM;
	r = weigh_groups(j);
	return r < 0 ? r : weigh_stages(j);
}
