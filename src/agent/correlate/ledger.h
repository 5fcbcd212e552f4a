/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - every allocation and free of device memory in a recording, matched by address. */
#pragma once

#include "agent/correlate/correlate.h"
#include "base/buf.h"
#include "base/macros.h"

enum ledger_kind {
	LEDGER_ALLOC,
	LEDGER_FREE,
	LEDGER_FAIL, /* an allocation that ended with "out of memory" */
};

struct ledger_entry {
	int64_t ns;       /* when it took effect: end of an allocation, start of a free */
	size_t event;     /* its row */
	uint64_t pointer; /* 0: not known */
	uint64_t bytes;   /* allocated, freed or asked for */
	uint64_t balance; /* of the process, after it */
	uint32_t pid;
	enum ledger_kind kind;
	bool freed;   /* allocation: it was freed later */
	bool unknown; /* free: of something whose allocation is not in the recording */
};

struct ledger {
	struct ledger_entry *entries; /* by process, then by time */
	size_t count;
};

/* ledger_run - fills @ret (released with ledger_done(), also after a failure). 0 or -ENOMEM. */
int ledger_run(const struct recording *rec, struct ledger *ret);
void ledger_done(struct ledger *l);

/* ledger_end - one past the last entry of the process whose first entry is @from. */
size_t ledger_end(const struct ledger *l, size_t from);

/* ledger_balance - what @pid had at @ns, as far as the recording knows. */
uint64_t ledger_balance(const struct ledger *l, uint32_t pid, int64_t ns);

/* ledger_freed_sql - appends the condition that row f of `events` frees what row a of it, a call of
 * @source, allocated. */
void ledger_freed_sql(unsigned source, struct buf *b);

/* ledger_is_usable - whether the addresses of [from, end) can be trusted: published files may hold
 * other things there, and then frees match nothing. */
bool ledger_is_usable(const struct ledger *l, size_t from, size_t end);
