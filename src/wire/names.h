/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - names of sources, ops and loss reasons for the agent's side. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/ids.h"

struct wire_source_row {
	uint8_t id;
	const char *json, *sql, *description;
};

struct wire_op_row {
	uint8_t source;
	uint16_t op;
	const char *name, *description;
};

struct wire_loss_row {
	const char *name, *description;
};

/* The lists themselves, ended by a row whose name is NULL. */
extern const struct wire_source_row wire_sources[];
extern const struct wire_op_row wire_ops[];
extern const struct wire_loss_row wire_losses[LOSS_COUNT + 1];

/* wire_op_find - the row of (source, op); NULL if unknown. */
const struct wire_op_row *wire_op_find(unsigned source, unsigned op);

/* wire_op_name - its name, or "unknown(n)" in @scratch (32 bytes). */
const char *wire_op_name(unsigned source, unsigned op, char scratch[32]);
#define WIRE_OP_NAME(source, op) wire_op_name(source, op, (char[32]){0}) /* until its block ends */

/* wire_nccl_name - of a collective as people say it: "AllReduce". */
const char *wire_nccl_name(unsigned op, char scratch[32]);
#define WIRE_NCCL_NAME(op) wire_nccl_name(op, (char[32]){0})

/* wire_source_name - the JSON name ("cuda"); "unknown" if there is no such source. */
const char *wire_source_name(unsigned source);

/* wire_op_by_name - look a name up without regard to case, published aliases included. */
const struct wire_op_row *wire_op_by_name(const char *name);
