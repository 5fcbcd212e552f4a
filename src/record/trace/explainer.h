/* SPDX-License-Identifier: Apache-2.0 */
/* explainer.h - explains while tracing: takes what the tracer sees and a clock, and yields incidents
 * that began, grew or were over in the last minutes.
 *
 * Two sides. The tracer's thread puts in what it sees, asks for a look whenever a 5 s bucket is
 * complete and fetches the findings; none of that waits for the other side. The explaining itself
 * is explainer_step(), called again and again by the thread that explainer_start() begins, or by
 * whoever wants to replay a stream: without that thread everything happens in the caller's. */
#pragma once

#include "diagnose/live/incident_tracker.h"
#include "diagnose/live/step_counter.h"
#include "base/clock.h"
#include "base/macros.h"
#include "model/accounting.h"
#include "model/event.h"
#include "model/collective.h"
#include "model/sample.h"
#include "model/step_account.h"
#include "model/stack.h"

#define EXPLAINER_EVENTS_MAX      8192u /* 1.3 MB, twice */
#define EXPLAINER_AGGREGATES_MAX  1024u /* 5 MB, twice, when so many ops are in use */
#define EXPLAINER_SAMPLES_MAX     64u
#define EXPLAINER_GPUS_MAX        512u
#define EXPLAINER_COLLECTIVES_MAX 2048u
#define EXPLAINER_LEDGER_MAX      4096u /* 1.4 MB, twice */
#define EXPLAINER_CONTAINERS_MAX  512u
#define EXPLAINER_STACKS_MAX      1024u /* 2 MB, twice */
#define EXPLAINER_FINDINGS_MAX    64u   /* waiting to be fetched; 0.5 MB */
#define EXPLAINER_BUCKETS_MIN     3     /* that there must be before anything is called unusual */

struct explainer_config {
	const char *node;         /* NULL: "" */
	bool wants_steps;         /* what steps took is counted */
	wall_time (*clock)(void); /* NULL: wall_now() */
	void (*begin)(void *arg); /* the first thing on the thread; may be NULL */
	void *begin_arg;
};

struct explainer_finding {
	struct incident incident;
	wall_time detected;
	enum incident_change change;
};
typedef void explainer_sink(void *arg, const struct explainer_finding *f);

struct explainer_dropped {
	uint64_t inputs;   /* the inbox was full, or the other side was just taking it away */
	uint64_t findings; /* nobody fetched them in time */
};

struct explainer;

/* explainer_new - @config is copied, with the node's name. */
int explainer_new(const struct explainer_config *config, struct explainer **ret);
DECLARE_FREE(struct explainer, explainer_free) /* after explainer_stop() if it was started */

/* explainer_start - explain on a thread of its own, with low priority. 0 or a negative errno. */
int explainer_start(struct explainer *x);

/* What the tracer sees. Whatever there is no room for is counted. */
void explainer_event(struct explainer *x, const struct event *e);
void explainer_aggregate(struct explainer *x, const struct aggregate *a);
void explainer_sample(struct explainer *x, const struct host_sample *s);
void explainer_gpu(struct explainer *x, const struct gpu_sample *s);
void explainer_collective(struct explainer *x, const struct event *e, const struct collective *c);
void explainer_ledger(struct explainer *x, const struct ledger_row *row);
void explainer_container(struct explainer *x, const struct container_sample *s);
void explainer_stack(struct explainer *x, const struct stack *s); /* copied, with its texts */

/* explainer_look - a bucket is complete: look for incidents, knowing that @books hold so far. One
 * that cannot be asked for now is made up for by the next. */
void explainer_look(struct explainer *x, const struct accounting *books);

/* explainer_step - take what was put in, and look if that was asked for. 0 or -ENOMEM. */
int explainer_step(struct explainer *x);

/* explainer_poll - hand to @sink what was found. */
void explainer_poll(struct explainer *x, explainer_sink *sink, void *arg);

/* explainer_steps - what steps took, by the last look. False: not to be had just now. */
bool explainer_steps(struct explainer *x, struct step_counter *ret);

/* explainer_stop - one last look, at @books (NULL: as they were); what is open then stays open. The
 * thread ends, and what was found can be fetched. */
void explainer_stop(struct explainer *x, const struct accounting *books);

/* explainer_dropped - so far; of findings, exactly only after explainer_stop(). */
struct explainer_dropped explainer_dropped(const struct explainer *x);
