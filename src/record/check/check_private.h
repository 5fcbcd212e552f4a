/* SPDX-License-Identifier: Apache-2.0 */
/* check_private.h - the functions behind the rows, by what they look at. Each fills in what was found, and unless it
 * passes its state and what to do. */
#pragma once

#include <stdint.h>

#include "record/attach/feature.h"
#include "record/check/check.h"
#include "base/macros.h"

struct check_context {
	const char *root;
	const struct check_probes *probes;
	struct obstacle_view view;
	struct check_report *report;
};

void check_append(char *out, size_t size, const char *fmt, ...) _printf_(3, 4);
#define VALUE(row, ...)  check_append((row)->value, sizeof((row)->value), __VA_ARGS__)
#define DETAIL(row, ...) check_append((row)->detail, sizeof((row)->detail), __VA_ARGS__)
#define ADVICE(row, ...) check_append((row)->advice, sizeof((row)->advice), __VA_ARGS__)

static inline bool has_cap(const struct check_context *c, unsigned bit)
{
	return c->view.caps >> bit & 1;
}

/* check_kernel.c */
void check_kernel(const struct check_context *c, struct check_row *row);
void check_btf(const struct check_context *c, struct check_row *row);
void check_bpf(const struct check_context *c, struct check_row *row);
void check_uprobes(const struct check_context *c, struct check_row *row);
void check_cpu_clock(const struct check_context *c, struct check_row *row);
void check_tracepoints(const struct check_context *c, struct check_row *row);

/* check.c */

/* check.c */

/* check_kernel.c */
void check_driver(const struct check_context *c, struct check_row *row);
void check_gpu(const struct check_context *c, struct check_row *row);
void check_libraries(const struct check_context *c, struct check_row *row);
void check_processes(const struct check_context *c, struct check_row *row);
