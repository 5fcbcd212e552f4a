/* SPDX-License-Identifier: Apache-2.0 */
/* detector.h - what finds a state that is no matter of lost time alone (a leak, an error, a hang): one function, one row
 * in DETECTORS. Where time was lost to is told by accounts: findings/time_finding.h.
 *
 * To add one: its file in findings/ with a function of type detector, a line in DETECTORS, its row in the
 * catalogue (model/problem.h), a scenario that provokes it and one that only looks like it
 * (sim/scenarios). A detector is pure, says nothing without evidence: an
 * incident has at least one evidence row or a timeline step with real times, and its confidence
 * states how much of what it claims was seen. */
#pragma once

#include <stddef.h>

#include "diagnose/findings/device_allocs.h"
#include "diagnose/rows/baseline.h"
#include "base/macros.h"
#include "model/problem.h"
#include "model/incident.h"

struct detector_input { /* what detectors look at */
	const struct recording *rec;
	const struct op_table *ops; /* all calls, and what is ordinary of each */
	const struct device_allocs *allocs;
	double completeness;                /* share of hits that are in the data; -1: not known */
	const struct step_report *accounts; /* of the processes' steps; NULL: none */
};

/* completeness_weight - what the completeness counts in a confidence. A recording that does not say
 * what it lost is believed a little less than one that says that it lost nothing. */
static inline double completeness_weight(double completeness)
{
	return completeness < 0 ? 0.9 : completeness;
}

#define OF_SOURCE(s) (1U << (s))
#define OF_CALLS     (OF_SOURCE(SOURCE_CUDA) | OF_SOURCE(SOURCE_DRIVER))

/* completeness_of_sources - the share of the hits of @sources that is in the data, of the one that lost most:
 * what is plentiful does not make up for what is not. -1: not known. */
double completeness_of_sources(const struct accounting *books, unsigned sources);

struct incident_list {
	struct incident *items;
	size_t count, max;
	uint64_t left_out;     /* beyond the ceiling */
	struct incident spare; /* what is begun there */
};

/* incident_begin - a new incident of @problem, its fixes from the catalogue. It is in the list only after incident_keep(),
 * beyond the ceiling not even then (counted). */
struct incident *incident_begin(struct incident_list *l, enum problem problem);

/* incident_id - "starvation-4821-1700000000000000000": stable for the same data. */
void incident_id(struct incident *i, uint32_t pid, int64_t first_ns);

/* incident_step - append a line to the timeline; false if it is full. */
bool incident_step(struct incident *i, int64_t start_ns, uint64_t dur_ns, const char *layer,
	const char *op, const char *fmt, ...) _printf_(6, 7);

/* incident_evidence - a row that proves it. */
void incident_evidence(struct incident *i, const struct event *e);

/* incident_fix - say this before the catalogue's fixes. */
void incident_fix(struct incident *i, const char *fmt, ...) _printf_(2, 3);

/* incident_process - whose it is, by a row of that process: pid, name and id. */
void incident_process(struct incident *i, const struct event *e, int64_t first_ns, int64_t last_ns);

/* incident_weigh - how bad it is, how sure what is seen makes it, and how much of it there is. */
void incident_weigh(struct incident *i, enum severity severity, double confidence, uint64_t count,
	const char *unit);

/* incident_complete - the recording has @completeness of what there was, -1: not known. That counts in the confidence. */
void incident_complete(struct incident *i, double completeness);

/* incident_sql - the query that shows it, cut to nothing if it does not fit. */
void incident_sql(struct incident *i, const char *fmt, ...) _printf_(2, 3);

/* incident_keep - it is complete: it stays in the list. */
void incident_keep(struct incident_list *l, struct incident *i);

typedef int detector(const struct detector_input *s, struct incident_list *out); /* 0 or -ENOMEM */

/* X(function): state findings. None looks at what another has found: their order does not matter. */
/* clang-format off: one a line */
#define DETECTORS(X)                                                                               \
	X(detect_hang)                                                                             \
	X(detect_straggler)                                                                        \
	X(detect_sharing)                                                                          \
	X(detect_memory)                                                                           \
	X(detect_leak)                                                                             \
	X(detect_growth)                                                                           \
	X(detect_errors)                                                                           \
	X(detect_throttle)                                                                         \
	X(detect_hardware)                                                                         \
	X(detect_graph)                                                                            \
	X(detect_start)                                                                            \
	X(detect_orchestration)                                                                    \
	X(detect_labels)
/* clang-format on */

#define X(function) detector function;
DETECTORS(X)
#undef X

/* detector_gpus - the numbers of the GPUs that @rec has readings of, each once; how many. */
#define DETECTOR_GPUS_MAX 64
size_t detector_gpus(const struct recording *rec, int64_t ret[DETECTOR_GPUS_MAX]);

/* From which call stacks the calls of an incident came. */

/* incident_stacks_merge - fills the stacks of @inc, most first, from @list (@n rows of one call each, in any order,
 * reordered here); a row weighs its ns, which may be bytes or a count where time is not the matter. */
void incident_stacks_merge(struct incident_stack *list, size_t n, struct incident *inc);
