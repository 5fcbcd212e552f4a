/* SPDX-License-Identifier: Apache-2.0 */
/* device_allocs.h - every allocation and free of device memory in a recording, matched by address. */
#pragma once

#include "diagnose/recording.h"
#include "base/buf.h"
#include "base/macros.h"

enum device_allocs_kind {
	DEVICE_ALLOCS_ALLOC,
	DEVICE_ALLOCS_FREE,
	DEVICE_ALLOCS_FAIL, /* an allocation that ended with "out of memory" */
};

struct device_allocs_entry {
	int64_t ns;       /* when it took effect: end of an allocation, start of a free */
	size_t event;     /* its row */
	uint64_t pointer; /* 0: not known */
	uint64_t bytes;   /* allocated, freed or asked for */
	uint64_t balance; /* of the process, after it */
	uint32_t pid;
	enum device_allocs_kind kind;
	bool freed;   /* allocation: it was freed later */
	bool unknown; /* free: of something whose allocation is not in the recording */
};

struct device_allocs {
	struct device_allocs_entry *entries; /* by process, then by time */
	size_t count;
};

/* device_allocs_run - fills @ret (released with device_allocs_done(), also after a failure). 0 or -ENOMEM. */
int device_allocs_run(const struct recording *rec, struct device_allocs *ret);
void device_allocs_done(struct device_allocs *l);

/* device_allocs_end - one past the last entry of the process whose first entry is @from. */
size_t device_allocs_end(const struct device_allocs *l, size_t from);

/* device_allocs_balance - what @pid had at @ns, as far as the recording knows. */
uint64_t device_allocs_balance(const struct device_allocs *l, uint32_t pid, int64_t ns);

/* device_allocs_freed_sql - appends the condition that row f of `events` frees what row a of it, a call of
 * @source, allocated. */
void device_allocs_freed_sql(unsigned source, struct buf *b);

/* device_allocs_is_usable - whether the addresses of [from, end) can be trusted: published files may hold
 * other things there, and then frees match nothing. */
bool device_allocs_is_usable(const struct device_allocs *l, size_t from, size_t end);
