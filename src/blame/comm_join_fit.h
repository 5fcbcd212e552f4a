/* SPDX-License-Identifier: Apache-2.0 */
/* comm_join_fit.h - how the numbers of two streams of calls lie to each other, by what the calls are and when they end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOIN_NO_END INT64_MIN

struct join_point { /* a call */
	int64_t number;
	uint64_t what;              /* equal for calls that may be one */
	int64_t enter_ns, leave_ns; /* leave_ns: the call returned */
	int64_t end_ns;             /* JOIN_NO_END: not known */
};

struct join_side {
	const struct join_point *points; /* by number */
	size_t count;
	const char *node;
	uint64_t error_ns; /* of its clock; of no account within one node */
	bool is_messages;  /* Sends or Recvs */
};

struct join_fit {
	int64_t shift;     /* number n of @b is number n + shift of @a */
	uint64_t error_ns; /* how far their ends are apart, nearly all of them */
};

/* join_fit_find - @is_one_comm: they are known to be of one communicator, and only the shift is asked for. *@work
 * grows by the calls that were compared. 0; -EAGAIN: too few calls in common yet; -ENOTUNIQ: several shifts are about as
 * good; -ENOENT: none is good; -ENOMEM. */
int join_fit_find(const struct join_side *a, const struct join_side *b, bool is_one_comm,
	uint64_t *work, struct join_fit *ret);
