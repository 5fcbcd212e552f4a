/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names.c - see kernel_names.h. */
#include "answer/kernel_names.h"

#include "diagnose/chains/kernel_sentence.h"

static const char *find_name(void *arg, uint32_t pid, uint64_t function)
{
	const struct nodedb_content *c = arg;
	const struct kernel_use *k =
		kernel_use_find(c->kernels, c->kernel_count, pid, function, INT64_MAX);

	return k ? k->name : NULL;
}

void kernel_names_put(struct nodedb_content *c, struct explanation *e)
{
	for (size_t i = 0; i < e->count; i++)
		kernel_sentence_put(&e->incidents[i], find_name, c);
}
