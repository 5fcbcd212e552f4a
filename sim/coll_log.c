// SPDX-License-Identifier: Apache-2.0
/* coll_log.c - appends whole lines with one write() each, so that several ranks may share a file.
 * The file is opened at the first line of a process; a forked child opens its own. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coll_log.h"
#include "knob.h"
#include "tally.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fd = -1, owner;

static const char *const names[] = {
	[COMM_ALL_REDUCE] = "AllReduce",
	[COMM_REDUCE] = "Reduce",
	[COMM_BROADCAST] = "Broadcast",
	[COMM_ALL_GATHER] = "AllGather",
	[COMM_REDUCE_SCATTER] = "ReduceScatter",
	[COMM_ALL_TO_ALL] = "AlltoAll",
	[COMM_GATHER] = "Gather",
	[COMM_SCATTER] = "Scatter",
	[COMM_SEND] = "Send",
	[COMM_RECV] = "Recv",
};

/* Under the lock. */
static int file_of_process(void)
{
	char path[4096];

	if (owner == getpid())
		return fd;
	if (fd >= 0)
		close(fd);
	owner = getpid();
	fd = -1;
	if (tally_path(knob_get()->tally, owner, ".nccl", path, sizeof(path)) == 0)
		fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		fprintf(stderr, "sim: %s.nccl cannot be opened\n", knob_get()->tally);
	return fd;
}

static void line_write(const char *line)
{
	int to;

	pthread_mutex_lock(&lock);
	to = file_of_process();
	if (to >= 0 && write(to, line, strlen(line)) != (ssize_t)strlen(line))
		fprintf(stderr, "sim: a line of %s.nccl was lost\n", knob_get()->tally);
	pthread_mutex_unlock(&lock);
}

static void call_write(
	const char *word, const struct comm_call *c, uint64_t arrive_ns, uint64_t wait_ns)
{
	char line[512];

	if (!knob_get()->tally)
		return;
	snprintf(line, sizeof(line),
		"%s %016" PRIx64 " %" PRIu64 " %s %d %d %" PRIu64 " %d %d %d %d %" PRIu64
		" %" PRIu64 " %" PRIu64 "\n",
		word, c->comm->hash, c->number, names[c->op], c->comm->rank, c->comm->nranks,
		c->count, c->datatype, c->redop, c->root, c->peer, c->bytes, arrive_ns, wait_ns);
	line_write(line);
}

void coll_log_done(const struct comm_call *call, uint64_t arrive_ns, uint64_t last_ns)
{
	call_write("coll", call, arrive_ns, last_ns - arrive_ns);
}

void coll_log_pending(const struct comm_call *call, uint64_t arrive_ns, uint64_t now_ns)
{
	call_write("pending", call, arrive_ns, now_ns > arrive_ns ? now_ns - arrive_ns : 0);
}

void coll_log_mismatch(const struct comm_call *call, int other_rank, const struct meet_call *other)
{
	char line[512];

	if (!knob_get()->tally)
		return;
	snprintf(line, sizeof(line),
		"mismatch %016" PRIx64 " %" PRIu64 " %s %d %" PRIu64 " %s %d %" PRIu64 "\n",
		call->comm->hash, call->number, names[call->op], call->comm->rank, call->count,
		names[other->op], other_rank, other->count);
	line_write(line);
}
