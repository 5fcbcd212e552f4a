/* SPDX-License-Identifier: Apache-2.0 */
/* chain_private.h - shared by the files that follow one kind of chain each. */
#pragma once

#include "diagnose/chains/chain.h"

struct chain {
	const struct recording *rec;
	const struct step_account *a;
	const struct delay *d;
	const struct gpu_change *gpu; /* NULL: no unit is slow */
	enum account_line line;       /* that the delay is on: of its lead, where it is several */
	int64_t from_ns, to_ns;       /* of the first slow step to that of the last */
	bool has_slow;
};

/* chain_event - the row of @source after @last (NULL: the first) that lies in a step that counts; NULL: there is none. */
const struct event *chain_event(
	const struct chain *c, enum wire_source source, const struct event *last);

/* chain_time - whether @ns lies in a step that counts: a slow one or, where none is slow, any. */
bool chain_time(const struct chain *c, int64_t ns);

/* chain_around - likewise of what is read once a second: in the time of these steps or just before or after. */
bool chain_around(const struct chain *c, int64_t ns);

/* own_pids - process_is_own() of many rows, found out once for a process. Begun with lineage_build(), released with
 * lineage_done(). */
struct own_pids {
	struct lineage lines;
	struct {
		uint32_t pid;
		bool is_own;
	} known[PROGRAM_PIDS_MAX];
	int count;
};
bool own_pids_has(struct own_pids *o, const struct chain *c, uint32_t pid);

/* chain_lost_ns - what all steps that count lost to the delay. */
uint64_t chain_lost_ns(const struct chain *c);

/* chain_elapsed_ns - how long they took together. */
uint64_t chain_elapsed_ns(const struct chain *c);

/* Each fills *ret and returns true if its evidence leads there. *ret is zeroed before. */
bool chain_cpu(const struct chain *c, struct resource_use *ret);
bool chain_disk(const struct chain *c, struct resource_use *ret);
bool chain_disk_of_copy(const struct chain *c, struct resource_use *ret);
bool chain_memory(const struct chain *c, struct resource_use *ret);
bool chain_memory_limit(
	const struct chain *c, struct resource_use *ret); /* on whatever line it shows */
bool chain_peer(const struct chain *c, struct resource_use *ret);
/* chain_delayed_ack - @use names the process that is waited for: whether both ends wait for an acknowledgement, which it becomes. */
void chain_delayed_ack(const struct chain *c, struct resource_use *use);
bool chain_stop(const struct chain *c, struct resource_use *ret);
bool chain_crowd(const struct chain *c,
	struct resource_use *ret); /* too many threads, whatever they wait for */
bool chain_pickle(const struct chain *c, struct resource_use *ret);
bool chain_work(const struct chain *c, struct resource_use *ret);
/* chain_fresh_memory - whether pages that units touch for the first time can be why @share of the delay is spent in code that
 * touches memory. */
bool chain_fresh_memory(const struct chain *c, double share, struct resource_use *ret);

/* chain_pages_again - whether most of the pages that the job gets had been taken from its control group at the limit. */
bool chain_pages_again(const struct chain *c, struct resource_use *ret);
/* chain_copied_memory - likewise pages that it shares with processes that it forks, again and again. */
bool chain_copied_memory(const struct chain *c, double share, struct resource_use *ret);
/* chain_turns - whether the processes that are waited for, or loader workers, hold each other up by a lock most of the time. */
bool chain_turns(const struct chain *c, struct resource_use *ret);
bool chain_lock(const struct chain *c, struct resource_use *ret);
bool chain_compile(const struct chain *c, struct resource_use *ret);
bool chain_gpu(const struct chain *c, struct resource_use *ret);
/* chain_ranks - whether it waits for ranks of its job that are not in the recording. */
bool chain_ranks(const struct chain *c, struct resource_use *ret);
bool chain_precision(const struct chain *c, struct resource_use *ret);
