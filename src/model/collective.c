/* SPDX-License-Identifier: Apache-2.0 */
#include "model/collective.h"

double bandwidth_size(unsigned op, uint64_t bytes, int32_t nranks)
{
	switch (op) {
	case NCCL_ALL_GATHER:
	case NCCL_REDUCE_SCATTER:
	case NCCL_ALL_TO_ALL:
	case NCCL_GATHER:
	case NCCL_SCATTER: return (double)bytes * (nranks > 0 ? nranks : 1);
	default: return (double)bytes;
	}
}

double bandwidth_factor(unsigned op, int32_t nranks)
{
	double n = nranks;

	switch (op) {
	case NCCL_BCAST:
	case NCCL_BROADCAST:
	case NCCL_REDUCE:
	case NCCL_SEND:
	case NCCL_RECV: return 1;
	}
	if (nranks < 2)
		return 0;
	switch (op) {
	case NCCL_ALL_REDUCE: return 2 * (n - 1) / n;
	case NCCL_ALL_GATHER:
	case NCCL_REDUCE_SCATTER:
	case NCCL_ALL_TO_ALL:
	case NCCL_GATHER:
	case NCCL_SCATTER: return (n - 1) / n;
	default: return 0;
	}
}

static const struct {
	double below;
	const char *name;
} classes[BANDWIDTH_CLASSES] = {
	{64 << 10, "under 64 KiB"},
	{1 << 20, "64 KiB - 1 MiB"},
	{16 << 20, "1 - 16 MiB"},
	{256 << 20, "16 - 256 MiB"},
	{1e300, "256 MiB and more"},
};

unsigned bandwidth_class(double size)
{
	unsigned c = 0;

	while (c + 1 < BANDWIDTH_CLASSES && size >= classes[c].below)
		c++;
	return c;
}

const char *bandwidth_class_name(unsigned c)
{
	return classes[c < BANDWIDTH_CLASSES ? c : BANDWIDTH_CLASSES - 1].name;
}
