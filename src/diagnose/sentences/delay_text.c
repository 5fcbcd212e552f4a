/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/sentences/delay_text.h"

#include <stdio.h>
#include <string.h>

#include "diagnose/sentences/delay_fix.h"
#include "diagnose/accounts/place.h"
#include "diagnose/compose/delay_weight.h"
#include "diagnose/sentences/gpu_change_text.h"
#include "diagnose/compose/detector.h"
#include "diagnose/accounts/tracer_name.h"
#include "base/buf.h"
#include "base/text.h"

#define LINES_SHOWN      5
#define MORE_WAITS_RATIO 2.0
#define MORE_WAITS       8

enum cause delay_cause(enum delay_kind k)
{
	switch (k) {
	case DELAY_BY_CPU: return CAUSE_RUN_QUEUE;
	case DELAY_BY_DISK:
	case DELAY_BY_CHECKPOINT: return CAUSE_BLOCK_IO;
	case DELAY_BY_NETWORK: return CAUSE_NETWORK;
	case DELAY_BY_MEMORY: return CAUSE_RECLAIM;
	case DELAY_BY_ASLEEP:
	case DELAY_BY_STOPPED:
	case DELAY_BY_LOCK:
	case DELAY_BY_GIL:
	case DELAY_BY_LOADER:
	case DELAY_BY_PROCESS: return CAUSE_ASLEEP;
	case DELAY_BY_UNKNOWN: return CAUSE_UNEXPLAINED;
	case DELAY_BY_GPU:
	case DELAY_BY_SYNC:
	case DELAY_BY_COPY:
	case DELAY_BY_LAUNCH:
	case DELAY_BY_ALLOCATION:
	case DELAY_BY_GRAPH:
	case DELAY_BY_COLLECTIVE:
	case DELAY_BY_CALL: return CAUSE_CUDA_CALL;
	default: return CAUSE_HOST_CODE;
	}
}

/* " at train.py:71 (step)", of the program's own line, else of the library's; nothing if there is no
 * stack. */
static void put_stack(const struct recording *rec, uint64_t hash, struct buf *b)
{
	const struct stack *s = hash && rec->stacks ? stack_find(rec->stacks, hash) : NULL;
	const struct stack_frame *f = s ? stack_user_frame(s) : NULL;

	if (s && !f)
		f = stack_place(s);
	if (!f)
		return;
	if (stack_frame_is_python(f))
		buf_printf(
			b, " at %s:%u (%s)", stack_base_name(f->py_file), f->py_line, f->py_func);
	else if (f->file && f->line)
		buf_printf(b, " at %s:%u (%s)", stack_base_name(f->file), f->line, f->symbol);
	else
		buf_printf(b, " in %s", f->symbol);
}

static void put_place(const struct recording *rec, const struct account_entry *e, struct buf *b)
{
	if (e)
		put_stack(rec, e->stack_hash, b);
}

/* " at train.py:20 (step)": where the steps wait for what another does. */
static void put_wait(const struct recording *rec, const struct account_entry *e, struct buf *b)
{
	if (e && e->owner != OWNER_SELF)
		put_stack(rec, e->wait_hash, b);
}

/* "nvidia-smi (pid 7)"; of many that came and went the name alone. */
static void put_process(const struct account_entry *e, struct buf *b)
{
	buf_puts(b, e->comm);
	if (e->pid)
		buf_printf(b, " (pid %u)", e->pid);
	else
		buf_puts(b, " (one process after the other)");
}

static void put_culprit(const struct account_entry *e, const char *before, struct buf *b)
{
	if (!e || !e->culprit[0])
		return;
	if (e->culprit_pid == e->pid)
		buf_printf(b, "%sthread %s of the same process", before, e->culprit);
	else
		buf_printf(b, "%s%s%s%s (pid %u)", before,
			e->culprit_is_worker && place_is_loader_thread(e->culprit)
				? "data loader worker "
				: "",
			e->culprit, tracer_is(e->culprit) ? ", the tracer itself" : "",
			e->culprit_pid);
}

/* Whose time it was, where it is not the thread's own. */
static void put_owner(const struct account_entry *e, struct buf *b)
{
	if (!e || e->owner == OWNER_SELF || !e->comm[0])
		return;
	buf_puts(b, e->owner == OWNER_THREAD ? " in thread " : " in ");
	put_process(e, b);
}

