/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h - samples of the GPUs in a time. */
#pragma once

#include "answer/answer.h"

#define GPUS_MAX 256

/* Columns of the table gpu_samples, in its order; then GPU_FIELDS. */
enum { GPUS_NODE, GPUS_TIME, GPUS_GPU, GPUS_UUID, GPUS_NAME, GPUS_PCI };

struct gpus_answer {
	struct sql_table samples; /* newest first */
	size_t newest[GPUS_MAX];  /* of each GPU: its first row */
	size_t count;
	bool truncated;
};

int answer_gpus(const struct question *q, struct gpus_answer *ret, struct errinfo *reterr);
void gpus_answer_done(struct gpus_answer *a);

/* gpus_same - whether two rows are of one GPU. */
bool gpus_same(const struct gpus_answer *a, size_t x, size_t y);

/* gpus_slowing - the reasons in @bits for which a GPU runs slower than it could. */
uint64_t gpus_slowing(int64_t bits);

struct gpu_gauge {        /* one column over the samples of a GPU */
	uint64_t samples; /* 0: it never said */
	int64_t min, max;
	double mean;
};
struct gpu_gauge gpus_gauge(const struct gpus_answer *a, size_t gpu, const char *column);
