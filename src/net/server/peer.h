/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - what is remembered of an address: connections that have not shown a token, bytes of its
 * requests' bodies, and wrong tokens. IPv6 addresses are taken by their first 64 bits, since one machine has all of them.
 *
 * A table of fixed size: an address without connections and bodies is forgotten when its place is needed. */
#pragma once

#include "net/address.h"

#define PEER_FAILURES_MAX  10
#define PEER_FAILURES_SPAN (60 * NS_PER_S)

struct peers;

int peers_new(struct peers **ret);
DECLARE_FREE(struct peers, peers_free)

/* peer_key - the same for what counts as one address; never 0. */
uint64_t peer_key(const union address *a);

/* peers_enter - one connection more; -EAGAIN if @max are there already or the table is full. */
int peers_enter(struct peers *p, const union address *a, unsigned max);
void peers_leave(struct peers *p, const union address *a);

/* peers_hold - a body of the address with this key had @before bytes and has @now. Returns how many all
 * of that address have; 0 if there is no place to count them. */
size_t peers_hold(struct peers *p, uint64_t key, size_t before, size_t now);

/* peers_fail - a wrong token came. peers_is_blocked - too many have: how long yet, in seconds; 0 if
 * not. */
void peers_fail(struct peers *p, const union address *a, uint64_t now_ns);
unsigned peers_is_blocked(struct peers *p, const union address *a, uint64_t now_ns);
