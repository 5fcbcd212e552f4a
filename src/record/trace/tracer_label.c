/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_label.c - annotations: lines come in by the socket, go to the store, and are acknowledged
 * once they are committed. Runs on the tracer's thread, between records. */
#include "record/trace/tracer_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/spawn.h"

#define ACK_TRIES    50 /* of 10 ms */
#define ACKS_AT_ONCE 64

static bool put_annotation(void *arg, const struct annotation *a, uint64_t ticket)
{
	struct tracer *t = arg;

	return t->store && store_writer_push_annotation(t->store, a, ticket);
}

void tracer_serve_annotations(struct tracer *t)
{
	struct store_ack acks[ACKS_AT_ONCE];
	size_t n;

	if (!t->annotate)
		return;
	while ((n = store_writer_take_acks(t->store, acks, ARRAY_SIZE(acks))))
		for (size_t i = 0; i < n; i++)
			annotate_server_ack(t->annotate, acks[i].ticket, acks[i].id);
	annotate_server_poll(t->annotate);
}

int tracer_open_annotations(struct tracer *t, struct errinfo *reterr)
{
	const struct tracer_settings *s = &t->settings;
	int fd, r;

	if (!s->annotate_path || !t->store)
		return 0;
	r = socket_path_bind(s->annotate_path,
		s->annotate_gid < 0 ? SOCKET_NO_GROUP : (gid_t)s->annotate_gid, &fd, reterr);
	if (r < 0)
		return r;
	r = annotate_server_new(fd, "", put_annotation, t, &t->annotate);
	if (r < 0) {
		close(fd);
		unlink(s->annotate_path);
	}
	return r;
}

/* What was taken is stored; its writers are told so if that takes no longer than half a second. */
void tracer_close_annotations(struct tracer *t)
{
	const struct timespec wait_briefly = {.tv_nsec = 10 * (long)NS_PER_MS};

	if (!t->annotate)
		return;
	if (spawn_server_remove() == -ENOTCONN)
		unlink(t->settings.annotate_path);
	annotate_server_refuse(t->annotate);
	for (int i = 0; t->store && i < ACK_TRIES && annotate_server_waiting(t->annotate); i++) {
		tracer_serve_annotations(t);
		nanosleep(&wait_briefly, NULL);
	}
	if (t->store)
		tracer_serve_annotations(t);
	annotate_server_free(TAKE(t->annotate));
}
