/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - the lists of ids.h as tables. */
#include "wire/names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct wire_source_row wire_sources[] = {
#define X(id, NAME, json, sql, description) {id, json, sql, description},
	WIRE_SOURCES(X)
#undef X
		{0, NULL, NULL, NULL},
};

const struct wire_op_row wire_ops[] = {
#define X(id, NAME, name, description) {SOURCE_CUDA, id, name, description},
	WIRE_OPS_CUDA(X)
#undef X
#define X(id, NAME, name, description) {SOURCE_HOST, id, name, description},
		WIRE_OPS_HOST(X)
#undef X
#define X(id, NAME, name, description) {SOURCE_DRIVER, id, name, description},
			WIRE_OPS_DRIVER(X)
#undef X
#define X(id, NAME, name, description) {SOURCE_IO, id, name, description},
				WIRE_OPS_IO(X)
#undef X
#define X(id, NAME, name, description) {SOURCE_TCP, id, name, description},
					WIRE_OPS_TCP(X)
#undef X
#define X(id, NAME, name, description) {SOURCE_NET, id, name, description},
						WIRE_OPS_NET(X)
#undef X
#define X(id, NAME, name, description) {SOURCE_GRAPH, id, name, description},
							WIRE_OPS_GRAPH(X)
#undef X
#define X(id, NAME, name, description) {SOURCE_NCCL, id, name, description},
								WIRE_OPS_NCCL(X)
#undef X
#define X(id, NAME, name, description) {SOURCE_NVTX, id, name, description},
									WIRE_OPS_NVTX(X)
#undef X
										{0, 0, NULL, NULL},
};

const struct wire_loss_row wire_losses[LOSS_COUNT + 1] = {
#define X(NAME, name, description) {name, description},
	WIRE_LOSSES(X)
#undef X
		{NULL, NULL},
};

const struct wire_op_row *wire_op_find(unsigned source, unsigned op)
{
	for (const struct wire_op_row *r = wire_ops; r->name; r++)
		if (r->source == source && r->op == op)
			return r;
	return NULL;
}

const char *wire_op_name(unsigned source, unsigned op, char scratch[32])
{
	const struct wire_op_row *r = wire_op_find(source, op);

	if (r)
		return r->name;
	snprintf(scratch, 32, "unknown(%u)", op);
	return scratch;
}

const char *wire_nccl_name(unsigned op, char scratch[32])
{
	const char *name = wire_op_name(SOURCE_NCCL, op, scratch);

	return strncmp(name, "nccl", 4) ? name : name + 4;
}

const char *wire_source_name(unsigned source)
{
	for (const struct wire_source_row *r = wire_sources; r->json; r++)
		if (r->id == source)
			return r->json;
	return "unknown";
}

const struct wire_op_row *wire_op_by_name(const char *name)
{
	static const struct {
		const char *alias, *name;
	} aliases[] = {
		{"cuMemAllocV2", "cuMemAlloc"},
		{"cuMemAllocManagedV2", "cuMemAllocManaged"},
		{"cudaStreamSynchronize", "cudaStreamSync"},
		{"cudaDeviceSynchronize", "cudaDeviceSync"},
		{"cudaEventSynchronize", "cudaEventSync"},
		{NULL, NULL},
	};

	for (int i = 0; aliases[i].alias; i++)
		if (!strcasecmp(aliases[i].alias, name))
			name = aliases[i].name;
	for (const struct wire_op_row *r = wire_ops; r->name; r++)
		if (!strcasecmp(r->name, name))
			return r;
	return NULL;
}
