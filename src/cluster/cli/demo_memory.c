/* SPDX-License-Identifier: Apache-2.0 */
/* demo_memory.c - see demo_memory.h. */
#include "cluster/cli/demo_memory.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include "push/push_wire.h"

#define REQUEST_MAX (8u << 20)

struct demo_memory {
	struct echo_service *service;
	struct keeping keeping;
	char *folder;
	bool is_ours; /* the folder */
};

const char *demo_memory_place(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp ? tmp : "/tmp";
}

int demo_memory_new(
	struct loop *l, const char *folder, struct demo_memory **ret, struct errinfo *reterr)
{
	_cleanup_(demo_memory_freep) struct demo_memory *m = calloc(1, sizeof(*m));
	struct echo_service_settings s = {0};
	int r;

	if (!m)
		return -ENOMEM;
	if (asprintf(&m->folder, "%s%s", folder ? folder : demo_memory_place(),
		    folder ? "" : "/ingero-demo-XXXXXX") < 0) {
		m->folder = NULL;
		return -ENOMEM;
	}
	m->is_ours = !folder;
	if (m->is_ours && !mkdtemp(m->folder))
		return errinfo_set(
			reterr, -errno, "cannot make a temporary folder: %s", strerror(errno));
	s.folder = m->folder;
	r = echo_service_new(l, &s, &m->service, reterr);
	if (r < 0)
		return r;
	m->keeping = echo_service_keeping(m->service);
	*ret = TAKE(m);
	return 0;
}

static int remove_one(const char *path, const struct stat *st _unused_, int kind _unused_,
	struct FTW *at _unused_)
{
	return remove(path);
}

void demo_memory_free(struct demo_memory *m)
{
	if (m->service)
		echo_service_free(m->service);
	if (m->is_ours && m->folder)
		nftw(m->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	free(m->folder);
	free(m);
}

struct echo_service *demo_memory_service(struct demo_memory *m)
{
	return m->service;
}

static void on_kept(void *arg _unused_, const struct keeper_result *r _unused_)
{
}

void demo_memory_watch(void *arg, const struct simulation_message *message)
{
	struct demo_memory *m = arg;
	_cleanup_buf_ struct buf b = BUF_INIT(REQUEST_MAX);
	struct receiver_request q = {.signal = OTLP_LOGS};

	switch (message->kind) {
	case SIMULATION_HEALTH:
		q.signal = OTLP_METRICS;
		push_metrics_protobuf(&b, &(struct push_metrics){.health = message->health,
						  .detection_mode = "fleet",
						  .fleet_reachable = true});
		break;
	case SIMULATION_CALLS: push_calls_protobuf(&b, message->calls); break;
	case SIMULATION_REPORT: push_report_protobuf(&b, message->report); break;
	}
	q.data = b.data;
	q.len = b.len;
	if (!b.err)
		m->keeping.keep(m->keeping.arg, &q, on_kept, NULL);
}

void demo_memory_tell(struct demo_memory *m, const struct fleet_notice *n, int64_t now_ns)
{
	m->keeping.tell(m->keeping.arg, n, now_ns);
}
