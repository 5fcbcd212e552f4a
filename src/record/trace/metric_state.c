/* SPDX-License-Identifier: Apache-2.0 */
/* metric_state.c - see metric_state.h. Lists are searched from end to end: they have a few hundred entries,
 * and collectives come by the thousand a second at most. */
#include "record/trace/metric_state.h"

const uint64_t metric_state_throttle_bits[] = {
#define X(NAME, bits) [THROTTLE_##NAME] = (bits),
	METRIC_STATE_THROTTLES(X)
#undef X
};

struct metric_state *metric_state_new(void)
{
	return calloc(1, sizeof(struct metric_state));
}

void metric_state_free(struct metric_state *f)
{
	for (size_t i = 0; i < WIRE_OP_MAX; i++)
		free(f->waits[i]);
	free(f);
}

static bool is_same(const struct metric_state_collective *a, uint32_t pid, uint16_t op,
	const struct collective *c)
{
	return a->pid == pid && a->op == op && a->c.comm_hash == c->comm_hash &&
	       a->c.comm == c->comm && a->c.rank == c->rank && a->c.datatype == c->datatype &&
	       a->c.reduce_op == c->reduce_op && a->c.peer == c->peer;
}

static struct metric_state_collective *collective_slot(
	struct metric_state *f, const struct event *e, const struct collective *c)
{
	for (size_t i = 0; i < f->collective_count; i++)
		if (is_same(&f->collectives[i], e->pid, e->op, c))
			return &f->collectives[i];
	if (f->collective_count == METRIC_STATE_COLLECTIVES)
		return NULL;
	return &f->collectives[f->collective_count++];
}

void metric_state_collective(
	struct metric_state *f, const struct event *e, const struct collective *c)
{
	struct metric_state_collective *slot = collective_slot(f, e, c);

	if (slot)
		*slot = (struct metric_state_collective){e->pid, e->op, e->dur_ns, *c};
	else
		f->cut++;
	if (c->wait_ns < 0 || e->op >= WIRE_OP_MAX)
		return;
	if (c->span_ns > 0 && !e->ret)
		f->bus_bandwidth[e->op] = bandwidth_size(e->op, c->bytes, c->nranks) *
					  bandwidth_factor(e->op, c->nranks) /
					  ((double)c->span_ns / (double)NS_PER_S);
	f->waits[e->op] = f->waits[e->op] ?: calloc(1, sizeof(*f->waits[e->op]));
	if (f->waits[e->op])
		sketch_add(f->waits[e->op], (uint64_t)c->wait_ns, 1);
	else
		f->cut++;
}

static struct metric_state_gpu *gpu_slot(struct metric_state *f, const char *uuid)
{
	struct metric_state_gpu *g = f->gpus;

	for (; g < f->gpus + f->gpu_count; g++)
		if (!strcmp(g->uuid, uuid))
			return g;
	if (f->gpu_count == METRIC_STATE_GPUS)
		return NULL;
	f->gpu_count++;
	*g = (struct metric_state_gpu){0};
	snprintf(g->uuid, sizeof(g->uuid), "%s", uuid);
	return g;
}

/* An edge is a reading in which a group of reasons is there and was not in the one before; what is
 * there at the first reading began before it. */
void metric_state_gpu(struct metric_state *f, const struct gpu_sample *s)
{
	size_t known = f->gpu_count;
	struct metric_state_gpu *g = gpu_slot(f, s->uuid);
	uint64_t now;

	if (!g) {
		f->cut++;
		return;
	}
	if (s->throttle_reasons == GPU_UNKNOWN)
		return;
	now = (uint64_t)s->throttle_reasons;
	for (int i = 0; i < THROTTLE_COUNT && f->gpu_count == known; i++)
		g->edges[i] += now & metric_state_throttle_bits[i] &&
			       !(g->throttle & metric_state_throttle_bits[i]);
	g->throttle = now;
}

static size_t case_find(const struct metric_state *f, const char *id)
{
	size_t i = 0;

	while (i < f->case_count && strcmp(f->cases[i].id, id) != 0)
		i++;
	return i;
}

void metric_state_incident(
	struct metric_state *f, const struct incident *i, enum incident_change change)
{
	size_t at = case_find(f, i->id);
	struct metric_state_case *c = &f->cases[at];

	if (i->problem >= PROBLEM_COUNT || i->severity >= SEVERITY_COUNT)
		return;
	if (change == INCIDENT_NEW)
		f->found[i->problem][i->severity]++;
	if (at < f->case_count) { /* its severity may have grown */
		f->open[c->problem][c->severity]--;
		*c = f->cases[--f->case_count];
	}
	if (change == INCIDENT_RESOLVED)
		return;
	if (f->case_count == INCIDENT_TRACKER_MAX) {
		f->cut++;
		return;
	}
	c = &f->cases[f->case_count++];
	*c = (struct metric_state_case){.problem = i->problem, .severity = i->severity};
	memcpy(c->id, i->id, sizeof(c->id));
	f->open[i->problem][i->severity]++;
}

void metric_state_nccl_begin(struct metric_state *f)
{
	f->has_nccl = true;
	f->nccl_count = 0;
}

void metric_state_nccl_process(struct metric_state *f, const struct target_process *p)
{
	for (size_t i = 0; i < p->library_count; i++) {
		struct metric_state_nccl *n;

		if (p->libraries[i].kind != TARGET_NCCL)
			continue;
		if (f->nccl_count < METRIC_STATE_NCCL) {
			n = &f->nccl[f->nccl_count];
			n->pid = p->pid;
			memcpy(n->comm, p->comm, sizeof(n->comm));
			memcpy(n->path, p->libraries[i].path, sizeof(n->path));
		} else {
			f->cut++;
		}
		f->nccl_count++;
		return;
	}
}

void metric_state_process_gone(struct metric_state *f, uint32_t pid)
{
	for (size_t i = 0; i < f->collective_count;)
		if (f->collectives[i].pid == pid)
			f->collectives[i] = f->collectives[--f->collective_count];
		else
			i++;
}

const char *metric_state_nccl_version(const char *path)
{
	const char *base = strrchr(path, '/'), *version;

	version = strstr(base ? base : path, ".so.");
	return version ? version + strlen(".so.") : "";
}
