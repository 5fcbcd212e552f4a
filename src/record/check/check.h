/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - can this machine be traced, and if not, what to do: the rows behind `ingero check`.
 *
 * check_probe() asks the kernel, check_try() has it run the programs; check_run() reads files under a root prefix and judges. Their
 * separation lets tests judge machines they do not run on.
 *
 * To add a check: one function in the file of its subject (check.h) and its row in the table of check.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/confine_thread.h"
#include "base/errinfo.h"
#include "base/macros.h"
#include "record/attach/feature.h"
#include "record/probe/part.h"

#define CHECK_ROWS_MAX    (16 + PART_COUNT)
#define CHECK_TRACEPOINTS 10

enum check_state {
	CHECK_PASS,
	CHECK_OPTIONAL,     /* not there, and tracing works without */
	CHECK_NO_FEATURE,   /* the kernel lacks it */
	CHECK_NO_PRIVILEGE, /* this process may not */
};

struct check_row {
	const char *name;
	enum check_state state;
	bool optional;     /* could never stop tracing */
	char value[256];   /* what was found */
	char detail[8192]; /* more of it, a line each */
	char advice[512];  /* what to do; set when it did not pass */
};

struct check_report {
	struct check_row rows[CHECK_ROWS_MAX];
	size_t count;
	bool has_driver, has_gpu;
};

/* What became of the programs themselves: loaded as a trace loads them, and one put on a function of this program. */
struct check_trial {
	bool is_done;
	int load; /* 0, or why they were refused, in words: @why */
	char why[512];
	enum probe_method method;
	struct parts_missing missing; /* what tracing goes on without */
	int fire;                     /* 0: each call of the function was seen */
	double hit_ns;
};

struct check_probes { /* results of record/attach/feature.h */
	char release[128];
	int bpf_load, session, multi, perf, cpu_clock;
	int btf; /* whether the kernel's types could be read */
	bool tracepoints[CHECK_TRACEPOINTS];
	uint64_t caps; /* that this process had */
	bool is_old; /* this process has given up rights since: caps counts, not what it has now */
	int confine_tried; /* 0, or why @confine is not known */
	struct confine_report confine;
	struct check_trial trial;
};

void check_probe(struct check_probes *ret);

/* check_try - load the programs and see one fire: @p->trial. Takes up to a second. Nothing stays attached. */
void check_try(struct check_probes *p);
void check_run(const char *root, const struct check_probes *p, struct check_report *ret);

/* check_exit_code - EXIT_OK if tracing can work, EXIT_NO_FEATURE, or EXIT_NO_PERMISSION if only
 * privileges are missing. */
enum exit_code check_exit_code(const struct check_report *r);

/* The functions behind the rows, by what they look at. Each fills in what was found, and unless it
 * passes its state and what to do. */

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
