/* SPDX-License-Identifier: Apache-2.0 */
/* time_request.h - which time of a recording is asked about, however it is asked: flags, parameters
 * of a request, arguments of a tool. */
#pragma once

#include "store/nodedb.h"

#define TIME_REQUEST_LIVE_NS (300 * NS_PER_S) /* of a recording that is being written */

struct time_request {          /* as asked */
	const char *from, *to; /* base/when.h reads them; NULL or "": not asked for */
	uint64_t since_ns;     /* only so long before the end; 0: not asked for */
	bool all;
};

struct time_end {                  /* what times are relative to */
	struct nodedb_range range; /* of everything that has a time */
	bool live; /* somebody is writing it: without a request the last five minutes */
	/* Where these end: now, for a page on which a standstill is to be seen; or with the last
	 * event, for a verdict, because a workload that hangs makes none. 0: with the range. */
	int64_t live_ns;
	const char *flag; /* how parameters are called in errors: "" or "--" */
};

static inline bool time_request_is_empty(const struct time_request *t)
{
	return !(t->from && t->from[0]) && !(t->to && t->to[0]) && !t->since_ns && !t->all;
}

/* time_request_resolve - sets both times of @ret. Without a request @default_ns is meant, and 0 is
 * all of a saved file, the last five minutes of a live one. -EINVAL with a sentence. */
int time_request_resolve(const struct time_request *t, const struct time_end *end,
	uint64_t default_ns, struct scope *ret, struct errinfo *reterr);