static void put_loader(const struct recording *rec, const struct delay *l, struct buf *b)
{
	buf_puts(b, "the GPU waits for the data loader");
	if (!l->lead)
		return;
	if (l->lead->comm[0])
		buf_printf(b, ", whose worker %s is", l->lead->comm);
	else
		buf_puts(b, ", whose worker is");
	buf_printf(b, " %s", delay_text((enum delay_kind)l->lead->line));
	put_place(rec, l->lead, b);
	put_culprit(l->lead, " behind ", b);
}

/* "the program waits at train.py:20 (log) for nvidia-smi (pid 7), which is running host code in ioctl" */
static void put_other(const struct recording *rec, const struct delay *l, struct buf *b)
{
	buf_puts(b, "the program waits");
	put_wait(rec, l->lead, b);
	buf_puts(b, " for ");
	if (!l->lead || !l->lead->comm[0]) {
		buf_puts(b, "another process");
		return;
	}
	put_process(l->lead, b);
	if (delay_is_foreign(l->lead)) {
		buf_puts(b, "; what that did meanwhile is not recorded");
		return;
	}
	buf_printf(b, ", which is %s", delay_text((enum delay_kind)l->lead->line));
	put_place(rec, l->lead, b);
	put_culprit(l->lead, " behind ", b);
}

/* ", waited for at serve.py:45 (run)" */
static void put_awaited(const struct recording *rec, const struct account_entry *e, struct buf *b)
{
	_cleanup_buf_ struct buf place = BUF_INIT(4096);

	put_wait(rec, e, &place);
	if (place.len)
		buf_printf(b, ", waited for%s", buf_str(&place));
}

/* What the steps wait for is done elsewhere. */
static bool is_elsewhere(enum gpu_reason r)
{
	return r == GPU_BY_KERNELS || r == GPU_BY_CALLS || r == GPU_BY_NEIGHBOUR ||
	       r == GPU_BY_VARIETY;
}

static void put_gpu(const struct recording *rec, const struct step_account *a,
	const struct delay *l, const struct gpu_change *gpu, struct buf *b)
{
	_cleanup_buf_ struct buf place = BUF_INIT(4096);

	if (gpu)
		gpu_change_cause(a, gpu, b);
	else
		buf_puts(b, "the GPU is busy");
	if (gpu && gpu->reason == GPU_BY_CALLS)
		put_stack(rec, gpu->call.stack_hash, b);
	put_place(rec, l->lead, &place);
	if (place.len && gpu && is_elsewhere(gpu->reason))
		buf_puts(b, ", waited for");
	buf_puts(b, buf_str(&place));
}

/* Copies that other processes on the GPU make longer. */
static bool is_held(
	const struct step_account *a, const struct delay *l, const struct gpu_change *gpu)
{
	return l->kind == DELAY_BY_COPY && gpu && gpu_change_holds_copies(a, gpu);
}

