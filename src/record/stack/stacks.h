/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - stacks from the kernel half, with names, once each.
 *
 * Keeps the kernel half's tables filled (mappings, unwind tables, Python layouts of traced
 * processes), takes the stacks it sends, asks for their names and hands them on when those have
 * come, or after STACKS_PATIENCE_S with what is known by then. Nothing waits for names. Runs on the
 * tracer's thread. */
#pragma once

#include "base/clock.h"
#include "base/macros.h"
#include "model/stack.h"
#include "record/probe/probe.h"
#include "record/symbol/symbol.h"
#include "wire/stack.h"

#define STACKS_WAITING_MAX 4096 /* without their names */
#define STACKS_KEPT_MAX    4096 /* that stacks_find() knows */

struct stacks;
typedef void stacks_sink(void *arg, const struct stack *s);

int stacks_new(
	struct probe *p, bool with_python, stacks_sink *sink, void *arg, struct stacks **ret);
void stacks_free(struct stacks *s);

/* Life of traced processes. stacks_process(): it is there (found, or a new program). */
void stacks_process(struct stacks *s, uint32_t pid);
void stacks_fork(struct stacks *s, uint32_t child);
void stacks_gone(struct stacks *s, uint32_t pid);

/* stacks_poll - take what has come, ask, hand on. To be called often. */
void stacks_poll(struct stacks *s);

/* stacks_finish - no more stacks come: wait up to @timeout_ms for the names of those that are
 * there, then hand on all. */
void stacks_finish(struct stacks *s, unsigned timeout_ms);

/* stacks_find - the stack of @hash, if it has been handed on and is still kept; valid until the
 * next call. */
const struct stack *stacks_find(const struct stacks *s, uint64_t hash);

/* stacks_renew - hand on again everything that is kept: the store is a new one. */
void stacks_renew(struct stacks *s);

/* stacks_userspace - the stack @hash with the frames that thread @tid's Python has now, read from
 * outside: another hash. For --py-walker userspace; returns @hash if there are none. */
uint64_t stacks_userspace(struct stacks *s, uint32_t pid, uint32_t tid, uint64_t hash);

/* stacks_ask - the name of the function at @address of process @pid, or of the kernel whose handle
 * @address is (symbol/handles.h): handed on like a stack of one frame, under the hash that is returned; 0: it cannot be asked for. */
uint64_t stacks_ask(struct stacks *s, uint32_t pid, uint64_t address);

/* stacks_locate - "libx.so+0x1234", where @address of @pid is; false: in no file. */
bool stacks_locate(const struct stacks *s, uint32_t pid, uint64_t address, char *out, size_t size);

struct stacks_report {
	struct stack_tally tally;
	uint64_t handed_on;
	uint64_t dropped; /* more waited than there is room for */
	uint64_t bad;     /* records that made no sense */
	uint64_t table_bytes;
	unsigned python_processes; /* whose frames are walked */
	struct symbol_health symbols;
	char python_refused[160]; /* "" or why one's are not */
};
void stacks_report(const struct stacks *s, struct stacks_report *ret);
