/* SPDX-License-Identifier: Apache-2.0 */
/* trace_resolve_stream.c - the options of `ingero trace` that are about the remediation stream and steps of
 * inference. */
#include "cli/trace_settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "notify/remediate/balance.h"

#define INFERENCE_HEARTBEAT_NS (30 * NS_PER_S)
#define INFERENCE_ROLLOVER     (1ULL << 30)

static int check_companions(const struct trace_settings *s, struct errinfo *reterr)
{
	const struct trace_settings *d = &trace_defaults;

	if (!s->remediate && !s->inference && (s->remediate_socket || s->remediate_gid >= 0))
		return errinfo_set(reterr, -EINVAL,
			"--remediate-socket and --remediate-gid require --remediate");
	if (!s->inference && (s->inference_warmup != d->inference_warmup ||
				     s->inference_ratio != d->inference_ratio ||
				     s->inference_pause || s->inference_phase || s->kv_lineage))
		return errinfo_set(reterr, -EINVAL, "--inference-* options require --inference");
	if (!s->kv_lineage && (s->kv_top != d->kv_top || s->kv_max))
		return errinfo_set(reterr, -EINVAL,
			"--inference-kvcache-* options require --inference-kvcache-lineage");
	if (s->inference_phase && strcmp(s->inference_phase, "off") != 0)
		return errinfo_set(reterr, -EINVAL,
			"--inference-phase-classifier: only off is accepted: launches are sampled, so a step's phase is not known; label phases with `ingero annotate`");
	return 0;
}

static int resolve_pause(const char *name, int *ret, struct errinfo *reterr)
{
	*ret = SEVERITY_HIGH;
	if (!name)
		return 0;
	*ret = SEVERITY_COUNT;
	for (int i = 0; *name && i < SEVERITY_COUNT; i++)
		if (strcmp(name, severity_name((enum severity)i)) == 0)
			*ret = i;
	if (*name && *ret == SEVERITY_COUNT)
		return errinfo_set(reterr, -EINVAL,
			"--inference-pause-on-severity %.40s: choose LOW, MEDIUM, HIGH, CRITICAL or ''",
			name);
	return 0;
}

/* What --inference brings along where nothing else was said. */
static void imply(const struct trace_settings *s, struct trace_plan *p)
{
	p->json = s->json;
	if (!s->inference)
		return;
	p->json |= !isatty(STDOUT_FILENO);
	if (!s->heartbeat_ns)
		p->tracer.heartbeat_ns = INFERENCE_HEARTBEAT_NS;
	if (s->max_db_bytes == TRACE_NOT_GIVEN && !s->rollover_bytes) {
		p->tracer.max_db_bytes = 0;
		p->tracer.rollover_bytes = INFERENCE_ROLLOVER;
	}
}

int trace_resolve_stream(
	const struct trace_settings *s, struct trace_plan *p, struct errinfo *reterr)
{
	int r = check_companions(s, reterr);

	if (r == 0)
		r = resolve_pause(s->inference_pause, &p->pause_severity, reterr);
	if (r < 0)
		return r;
	imply(s, p);
	p->has_stream = s->remediate || s->inference;
	if (!p->has_stream)
		return 0;
	if (!s->remediate_socket)
		r = socket_path_default(REMEDIATE_SOCKET, p->stream_path, reterr);
	else if (strlen(s->remediate_socket) >= sizeof(p->stream_path))
		r = errinfo_set(reterr, -EINVAL, "--remediate-socket: the path is too long");
	else
		snprintf(p->stream_path, sizeof(p->stream_path), "%s", s->remediate_socket);
	p->tracer.stream_path = p->stream_path;
	p->stream = (struct remediate_settings){.path = p->stream_path,
		.group = s->remediate_gid >= 0 ? (gid_t)s->remediate_gid : SOCKET_NO_GROUP,
		.node = p->node,
		.cluster = s->cluster ? s->cluster : "",
		.inference = s->inference,
		.steps = {.warmup = (unsigned)s->inference_warmup, .ratio = s->inference_ratio},
		.kv_top = s->kv_lineage ? (size_t)s->kv_top : 0,
		.allocs_max = s->kv_max ? (size_t)s->kv_max : BALANCE_ALLOCS};
	return r;
}
