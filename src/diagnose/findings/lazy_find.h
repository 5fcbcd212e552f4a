/* SPDX-License-Identifier: Apache-2.0 */
/* lazy_find.h - launches that load the code of their function: slow once for each function. */
#pragma once

#include "diagnose/findings/detector.h"

#define LAZY_SHOWN 4

struct lazy_loads { /* of one process */
	uint32_t pid;
	const struct op_group *op; /* of the slowest */
	size_t functions;          /* whose first launch is slow */
	size_t known;              /* functions that are launched in the recording */
	size_t repeats;            /* launches that are not the first of their function */
	size_t slow_repeats;
	uint64_t ns;                             /* of the slow first launches, beyond the usual */
	uint64_t repeats_ns;                     /* likewise of the slow repeats */
	const struct event *longest[LAZY_SHOWN]; /* of the first launches, longest first */
	int64_t first_ns, last_ns;               /* starts of slow first launches */
};

struct lazy_list {
	struct lazy_loads *items; /* by pid, only processes that load lazily */
	size_t count;
};

/* lazy_find - fills @ret (released with lazy_done(), also after a failure). 0 or -ENOMEM. */
int lazy_find(const struct detector_input *s, struct lazy_list *ret);
void lazy_done(struct lazy_list *l);

/* lazy_tells - whether lazy_report() tells of slow first calls of @g. */
bool lazy_tells(const struct lazy_list *l, const struct op_group *g);

/* lazy_severity - of starting that cost @ns of the @span_ns that the process was observed. */
enum severity lazy_severity(uint64_t ns, double span_ns);

/* lazy_report - an incident for @z; unexplained slow launches of the process are dropped for it. */
void lazy_report(
	const struct detector_input *s, const struct lazy_loads *z, struct incident_list *out);
