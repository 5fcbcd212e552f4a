/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - one wire record to one model event. Pure. */
#pragma once

#include <stddef.h>

#include "base/clock.h"
#include "model/collective.h"
#include "model/event.h"

/* decode_event - fill *ret from the @len bytes at @data, and *ret_nccl if it is an NCCL record.
 * Returns 0, or -EBADMSG if version, size or source make no sense (both are then untouched). */
int decode_event(const void *data, size_t len, const struct clock_map *clock, struct event *ret,
	struct collective *ret_nccl);
