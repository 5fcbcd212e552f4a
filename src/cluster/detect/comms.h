/* SPDX-License-Identifier: Apache-2.0 */
/* comms.h - communicators, their members, and the collectives of each that are in the window, found by
 * sequence number. Pure.
 *
 * Send and Recv between two ranks are the collectives of a pair: a communicator of its own with two
 * places, the sender's and the receiver's, so that matching, ceilings and hangs are the same.
 *
 * A collective has one entry for each member that has been seen, not for each rank that a call claims
 * there is: memory follows what was sent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/idmap.h"
#include "cluster/detect/workers.h"
#include "push/push.h"

struct member {
	int32_t place; /* its rank; in a pair 0 sends, 1 receives */
	int32_t rank;
	uint32_t worker, node;
	uint64_t next_seq; /* behind the highest that it has been seen in */
};

struct comm {
	uint64_t comm;
	int32_t src, dst; /* of a pair; else -1 */
	int32_t nranks;   /* as most calls say */
	int32_t places;   /* ranks that a collective has: nranks, or 2 */
	uint32_t votes;   /* for nranks */
	uint64_t salt;    /* makes ids of its collectives */
	struct member *members;
	size_t member_count, member_room;
	uint32_t *slots; /* by place: index of the member plus 1 */
	size_t slot_room;
	uint64_t matched, first_seq, last_seq; /* complete ones */
	uint64_t floor_seq;                    /* complete ones below have left the window */
	size_t live, complete;                 /* in the window; of these complete */
	int64_t last_ns;                       /* a call came */
	uint64_t took_ns[2], took_epoch;       /* by its collectives lately, when all had come */
	/* slower.c */
	uint32_t paced; /* collectives since paced_ns */
	int64_t paced_ns;
	double usual_each, slower; /* how long each takes, and how many times that now */
	int64_t slower_since_ns;   /* 0: it is not */
};

struct arrival {
	int64_t enter_ns, leave_ns; /* INT64_MIN: not there; leave_ns 0: still inside */
	uint64_t wait_ns;
};

enum collective_state {
	COLLECTIVE_OPEN,  /* ranks are missing, or have not left */
	COLLECTIVE_READY, /* all have left, its lags are not counted yet */
	COLLECTIVE_DONE,  /* counted */
};

struct collective {
	TAILQ_ENTRY(collective) age; /* by received_ns */
	TAILQ_ENTRY(collective) open;
	struct comm *comm;
	uint64_t seq, bytes;
	int64_t received_ns;   /* its first call came, or it was kept for another window */
	int64_t first_ns;      /* its first call came */
	uint32_t first_worker; /* who said what follows */
	int32_t nranks;
	uint16_t op, datatype;
	uint8_t state; /* enum collective_state */
	bool is_in_open, is_mismatched;
	bool is_counted; /* without ranks that nobody has ever told of: comms_next_partial() */
	uint32_t have, inside, room; /* ranks seen; of these still inside; room for */
	/* when DONE or is_counted */
	uint32_t last_slot;
	uint64_t lag_ns, waited_ns;
	int64_t last_ns;
	struct arrival arrivals[]; /* by slot */
};
TAILQ_HEAD(collective_list, collective);

struct comms {
	struct idmap comms, pairs, items;
	struct collective_list by_age, open; /* open: some have come and may wait, not all */
	struct collective *unaged;           /* the oldest that comms_next_partial() has not seen */
	struct collective **ready;
	size_t ready_count, ready_room, ready_calls;
	size_t units,
		units_max; /* room of arrivals, those that a collective's head takes included */
	uint64_t evicted, unmatched; /* calls */
	size_t member_room;
};

/* What a collective's head costs, in arrivals. */
#define COLLECTIVE_UNITS ((sizeof(struct collective) - 1) / sizeof(struct arrival) + 1)

void comms_init(struct comms *m, uint32_t comms_max, size_t calls_max);
void comms_done(struct comms *m, struct workers *w);

/* comms_get - the communicator, or pair, of @c; made if there is none. -ENOBUFS, -ENOMEM. */
int comms_get(struct comms *m, const struct push_call *c, struct comm **ret);
struct comm *comms_find(const struct comms *m, uint64_t comm);
void comms_remove(struct comms *m, struct comm *x, struct workers *w);

/* comm_member - slot of the member that @c is from, made if there is none. -EBUSY: another worker has
 * that rank; -ENOMEM. */
int comm_member(struct comms *m, struct comm *x, const struct push_call *c, struct workers *w,
	struct worker *from, uint32_t *ret);
/* comm_vote - a call says that it has @nranks ranks. */
void comm_vote(struct comm *x, int32_t nranks);
/* comm_slot - of @place; UINT32_MAX: never seen. */
uint32_t comm_slot(const struct comm *x, int32_t place);

/* comms_collective - (x, seq), made if there is none: *ret_new. -EEXIST: it was complete and has left the
 * window; -ENOMEM. Room for slot @slot is made. */
int comms_collective(struct comms *m, struct comm *x, uint64_t seq, uint32_t slot, int64_t now_ns,
	struct collective **ret, bool *ret_new);
struct collective *comms_lookup(const struct comms *m, const struct comm *x, uint64_t seq);

/* comms_settle - after an arrival, for which comms_collective() gave the place: it may have become
 * complete. */
void comms_settle(struct comms *m, struct collective *x);
void comms_drop(struct comms *m, struct collective *x);
/* comms_unwait - nobody waits in it, though ranks are missing: it leaves open until the next one comes. */
void comms_unwait(struct comms *m, struct collective *x);
/* comms_keep - it stays for another window. */
void comms_keep(struct comms *m, struct collective *x, int64_t now_ns);
/* comms_next_partial - the next one that came before @before_ns and has all ranks of which anybody has
 * ever told, though there are more: those have no agent. Each is told once; NULL: no more. */
struct collective *comms_next_partial(struct comms *m, int64_t before_ns);
bool comms_is_pair(const struct comm *x);
