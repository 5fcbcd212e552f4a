// SPDX-License-Identifier: Apache-2.0
/* train_faults.c - the faults that a training loop brings on itself: leaks, fragmented memory,
 * checkpoints in the middle of a step, kernels that get slower. Each does the real thing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train.h"
#include "workload.h"

#define BLOCK      (1u << 20)
#define PIECE      (64u << 20)
#define MAX_PIECES 4096

/* Out of memory is what a leak comes to: counted, and the loop goes on. */
static int leak(struct train_worker *w)
{
	void *p;
	int r = cudaMalloc(&p, w->settings->leak_bytes);

	w->errors += r == SIM_OUT_OF_MEMORY;
	return r == SIM_OUT_OF_MEMORY ? 0 : r;
}

/* Half the memory is free, and none of it in one piece of two. */
static int fragment(struct train_worker *w)
{
	static _Thread_local void *pieces[MAX_PIECES];
	size_t count = 0;
	void *large;
	int r;

	while (count < MAX_PIECES && cudaMalloc(&pieces[count], PIECE) == 0)
		count++;
	w->errors++; /* the one that did not fit */
	for (size_t i = 1; i < count; i += 2)
		cudaFree(pieces[i]);
	r = cudaMalloc(&large, 2 * (size_t)PIECE);
	w->errors += r != 0;
	if (r == 0)
		cudaFree(large);
	for (size_t i = 0; i < count; i += 2)
		cudaFree(pieces[i]);
	return 0;
}

static int checkpoint_write(int fd, uint64_t bytes)
{
	static const char block[BLOCK];

	while (bytes > 0) {
		ssize_t n = write(fd, block, bytes < BLOCK ? bytes : BLOCK);

		if (n < 0)
			return -errno;
		bytes -= (uint64_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int save_checkpoint(struct train_worker *w)
{
	int fd = open(w->settings->checkpoint, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : checkpoint_write(fd, w->settings->checkpoint_bytes);

	if (fd >= 0)
		close(fd);
	if (r < 0)
		fprintf(stderr, "sim-train: %s: %s\n", w->settings->checkpoint, strerror(-r));
	return r < 0 ? SIM_INVALID_VALUE : 0;
}

int train_faults(struct train_worker *w)
{
	const struct train_settings *s = w->settings;
	uint64_t number = w->steps + 1;
	int r = 0;

	if (s->slow_from && number == s->slow_from)
		w->kernel.dur_ns *= s->slow_factor;
	if (s->leak_bytes && (!s->leak_until || number <= s->leak_until))
		r = leak(w);
	if (r == 0 && s->fragment_every && number % s->fragment_every == 0)
		r = fragment(w);
	if (r == 0 && s->checkpoint && number % s->checkpoint_every == 0)
		r = save_checkpoint(w);
	if (r == 0 && s->ask_us && number % s->ask_every == 0)
		r = train_ask(w);
	if (r == 0 && s->swap_file && number % s->swap_every == 0)
		r = train_swap(w);
	return r;
}
