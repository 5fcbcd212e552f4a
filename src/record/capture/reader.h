/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - takes records out of the kernel's rings and hands them on as events and rows of
 * ledgers. */
#pragma once

#include <stdint.h>

#include "record/capture/decode_name.h"
#include "record/probe/probe.h"
#include "base/clock.h"
#include "model/collective.h"
#include "model/event.h"
#include "model/step_account.h"

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
DEFINE_CLEANUP(struct reader *, reader_free)

/* reader_wait - sleep until a ring asks for attention or @other_fd (-1: none) is readable, at most
 * @timeout_ms. The probes wake the
 * reader only when much is waiting; otherwise they rely on the timeout. */
void reader_wait(struct reader *r, int other_fd, int timeout_ms);

/* reader_consume - hand on what is there now. Returns the number of records. */
int reader_consume(struct reader *r);

uint64_t reader_bad(const struct reader *r, unsigned source); /* could not be decoded */
