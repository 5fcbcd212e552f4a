/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - takes records out of the kernel's rings and hands them on as events and rows of
 * ledgers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/collective.h"
#include "model/event.h"
#include "model/step_account.h"
#include "record/probe/probe.h"
#include "wire/record.h"

/* A record of wire/record.h, checked. */

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

struct reader;
/* @c is set for NCCL calls, else NULL. */
typedef void reader_sink(void *arg, struct event *e, const struct collective *c);
typedef void reader_ledger_sink(void *arg, const struct ledger_row *row);
typedef void reader_name_sink(void *arg, const struct name_record *n);

/* reader_new - read the rings of @p; @clock must outlive the reader (its owner refreshes it). */
int reader_new(struct probe *p, const struct clock_map *clock, reader_sink *sink,
	reader_ledger_sink *ledger_sink, void *arg, struct reader **ret);

/* reader_take_names - hand names of kernels and ranges to @sink, too. */
void reader_take_names(struct reader *r, reader_name_sink *sink);
void reader_free(struct reader *r);

/* reader_wait - sleep until a ring asks for attention or @other_fd (-1: none) is readable, at most
 * @timeout_ms. The probes wake the
 * reader only when much is waiting; otherwise they rely on the timeout. */
void reader_wait(struct reader *r, int other_fd, int timeout_ms);

/* reader_consume - hand on what is there now. Returns the number of records. */
int reader_consume(struct reader *r);

uint64_t reader_bad(const struct reader *r, unsigned source); /* could not be decoded */

/* One wire record to one model event, or to one row of a thread's ledger. Pure. */

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
