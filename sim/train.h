/* SPDX-License-Identifier: Apache-2.0 */
/* train.h - the parts of sim-train: settings, one host thread's state, and what a step is made of.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_sim.h"

#define TRAIN_MAX_STREAMS 64

struct train_settings {
	uint64_t steps, launches, copies, kernel_us, batch_bytes, streams, threads, malloc_every,
		cpu_us, duration_s, error_every, recapture_every, leak_bytes, checkpoint_every,
		checkpoint_bytes, slow_from, slow_factor, loader_us, fragment_every, ask_us,
		ask_every, swap_every, swap_bytes, device, leak_until, vary_percent, burst,
		pause_us;
	const char *data, *wait_start, *step_log, *checkpoint, *swap_file;
	bool cold, all_ops, graphs, graph_update;
};

/* A file that batches are read from, mapped whole; shared by the threads. */
struct train_data {
	int fd;
	const char *bytes;
	uint64_t size;
};

struct train_worker {
	pthread_t thread;
	const struct train_settings *settings;
	const struct train_data *data; /* NULL: batches come from memory */
	cudaStream_t streams[TRAIN_MAX_STREAMS];
	struct sim_kernel kernel;
	cudaGraphExec_t graph; /* NULL: not captured yet */
	void *device_batch, *host_batch;
	uint64_t data_at, errors, steps, random;
	uint64_t *step_ns, *step_start_ns;
	bool asks; /* ask_fd is open, or could not be opened (-1) */
	int ask_fd;
	int failed; /* 0 or the CUDA error that ended the thread */
};

/* train_step - one step; 0 or the first unexpected CUDA error. */
int train_step(struct train_worker *w);

/* train_faults - what a step does wrong on purpose, by the options for it; likewise. */
int train_faults(struct train_worker *w);

/* train_ask_start - the service that answers after @us; 0 or -errno. train_ask - a question to it.
 */
int train_ask_start(uint64_t us);
int train_ask(struct train_worker *w);

/* train_swap_prepare - write the file; 0 or -errno. train_swap - load it. */
int train_swap_prepare(const struct train_settings *s);
int train_swap(struct train_worker *w);

/* train_all_ops - one call of every function of the stand-in; likewise. */
int train_all_ops(struct train_worker *w);
