/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/sentences/gpu_change_text.h"

#include <inttypes.h>
#include <string.h>

#include "diagnose/compose/detector.h"
#include "diagnose/sentences/kernel_sentence.h"
#include "base/macros.h"
#include "base/text.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define NAME_SHOWN  48  /* bytes of a kernel's short name: its beginning tells it from others */
#define SHOWN_BYTES 1e5 /* less is "0.0 MB" */
#define SHOWN_RATE  5e8 /* bytes/s: less is nothing to a link */

static void put_clock(const struct gpu_change *g, struct buf *b)
{
	char reasons[128];

	buf_printf(b, "the GPU's clock is %.0f MHz instead of %.0f MHz", g->slow_clock_mhz,
		g->ordinary_clock_mhz);
	if (g->slow_limit_mw > 0 && g->slow_limit_mw < g->ordinary_limit_mw)
		buf_printf(b, ", its power limit %.0f W instead of %.0f W",
			(double)g->slow_limit_mw / 1000, (double)g->ordinary_limit_mw / 1000);
	buf_printf(b, " (reasons the driver gives: %s)",
		gpu_throttle_text(g->reasons, reasons, sizeof(reasons)));
}

/* What is not counted, or is the same, is not said. */
static void put_work(const struct step_account *a, struct buf *b)
{
	bool launches = a->slow_launches >= a->ordinary_launches + 1 && a->ordinary_launches > 0;
	bool bytes = a->slow_bytes >= a->ordinary_bytes + SHOWN_BYTES;

	buf_puts(b, "more work");
	if (launches)
		buf_printf(b, ": %.0f launches in a step instead of %.0f", a->slow_launches,
			a->ordinary_launches);
	if (bytes)
		buf_printf(b, "%s %.1f MB copied in a step instead of %.1f MB",
			launches ? ";" : ":", a->slow_bytes / 1e6, a->ordinary_bytes / 1e6);
}

/* The rows that prove it have the whole name. */
static void put_name(const char *name, struct buf *b)
{
	char brief[KERNEL_SHORT_MAX];

	kernel_name_short(name, brief);
	if (strlen(brief) > NAME_SHOWN)
		buf_printf(b, "%.*s…", NAME_SHOWN - 1, brief);
	else
		buf_puts(b, brief);
}

static bool has_types(const struct kernel_change *k)
{
	return k->from != KERNEL_OF_UNKNOWN;
}

/* "other kernels run than before, of fp32 instead of bf16: sgemm_128x256 instead of bf16_gemm_256x128" */
static void put_kernels(const struct kernel_change *k, struct buf *b)
{
	buf_printf(b, "%s kernels run than in ordinary steps", k->new_rows ? "other" : "more");
	if (has_types(k))
		buf_printf(b, ", of %s instead of %s", kernel_type_text(k->to),
			kernel_type_text(k->from));
	if (!k->added_count)
		return;
	buf_puts(b, ": ");
	put_name(k->added[0].name, b);
	if (!k->gone.rows)
		return;
	buf_puts(b, " instead of ");
	put_name(k->gone.name, b);
}

/* "3 other processes use the GPU: python3 (pid 7), python3 (pid 8) and one more; they copy 41 GB/s to or from it" */
static void put_others(const struct gpu_others *o, struct buf *b)
{
	int named = MIN(o->count, GPU_OTHERS_NAMED);

	if (o->count > 1)
		buf_printf(b, "%d other processes use the GPU", o->count);
	else
		buf_puts(b, "another process uses the GPU");
	for (int i = 0; i < named; i++)
		buf_printf(b, "%s%s (pid %u)",
			!i                 ? ": "
			: i + 1 < o->count ? ", "
					   : " and ",
			o->named[i].comm, o->named[i].pid);
	if (o->count > named)
		buf_printf(b, " and %d more", o->count - named);
	if (o->rate >= SHOWN_RATE)
		buf_printf(b, ", which %s %.1f GB/s to or from it",
			o->count > 1 ? "together copy" : "copies", o->rate / 1e9);
}

/* "calls that ordinary steps do not make came with the slow ones: cudaMemsetAsync (about 18 in a step)" */
static void put_call(const struct call_added *c, struct buf *b)
{
	char op[32];

	buf_printf(b,
		"calls that ordinary steps do not make came with the slow ones: %s (about %.0f in a step%s)",
		wire_op_name(c->source, c->op, op), MAX(c->in_step, 1.0),
		c->is_on_default_stream ? ", on the default stream" : "");
}

