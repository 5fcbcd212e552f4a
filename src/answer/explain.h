/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - from a loaded recording to its incidents, for whoever shows them. */
#pragma once

#include <stdbool.h>

#include "answer/report_scope.h"
#include "model/incident.h"
#include "diagnose/recording.h"
#include "store/nodedb.h"
#include "base/errinfo.h"

struct explanation {
	struct incident *incidents; /* worst first */
	size_t count;
	struct stack_total *totals; /* time by stack, if asked for */
	struct step_report accounts;
	struct report_scope scope; /* points into the content, totals and accounts */
};

/* explain_recording - what the engine looks at; valid as long as @c. */
struct recording explain_recording(const struct nodedb_content *c);

/* explain_find - the incidents of @c, and with @stacks the time by stack. Valid as long as @c; done
 * with explanation_done(). */
int explain_find(const struct nodedb_content *c, bool stacks, struct explanation *ret,
	struct errinfo *reterr);
void explanation_done(struct explanation *e);

/* explain_severity - of a stored verdict, by its name; -1: not known. */
int explain_severity(const char *name);

/* explain_past - those stored with MEDIUM or above that @e does not say of the whole recording: they are over, or were not
 * borne out. The first ones go into e->scope; valid as long as @c. */
void explain_past(const struct nodedb_content *c, struct explanation *e);

/* explain_sort_chains - the worst first, then by time. */
void explain_sort_chains(struct nodedb_content *c);
