// SPDX-License-Identifier: Apache-2.0
/* group.c - groups of the stand-in libnccl. Calls between start and end are kept by the thread that
 * made them; the outermost end submits those of one communicator and stream as one batch, in the
 * order of their calls, and then waits for communicators that were made in the group. */
#include <stdlib.h>

#include "nccl.h"

#define MAX_CALLS 65536
#define MAX_COMMS 1024

static _Thread_local struct group {
	unsigned depth;
	ncclResult_t failed; /* the first error of a call; the end returns it and submits nothing */
	size_t count, room;
	struct comm_call *calls;
	size_t comm_count;
	ncclComm_t comms[MAX_COMMS];
} * group;

static struct group *group_get(void)
{
	if (!group)
		group = calloc(1, sizeof(*group));
	return group;
}

bool group_is_open(void)
{
	return group && group->depth > 0;
}

void group_start(void)
{
	struct group *g = group_get();

	if (g)
		g->depth++;
}

ncclResult_t group_add_comm(ncclComm_t c)
{
	if (group->comm_count == MAX_COMMS)
		return ncclSystemError;
	group->comms[group->comm_count++] = c;
	return ncclSuccess;
}

static ncclResult_t call_keep(const struct comm_call *call)
{
	struct group *g = group;

	if (g->count == g->room) {
		size_t room = g->room ? g->room * 2 : 64;
		struct comm_call *grown =
			room > MAX_CALLS ? NULL : realloc(g->calls, room * sizeof(*grown));

		if (!grown)
			return ncclSystemError;
		g->calls = grown;
		g->room = room;
	}
	g->calls[g->count++] = *call;
	return ncclSuccess;
}

ncclResult_t group_call(const struct comm_call *call)
{
	ncclResult_t r;

	if (!group_is_open())
		return comm_submit(call, 1);
	r = call_keep(call);
	if (r != ncclSuccess && group->failed == ncclSuccess)
		group->failed = r;
	return r;
}

/* Takes the calls that go with the first one out of the list; returns how many. */
static size_t batch_take(struct group *g, struct comm_call *to)
{
	ncclComm_t comm = g->calls[0].comm;
	cudaStream_t stream = g->calls[0].stream;
	size_t taken = 0, left = 0;

	for (size_t i = 0; i < g->count; i++) {
		if (g->calls[i].comm == comm && g->calls[i].stream == stream)
			to[taken++] = g->calls[i];
		else
			g->calls[left++] = g->calls[i];
	}
	g->count = left;
	return taken;
}

static ncclResult_t calls_submit(struct group *g)
{
	struct comm_call *batch = calloc(g->count, sizeof(*batch));
	ncclResult_t r = batch ? ncclSuccess : ncclSystemError;

	while (r == ncclSuccess && g->count > 0) {
		size_t taken = batch_take(g, batch);

		r = comm_submit(batch, taken);
	}
	free(batch);
	return r;
}

static ncclResult_t comms_wait(struct group *g)
{
	ncclResult_t r = ncclSuccess;

	for (size_t i = 0; i < g->comm_count && r != ncclSystemError; i++) {
		ncclResult_t one = g->comms[i]->nonblocking ? comm_state(g->comms[i])
							    : comm_wait_ready(g->comms[i]);

		r = one != ncclSuccess ? one : r;
	}
	return r;
}

ncclResult_t group_end(void)
{
	struct group *g = group;
	ncclResult_t r;

	if (!group_is_open())
		return ncclInvalidUsage;
	if (--g->depth > 0)
		return ncclSuccess;
	r = g->failed;
	if (r == ncclSuccess && g->count > 0)
		r = calls_submit(g);
	if (r == ncclSuccess)
		r = comms_wait(g);
	free(g->calls);
	free(g);
	group = NULL;
	return r;
}
