/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - the parts of sim-nccl: settings, one rank's state, and what a rank does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nccl_sim.h"

#define RANKS_MAX     256
#define RANKS_MAX_OPS 16 /* collectives of a step */

struct rank_grown { /* what the first rank tells the one that joins; shared by processes */
	_Atomic bool is_there;
	ncclUniqueId id;
};

struct rank_settings {
	uint64_t ranks, steps, duration_s, kernel_us, count, delay_us, delay_every, delay_rank,
		delay_from, hang_rank, hang_step, mismatch_rank, mismatch_step;
	const char *collectives, *init, *id_file, *wait_start, *delay_file;
	bool split, threads, nonblocking, group, delay_rotate, config;
	struct rank_grown *grown; /* --init grow */
	int ops[RANKS_MAX_OPS];
	int op_count;
};

struct rank {
	const struct rank_settings *settings;
	const ncclUniqueId *id;
	int number, nranks;
	ncclComm_t comm, part; /* part: of --split; NULL: none */
	cudaStream_t stream;
	struct sim_kernel kernel;
	void *send, *receive;
	uint64_t steps, *sync_ns;
	ncclResult_t failed; /* the first error; CUDA errors are 100 more */
};

/* rank_op_of - the number of a collective's name; -1 if there is none. rank_ops_print lists them.
 */
int rank_op_of(const char *name, size_t length);
void rank_ops_print(void);

/* rank_run - make the communicator and take all steps. With --init all @r is the first of nranks
 * ranks that one thread drives. */
void rank_run(struct rank *r);