void gpu_change_cause(const struct step_account *a, const struct gpu_change *g, struct buf *b)
{
	switch (g->reason) {
	case GPU_BY_CLOCK: put_clock(g, b); return;
	case GPU_BY_NEIGHBOUR: put_others(&g->others, b); return;
	case GPU_BY_WORK: put_work(a, b); return;
	case GPU_BY_WAITS:
		buf_printf(b,
			"the program waits for the GPU %.0f times in a step instead of %.0f times",
			a->slow_waits, a->ordinary_waits);
		return;
	case GPU_BY_VARIETY:
		buf_puts(b,
			"the work of a step varies: steps become longer and shorter again, and have all lengths in between");
		return;
	case GPU_BY_KERNELS: put_kernels(&g->kernels, b); return;
	case GPU_BY_CALLS: put_call(&g->call, b); return;
	case GPU_BY_THREAD:
		buf_printf(b,
			"the steps wait for thread %s, which waits for the GPU meanwhile (a lock that it holds, or its result)",
			g->thread->comm);
		return;
	case GPU_BY_NOTHING:
		buf_puts(b, "the GPU takes longer for its work; nothing recorded says why");
		return;
	}
}

void gpu_change_detail(const struct gpu_change *g, struct buf *b)
{
	const struct kernel_change *k = &g->kernels;

	if (g->reason != GPU_BY_KERNELS)
		return;
	if (k->new_rows)
		buf_printf(b,
			"Of %u launches of slow steps that were looked at, %u are of kernels that ordinary steps do not run",
			k->slow_rows, k->new_rows);
	else
		buf_puts(
			b, "Launched for the first time when steps became slow, and in them since");
	for (int i = 0; i < k->added_count; i++) {
		buf_puts(b, i ? ", " : ": ");
		put_name(k->added[i].name, b);
		if (k->added[i].in_step >= 0.5)
			buf_printf(b, " (about %.0f in a step)", k->added[i].in_step);
	}
	buf_puts(b, ". ");
	if (!k->gone.rows)
		return;
	buf_puts(b, "Not seen any more: ");
	put_name(k->gone.name, b);
	buf_puts(b, ". ");
}

/* Which kernels ran, and when. */
static void put_sql(const struct step_account *a, struct incident *inc)
{
	incident_sql(inc,
		"SELECT k.name, sum(e.timestamp BETWEEN %" PRId64 " AND %" PRId64
		") AS while_slow, count(*) AS rows FROM events e JOIN kernels k ON k.node = e.node "
		"AND k.pid = e.pid AND k.function = e.arg0 WHERE e.pid = %u AND e.flags & 1 = 0 AND "
		"e.timestamp BETWEEN %" PRId64 " AND %" PRId64 " AND " OP_KIND_LAUNCH_SQL
		" GROUP BY k.name ORDER BY while_slow DESC, rows DESC LIMIT 200",
		a->slow_first.ns, a->slow_last.ns, a->pid, a->first.ns, a->last.ns);
}

static void show_call(
	const struct step_account *a, const struct call_added *c, struct incident *inc)
{
	if (c->is_on_default_stream)
		incident_fix(inc,
			"Work on the default stream waits for all other streams, and they for it: give it a stream, or create the others with cudaStreamNonBlocking");
	else
		incident_fix(inc,
			"Take these calls out of the step, or see what they make the GPU wait for: a copy or an event of another stream");
	incident_sql(inc,
		"SELECT id, timestamp, tid, duration, arg0, arg1, stream, stack_hash FROM events WHERE pid = %u AND "
		"source = %u AND op = %u AND timestamp BETWEEN %" PRId64 " AND %" PRId64
		" ORDER BY timestamp LIMIT 200",
		a->pid, c->source, c->op, a->first.ns, a->slow_last.ns);
}

void gpu_change_show(const struct step_account *a, const struct gpu_change *g, struct incident *inc)
{
	if (g->reason == GPU_BY_THREAD)
		incident_fix(inc,
			"Let that thread wait for the GPU before it takes the lock, or after it gave it back");
	if (g->reason == GPU_BY_CALLS)
		show_call(a, &g->call, inc);
	if (g->reason != GPU_BY_KERNELS)
		return;
	if (has_types(&g->kernels))
		incident_fix(inc,
			"Find what changed the precision: torch.autocast (enabled, dtype), .float() or .to(dtype), a scaler that gives up, torch.backends.cuda.matmul.allow_tf32");
	else
		incident_fix(inc,
			"Kernels are chosen by type, shape and layout: find what changed (batch or sequence length, dtype, memory_format, deterministic mode, another code path)");
	put_sql(a, inc);
}
