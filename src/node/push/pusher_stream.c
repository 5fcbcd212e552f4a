/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_stream.c - the node's verdict on itself, told to programs on this machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/push/pusher_private.h"
#include "base/socket_path.h"

static void on_stream(void *arg)
{
	struct pusher *p = arg;

	stream_poll(p->stream);
}

int pusher_stream_open(struct pusher *p, struct errinfo *reterr)
{
	char path[SOCKET_PATH_MAX];
	int r = 0;

	if (!p->settings->remediate)
		return 0;
	if (!p->settings->stream_path)
		r = socket_path_default(STREAM_AGENT_SOCKET, path, reterr);
	else if (strlen(p->settings->stream_path) >= sizeof(path))
		r = errinfo_set(reterr, -EINVAL, "--remediate-socket: the path is too long");
	else
		snprintf(path, sizeof(path), "%s", p->settings->stream_path);
	if (r == 0)
		r = stream_open(path, p->settings->stream_group, &p->stream, reterr);
	if (r < 0)
		return r;
	r = loop_watch(p->loop, stream_fd(p->stream), on_stream, p);
	return r == 0 ? 0 : errinfo_set(reterr, r, "cannot watch %s: %s", path, strerror(-r));
}

void pusher_stream_close(struct pusher *p)
{
	if (!p->stream)
		return;
	loop_watch(p->loop, stream_fd(p->stream), NULL, NULL);
	stream_close(TAKE(p->stream));
}

void pusher_stream_tell(struct pusher *p, const struct push_straggler *s)
{
	const struct push_who who = pusher_who(p);
	const struct stream_node node = {.node_id = who.node,
		.cluster_id = who.cluster,
		.time = wall_now(),
		.event_id = s->event[0] ? s->event : NULL,
		.rank = who.rank >= 0 ? who.rank : STREAM_NOT_A_RANK,
		.world_size = who.world_size};
	struct stream_message m = {.type = STREAM_STRAGGLER_RESOLVED, .resolved = {node}};

	if (!p->stream)
		return;
	if (!s->resolved)
		m = (struct stream_message){.type = STREAM_STRAGGLER_STATE,
			.state = {.node = node,
				.score = s->score,
				.threshold = s->threshold,
				.detection_mode = s->mode,
				.dominant_signal = s->dominant}};
	stream_publish(p->stream, &m);
}