/* The cause in a sentence, without a full stop. */
static void put_cause(const struct recording *rec, const struct step_account *a,
	const struct delay *l, const struct gpu_change *gpu, struct buf *b)
{
	switch (l->kind) {
	case DELAY_BY_LOADER: put_loader(rec, l, b); return;
	case DELAY_BY_PROCESS: put_other(rec, l, b); return;
	case DELAY_BY_STOPPED:
		buf_puts(b,
			"the process is stopped and goes on again (SIGSTOP, a debugger or a frozen container)");
		put_culprit(l->lead, ", at the will of ", b);
		return;
	case DELAY_BY_GPU: put_gpu(rec, a, l, gpu, b); return;
	case DELAY_BY_COPY:
		if (!is_held(a, l, gpu))
			break;
		buf_puts(b, "copies of as many bytes as before take longer: ");
		put_gpu(rec, a, l, gpu, b);
		return;
	case DELAY_BY_CPU:
		if (delay_is_of_tracer(l))
			buf_puts(b, "the cost of tracing: ");
		buf_puts(b, "its threads are ready to run and get no CPU");
		put_culprit(l->lead, ": ", b);
		buf_puts(b, l->lead && l->lead->culprit[0] ? " has it" : "");
		put_place(rec, l->lead, b);
		return;
	case DELAY_BY_SYNC:
		buf_printf(b,
			"the program waits for the GPU %.0f times in a step instead of %.0f times, so that the CPU does not prepare work ahead any more",
			a->slow_waits, a->ordinary_waits);
		put_place(rec, l->lead, b);
		return;
	case DELAY_BY_GIL:
		buf_puts(b, "Python's interpreter lock is held by another thread of the process");
		if (l->lead && l->lead->culprit[0])
			buf_printf(b, " (%s)", l->lead->culprit);
		put_place(rec, l->lead, b);
		return;
	case DELAY_BY_UNKNOWN:
		buf_printf(b, "not known: %s",
			a->unknown_reason[0] ? a->unknown_reason : "nothing recorded covers it");
		return;
	case DELAY_BY_LOCK:
		buf_puts(b, "the thread waits for another one");
		put_culprit(l->lead, ", ", b);
		put_place(rec, l->lead, b);
		return;
	default: break;
	}
	buf_printf(b, "%s", delay_text(l->kind));
	put_owner(l->lead, b);
	put_place(rec, l->lead, b);
	put_culprit(l->lead, ", behind ", b);
	put_awaited(rec, l->lead, b);
}

/* Each wait also costs the CPU some calls: where that is more than the waiting itself, the line that grew
 * does not tell that there are more of them. */
static bool waits_often(const struct step_account *a, const struct delay *l)
{
	return (l->kind == DELAY_BY_HOST || l->kind == DELAY_BY_LAUNCH ||
		       l->kind == DELAY_BY_COPY || l->kind == DELAY_BY_CALL) &&
	       !a->is_proportional &&
	       a->slow_waits >= MORE_WAITS_RATIO * a->ordinary_waits + MORE_WAITS;
}

static void put_waits(const struct step_account *a, struct buf *b)
{
	buf_printf(b, "A slow step waits for the GPU %.0f times, an ordinary one %.*f times. ",
		a->slow_waits, a->ordinary_waits < 2 ? 1 : 0, a->ordinary_waits);
}

/* Where it was, as the end of a sentence that says what was waited for. */
static void put_lead_place(const struct recording *rec, const struct delay *l, struct buf *b)
{
	_cleanup_buf_ struct buf place = BUF_INIT(4096);

	if (l->kind == DELAY_BY_STOPPED) { /* anywhere: where it was has nothing to do with it */
		put_culprit(l->lead, ", at the will of ", b);
		return;
	}
	if (l->kind == DELAY_BY_PROCESS && l->lead && l->lead->comm[0])
		buf_printf(b, " (%s)", l->lead->comm);
	if (l->kind == DELAY_BY_PROCESS)
		put_wait(rec, l->lead, &place);
	else
		put_place(rec, l->lead, &place);
	if (place.len && l->kind == DELAY_BY_GIL)
		buf_puts(b, ", held");
	else if (place.len && l->kind == DELAY_BY_CPU)
		return; /* it is the culprit's, and told with it */
	else if (place.len && l->kind == DELAY_BY_LOADER)
		buf_puts(b, ", whose worker is");
	buf_puts(b, buf_str(&place));
}

/* "allocating GPU memory +44 ms, host code +3 ms": what changed, line by line. */
static void put_lines(const struct delay_list *all, struct buf *b)
{
	char text[TEXT_MAX];

	for (int i = 0; i < MIN(all->count, LINES_SHOWN); i++) {
		const struct delay *l = &all->items[i];

		if (l->share < 0.01)
			break;
		buf_printf(b, "%s%s +%s", i ? ", " : "", delay_text(l->kind),
			text_format_duration(text, l->slow_ns - l->ordinary_ns));
	}
}

static void put_origin(const struct step_account *a, struct buf *b)
{
	char sure[TEXT_MAX];

	buf_printf(b, "Steps were found by %s (%s sure).", step_origin_text(a->origin),
		text_format_percent(sure, a->confidence));
}

