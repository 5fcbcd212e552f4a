/* SPDX-License-Identifier: Apache-2.0 */
/* senders.h - the nodes whose agents push, and which batches of theirs have come. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "cluster/detect/nodes.h"
#include "push/push.h"

#define SENDER_BATCHES 1024 /* so many numbers below the highest are remembered */

struct sender_boot {
	uint64_t boot, highest;
	uint64_t seen[SENDER_BATCHES / 64];
};

struct sender {
	char name[PUSH_ID_MAX];
	uint64_t key; /* hash of the name */
	uint32_t index;
	uint32_t workers;            /* that name it */
	enum nodes_work work;        /* of these: jobs.c */
	int64_t last_ns;             /* anything of it came */
	struct sender_boot boots[2]; /* the one that came last first */
	struct sender *same_key;
};

struct senders {
	struct sender **items; /* by index; NULL: free */
	size_t count, room;
	uint32_t max;
	struct idmap by_key;
};

void senders_init(struct senders *s, uint32_t max);
void senders_done(struct senders *s);

/* senders_find - NULL: there is none of that name. */
struct sender *senders_find(const struct senders *s, const char *name);
/* senders_get - the one of that name, made if there is none: *ret_new. -ENOBUFS, -ENOMEM. */
int senders_get(struct senders *s, const char *name, struct sender **ret, bool *ret_new);
void senders_remove(struct senders *s, struct sender *x);

/* sender_has_batch - this batch has come before. sender_add_batch - it has come now. An agent that does
 * not tell its boot or number (0) has none that come twice. */
bool sender_has_batch(const struct sender *x, uint64_t boot, uint64_t batch);
void sender_add_batch(struct sender *x, uint64_t boot, uint64_t batch);
