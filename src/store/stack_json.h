/* SPDX-License-Identifier: Apache-2.0 */
/* stack_json.h - a call stack as the store's columns hold it, there and back.
 *
 * frames: [{"s": function, "f": file or library, "l": line, "pf": Python file, "pfn": function,
 * "pl": line, "i": "0x…"}, …], innermost first, only keys that have a value, i only without s.
 * ips: ["0x…", …], only for a stack in which nothing has a name; else "". */
#pragma once

#include "base/buf.h"
#include "model/stack.h"

#define STACK_JSON_MAX (64 << 10) /* longer frames are never written, and ignored in a file */

struct stack_row { /* texts end with a NUL, but their length is what counts */
	uint64_t hash;
	const char *ips, *frames, *stop;
	size_t ips_len, frames_len, stop_len;
};

/* stack_json_frames - appends the frames to @out, at most STACK_JSON_MAX bytes: names are cut for
 * that, and if need be the outermost frames left out. @stop gets where the walk ended, and how many
 * were left out. */
void stack_json_frames(const struct stack *s, struct buf *out, struct buf *stop);
void stack_json_ips(const struct stack *s, struct buf *out);

/* stack_json_read - the stack in @row, one block that the caller frees with free(). Names of C++ and
 * Rust are demangled.
 * -EFBIG over STACK_JSON_MAX or STACK_FRAMES_MAX; -EBADMSG not such JSON; -ENOMEM. */
int stack_json_read(const struct stack_row *row, struct stack **ret);