static void put_slowness(const struct step_account *a, struct buf *b)
{
	char from[TEXT_MAX], to[TEXT_MAX];

	text_format_duration(from, a->is_drift ? a->drift_from_ns : a->ordinary_step_ns);
	text_format_duration(to, a->is_drift ? a->drift_to_ns : a->slow_step_ns);
	if (a->is_drift) {
		buf_printf(b, "steps became longer little by little, from %s to %s", from, to);
		return;
	}
	if (a->period_steps)
		buf_printf(b, "every %u steps, ", a->period_steps);
	buf_printf(b, "%u of %u steps take %s instead of %s", a->slow_steps, a->steps, to, from);
}

void delay_text_slow(const struct recording *rec, const struct step_account *a,
	const struct delay_list *all, const struct delay *l, const struct gpu_change *gpu,
	struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	char more[TEXT_MAX], lost[TEXT_MAX], part[TEXT_MAX];

	text_format_duration(more, l->slow_ns - l->ordinary_ns);
	put_slowness(a, &b);
	buf_printf(&b, ": %s more %s", more, delay_text(l->kind));
	put_lead_place(rec, l, &b);
	if (l->kind == DELAY_BY_CPU) {
		put_culprit(l->lead, " used by ", &b);
		put_place(rec, l->lead, &b);
	}
	snprintf(inc->summary, sizeof(inc->summary), "%s", buf_str(&b));
	buf_clear(&b);
	put_cause(rec, a, l, gpu, &b);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s", buf_str(&b));
	buf_clear(&b);
	buf_printf(&b,
		"Slow steps lost %s in all, %s of it to this. What a slow step takes beyond an ordinary one: ",
		text_format_duration(lost, a->lost_ns), text_format_percent(part, l->share));
	put_lines(all, &b);
	buf_puts(&b, ". ");
	if (waits_often(a, l))
		put_waits(a, &b);
	if (l->kind == DELAY_BY_GPU)
		gpu_change_detail(gpu, &b);
	if (a->is_proportional)
		buf_puts(&b,
			"The work of a step varies: there are steps of all lengths, and longer ones do as much more of the same. ");
	if (delay_is_idle(a, l))
		buf_puts(&b, "A program that has nothing to do waits so, too. ");
	else if (delay_is_pause(rec, a, l))
		buf_puts(&b, "The program asks to sleep there: a pause on purpose. ");
	put_origin(a, &b);
	snprintf(inc->explanation, sizeof(inc->explanation), "%s", buf_str(&b));
	if (!is_held(a, l, gpu)) /* else those of the problem are the ones that help */
		delay_fix(rec, l, inc);
	if (waits_often(a, l))
		delay_fix_waits(inc);
	if (l->kind == DELAY_BY_GPU)
		gpu_change_show(a, gpu, inc);
}

void delay_text_waste(const struct recording *rec, const struct step_account *a,
	const struct delay *l, struct incident *inc)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	char each[TEXT_MAX], step[TEXT_MAX], percent[TEXT_MAX];

	text_format_duration(each, l->slow_ns);
	text_format_duration(step, a->ordinary_step_ns);
	text_format_percent(percent, l->share);
	buf_printf(&b, "%s of every step of %s (%s) go into %s", each, step, percent,
		delay_text(l->kind));
	put_place(rec, l->lead, &b);
	snprintf(inc->summary, sizeof(inc->summary), "%s", buf_str(&b));
	buf_clear(&b);
	put_cause(rec, a, l, NULL, &b);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s", buf_str(&b));
	buf_clear(&b);
	buf_printf(&b, "It was so in all %u %s. ", a->ordinary_steps,
		a->slow_steps
			? "ordinary steps, beside what made others slower"
			: "steps that were recorded, so that nothing ordinary is there to compare with");
	put_origin(a, &b);
	snprintf(inc->explanation, sizeof(inc->explanation), "%s", buf_str(&b));
	delay_fix(rec, l, inc);
}

void delay_text_quota(uint64_t throttled_ns, double quota, struct incident *inc)
{
	char text[TEXT_MAX], limit[48] = "";

	if (quota > 0)
		snprintf(limit, sizeof(limit), " of %.1f CPUs", quota);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"the container's CPU quota%s stopped its threads for %s (throttled by its control group)",
		limit, text_format_duration(text, throttled_ns));
	incident_fix(inc,
		"Raise the container's CPU limit (cpu.max), or use fewer threads and loader workers");
}
