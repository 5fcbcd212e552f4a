/* SPDX-License-Identifier: Apache-2.0 */
/* calls_core.h - what the files behind calls.h share. */
#pragma once

#include "cluster/detect/calls.h"
#include "blame/clocks.h"
#include "cluster/detect/comms.h"
#include "cluster/detect/hangs.h"
#include "cluster/detect/joins.h"
#include "cluster/detect/lags.h"
#include "cluster/detect/mismatches.h"
#include "cluster/detect/senders.h"
#include "cluster/detect/workers.h"

struct calls {
	struct calls_settings s;
	struct senders senders;
	struct clocks *clocks;
	struct workers workers;
	struct comms comms;
	struct lags *lags; /* room for what is in hand changes while all else is only looked at */
	struct joins joins;
	struct hangs hangs;
	struct mismatches mismatches;
	int64_t now_ns, swept_ns;
	int64_t worked_ns; /* calls_work() was reckoned */
	int64_t hang_over_ns; /* collectives that ranks wait in since before are not looked at any more */
	int64_t slower_until_ns; /* some job is */
	uint64_t step_ns;        /* calls_set_step() */
	uint64_t patience_ns;    /* calls_set_patience() */
	uint64_t taken, duplicate, refused;
};

/* calls_late - the held calls with the numbered ones beside them, tried: those that are named now go to *ret, which the
 * caller frees. 0 or -ENOMEM. */
int calls_late(struct calls *c, struct held_call **ret, size_t *ret_count);

/* calls_note_pace - a collective of @m was settled that all had come to at @at_ns. */
void calls_note_pace(struct calls *c, struct comm *m, int64_t at_ns);

/* calls_window - how far back blame looks. */
int64_t calls_window(const struct calls *c);
