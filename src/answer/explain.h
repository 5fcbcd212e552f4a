/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - from a loaded recording to its incidents, for whoever shows them. */
#pragma once

#include "answer/losses.h"
#include "answer/stacks.h"
#include "base/errinfo.h"
#include "diagnose/recording.h"
#include "model/event.h"
#include "model/incident.h"
#include "model/stack.h"
#include "model/step_account.h"
#include "store/nodedb.h"
#include "base/buf.h"

/* What an explanation looked at: how much, of what kinds, and what is missing. */

#define EXAMINED_BRIEF 4
#define PAST_SHOWN     8

struct examined { /* what was looked at for incidents, of each kind */
	uint64_t calls, stays, readings, collectives;
	uint64_t groups; /* readings of control groups: quotas, limits, pressure */
	struct {
		uint32_t pid;
		char comm[COMM_LEN];
	} brief[EXAMINED_BRIEF]; /* processes that used a GPU and have no units; the first ones */
	size_t brief_count;
};

struct incident_row;

struct report_scope {              /* what was looked at */
	const char *node;          /* NULL or "": not said */
	int64_t first_ns, last_ns; /* of the events; 0, 0: none */
	uint64_t events;           /* rows analysed */
	bool no_gpu_calls;         /* not one CUDA or NCCL call is in it */
	uint64_t calls;            /* behind them by the aggregates; 0: none known */
	uint64_t host_events;      /* likewise, what is no call of CUDA or NCCL */
	bool mixed;                /* calls holds both: they cannot be told apart */
	struct examined examined;
	uint64_t skipped_rows;            /* damaged rows left out */
	uint64_t older_events;            /* events too many to look at, the oldest */
	uint64_t older_ledger;            /* rows of the ledger, likewise */
	uint64_t overlapping;             /* likewise, that overlap others of their thread */
	uint64_t reused;                  /* processes whose PID a later one had */
	uint64_t nameless;                /* collectives that could not be matched between ranks */
	uint64_t thinned_rows;            /* rows of ordinary calls, known from aggregates alone */
	struct completeness completeness; /* of what was recorded */
	int columns;            /* of the terminal to print for; 0: none, long lines stay */
	const char *late_node;  /* of a rank elsewhere that this node waited for; NULL: none */
	int32_t late_rank;      /* which one */
	uint64_t late_ns;       /* that cost the job so much; 0: not known */
	size_t stored_verdicts; /* reported where no incident is found */
	const struct incident_row *past[PAST_SHOWN]; /* said while recording, and not now */
	size_t past_count;
	uint64_t pruned_rows;  /* events deleted to keep the file small */
	int64_t pruned_before; /* that started before this; 0: none */
	bool verbose;          /* timeline, figures and evidence of each incident, too */
	const char *
		again; /* a command has just been traced: what `ingero explain` wants to show it again; NULL: no */
	bool with_labels;                      /* say which held during each incident */
	const struct annotation_label *labels; /* by time */
	size_t label_count;
	uint64_t older_labels;            /* left out */
	struct stack_list stacks;         /* of the events; may be none */
	uint64_t skipped_stacks;          /* damaged or too long */
	uint64_t other_stacks;            /* too many to look at */
	bool with_stacks;                 /* print the stacks that matter */
	const struct stack_total *totals; /* with_stacks: time by stack, most first */
	size_t total_count;
	struct step_report accounts; /* of the processes' steps */
};

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

/* explanation_keep - only what is about the processes of @s: their incidents, those of no process in particular, and
 * their accounts. Delays of others are loaded too, so that accounts of processes that were not asked for may be there. */
void explanation_keep(struct explanation *e, const struct scope *s);

/* explain_severity - of a stored verdict, by its name; -1: not known. */
int explain_severity(const char *name);

/* explain_past - those stored with MEDIUM or above that @e does not say of the whole recording: they are over, or were not
 * borne out. The first ones go into e->scope; valid as long as @c. */
void explain_past(const struct nodedb_content *c, struct explanation *e);

/* explain_sort_chains - the worst first, then by time. */
void explain_sort_chains(struct nodedb_content *c);

/* Who used the GPU how much: `explain --per-process`. */

/* usage_text - processes that used CUDA and the first ones of the others, by calls, each with its operations, and a note if
 * several used CUDA. */
void usage_text(struct buf *b, const struct nodedb_usage *rows, size_t count);

/* usage_json - an array of {pid, op, count, avg_ns, max_ns} as published, and comm, source and
 * nested. */
void usage_json(struct buf *b, const struct nodedb_usage *rows, size_t count);
