/* SPDX-License-Identifier: Apache-2.0 */
/* meet.h - where the ranks of a communicator meet: a file in shared memory that each maps. Ranks
 * may be threads, processes, or processes in different network and time namespaces of one machine.
 *
 * The file is named after the communicator in SIM_NCCL_DIR, made by whoever comes first and removed
 * when all have come; it stays behind only if some rank never comes. Times in it are those of the
 * machine's monotonic clock, without the offset of a time namespace. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MEET_MAX_RANKS 512
#define MEET_RING      4  /* of a rank's last collectives; it is never more than one ahead */
#define MEET_PAIR_RING 32 /* sends under way from one rank to another */

/* What a rank called: ranks that differ at the same place are a mistake of the program. */
struct meet_call {
	int op, datatype, redop, root;
	uint64_t count;
};

struct meet_arrival {
	uint64_t at_ns;
	struct meet_call call;
};

struct meet_choice {
	int color, key;
};

struct meet_rank {
	_Atomic uint64_t joined;  /* 1 when it has come */
	_Atomic uint64_t arrived; /* number of its latest collective, from 1 */
	_Atomic uint64_t chosen;  /* likewise of its latest split */
	struct meet_arrival ring[MEET_RING];
	struct meet_choice choices[MEET_RING];
};

/* From one rank to another. */
struct meet_pair {
	_Atomic uint64_t sent, received;
	uint64_t sent_ns[MEET_PAIR_RING], received_ns[MEET_PAIR_RING];
};

struct meet_place;

struct meet {
	struct meet_place *place;
	struct meet_rank *ranks;
	struct meet_pair *pairs; /* [from * nranks + to] */
	int rank, nranks;
	char path[256];
	atomic_bool given_up;
};

/* meet_open - map the place called @name; does not wait. -errno. */
int meet_open(struct meet *m, uint64_t name, int rank, int nranks);
void meet_close(struct meet *m);

/* meet_give_up - waits under way and later ones return false. */
void meet_give_up(struct meet *m);

/* The waits return false if given up. meet_join waits for all ranks to come. */
bool meet_join(struct meet *m);

/* meet_arrive - this rank's collective @number (1, 2, …) starts; then meet_all_arrived() waits for
 * the others and tells when the last came. Their calls are in meet_arrival_of(). */
void meet_arrive(struct meet *m, uint64_t number, uint64_t at_ns, const struct meet_call *call);
bool meet_all_arrived(struct meet *m, uint64_t number, uint64_t *ret_last_ns);
const struct meet_arrival *meet_arrival_of(const struct meet *m, int rank, uint64_t number);

/* meet_choose - this rank's choice at split @number; then meet_all_chose() waits for the others. */
void meet_choose(struct meet *m, uint64_t number, struct meet_choice choice);
bool meet_all_chose(struct meet *m, uint64_t number);
struct meet_choice meet_choice_of(const struct meet *m, int rank, uint64_t number);

/* meet_send - this rank's @number-th (1, 2, …) send to @peer starts; meet_sent waits until the
 * peer's receive has too, and tells when the later of both was. meet_receive likewise. */
void meet_send(struct meet *m, int peer, uint64_t number, uint64_t at_ns);
bool meet_sent(struct meet *m, int peer, uint64_t number, uint64_t *ret_later_ns);
void meet_receive(struct meet *m, int peer, uint64_t number, uint64_t at_ns);
bool meet_received(struct meet *m, int peer, uint64_t number, uint64_t *ret_later_ns);

/* meet_clock_offset_ns - what this process's time namespace adds to the monotonic clock. */
int64_t meet_clock_offset_ns(void);
