/* SPDX-License-Identifier: Apache-2.0 */
/* decode_name.h - a record of wire/record.h, checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "wire/record.h"

struct name_record { /* points into the record */
	enum wire_name_kind kind;
	uint8_t source;
	uint32_t pid;
	wall_time at;
	uint64_t key, other;
	bool is_cut;
	const char *text; /* NAME_ALIAS: "" */
};

/* decode_name - -EBADMSG: it is none. */
int decode_name(
	const void *data, size_t len, const struct clock_map *clock, struct name_record *ret);
