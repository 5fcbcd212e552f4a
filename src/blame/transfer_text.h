/* SPDX-License-Identifier: Apache-2.0 */
/* transfer_text.h - the sentence about a link or a collective that is slow itself: cluster and explain say the
 * same. */
#pragma once

#include "base/buf.h"
#include "blame/blame.h"

struct transfer_text {
	bool is_link;
	int32_t from_rank, to_rank;      /* of a link */
	const char *from_node, *to_node; /* likewise; "": not known */
	uint64_t comm;
	uint16_t op;
	uint32_t ranks; /* of a collective */
	uint64_t bytes, took_ns, usual_ns;
	bool by_past; /* usual_ns is its own before, not its peers' */
};

/* transfer_text_of - what blame has found, between these workers. */
struct transfer_text transfer_text_of(
	const struct blame_transfer *t, const struct blame_worker *workers);

/* transfer_text_put - "the link rank 3 (n0) -> rank 7 (n1) is slow: a message of 1.0 MiB takes 12ms (0.0874 GB/s)
 * against 300µs (3.5 GB/s) on peers; both ranks are on time". Names in it came from agents: whoever prints
 * escapes them. */
void transfer_text_put(struct buf *b, const struct transfer_text *t);

/* transfer_text_collective - "AllReduce of communicator 0fb832414a5af13b" */
void transfer_text_collective(struct buf *b, uint16_t op, uint64_t comm);
