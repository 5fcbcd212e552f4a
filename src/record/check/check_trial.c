/* SPDX-License-Identifier: Apache-2.0 */
/* check_trial.c - the programs of a trace, loaded and run: no list of features says as much of a kernel, whose verifier
 * may refuse a program though every feature that it uses is there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/attach/calibrate.h"
#include "record/attach/feature.h"
#include "record/check/check_private.h"

#define SAMPLE_HZ  99   /* as a trace by default */
#define RING_BYTES 4096 /* never read */

void check_try(struct check_probes *p)
{
	/* Of all processes, for one that has another number here than on the machine. */
	static const struct probe_settings settings = {.filter = FILTER_ALL,
		.ring_bytes = RING_BYTES,
		.stacks = true,
		.python = true,
		.sample_hz = SAMPLE_HZ};
	_cleanup_(probe_closep) struct probe *probe = NULL;
	struct check_trial *t = &p->trial;
	struct errinfo e = {0};

	*t = (struct check_trial){.is_done = true};
	t->load = feature_open(&settings, &probe, &e);
	snprintf(t->why, sizeof(t->why), "%s", e.text);
	if (t->load < 0)
		return;
	t->method = probe_method(probe);
	t->missing = *probe_missing(probe);
	probe_enable_calls(probe);
	t->fire = calibrate_hit_ns(probe, &t->hit_ns);
	probe_disable(probe);
}

static void programs_refused(const struct check_trial *t, struct check_row *row)
{
	row->state = t->load == -EPERM ? CHECK_NO_PRIVILEGE : CHECK_NO_FEATURE;
	VALUE(row, t->load == -EPERM ? "not permitted" : "refused by the kernel");
	DETAIL(row, "%s", t->why);
	ADVICE(row, t->load == -EPERM ? "see above: what is missing is named there"
				      : "`ingero trace -v` shows what the kernel said of each "
					"program; docs/kernels.md lists those that were tried");
}

void check_programs(const struct check_context *c, struct check_row *row)
{
	const struct check_trial *t = &c->probes->trial;

	if (!t->is_done || c->probes->bpf_load == -EPERM) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "%s",
			t->is_done ? "unknown: needs the privilege to load eBPF"
				   : "not tried by a server");
		ADVICE(row, "%s",
			t->is_done ? "see above" : "run `ingero check` to have them loaded");
	} else if (t->load < 0) {
		programs_refused(t, row);
	} else if (t->fire < 0) {
		row->state = t->fire == -EPERM || t->fire == -EACCES ? CHECK_NO_PRIVILEGE
								     : CHECK_NO_FEATURE;
		VALUE(row, "loaded, but a probe (%s) %s", probe_method_name(t->method),
			t->fire == -ENODATA ? "on a function of this program did not fire"
					    : "could not be attached");
		ADVICE(row, "%s: `ingero trace --attach-method` takes another method",
			t->fire == -ENODATA ? "the kernel counted no call" : strerror(-t->fire));
	} else {
		VALUE(row, "loaded; a probe (%s) was attached and fired, %.0f ns a call",
			probe_method_name(t->method), t->hit_ns);
	}
}

size_t check_missing(const struct check_context *c, struct check_row *rows)
{
	const struct parts_missing *m = &c->probes->trial.missing;
	size_t count = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct probe_part_row *part = &probe_parts[m->rows[i].part];
		struct check_row *row = &rows[count];

		if (m->rows[i].part == PART_SAMPLES)
			continue; /* has a row in any case */
		row->name = part->name;
		row->state = CHECK_OPTIONAL;
		row->optional = true;
		VALUE(row, "not available: %s", m->rows[i].why);
		ADVICE(row, "tracing works, but %s; it needs Linux %s", part->without, part->since);
		count++;
	}
	return count;
}
