/* SPDX-License-Identifier: Apache-2.0 */
/* op_option.c - see op_option.h. */
#include "cli/op_option.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static int source_of(const char *text, size_t len)
{
	for (const struct wire_source_row *s = wire_sources; s->json; s++)
		if ((strlen(s->json) == len && !strncasecmp(s->json, text, len)) ||
			(strlen(s->sql) == len && !strncasecmp(s->sql, text, len)))
			return s->id;
	return -1;
}

int op_option_find(const char *text, const struct wire_op_row **ret_op, struct errinfo *reterr)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	const struct wire_op_row *op = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(1024);

	if (!text) {
		*ret_op = NULL;
		return 0;
	}
	op = wire_op_by_name(colon ? colon + 1 : text);
	if (op && (!colon || source_of(text, (size_t)(colon - text)) == op->source)) {
		*ret_op = op;
		return 0;
	}
	text_escape_terminal(&b, text);
	return errinfo_set(reterr, -EINVAL,
		"--op %.100s: unknown operation: use for example cudaLaunchKernel, cudaMemcpyAsync, driver:cuMemAlloc, host:sched_switch or ncclAllReduce",
		buf_str(&b));
}
