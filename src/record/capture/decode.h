/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - one wire record to one model event, or to one row of a thread's ledger. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "model/collective.h"
#include "model/event.h"
#include "model/step_account.h"

/* decode_event - fill *ret from the @len bytes at @data, and *ret_nccl if it is an NCCL record.
 * Returns 0, or -EBADMSG if version, size or source make no sense (both are then untouched). */
int decode_event(const void *data, size_t len, const struct clock_map *clock, struct event *ret,
	struct collective *ret_nccl);

/* decode_is_ledger - is it a record for decode_ledger() instead? */
bool decode_is_ledger(const void *data, size_t len);

/* decode_ledger - fill *ret. Returns 0, or -EBADMSG if version or size make no sense, the lines do not
 * add up to the row's length, or a number is of no line, mark or waker (*ret is then untouched). */
int decode_ledger(
	const void *data, size_t len, const struct clock_map *clock, struct ledger_row *ret);
