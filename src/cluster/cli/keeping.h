/* SPDX-License-Identifier: Apache-2.0 */
/* keeping.h - how the fleet's service hands over what is to be kept, without knowing the store. */
#pragma once

#include "cluster/detect/fleet.h"
#include "cluster/ingest/receiver.h"

struct keeping { /* all run on the loop's thread; keep NULL: nothing is kept */
	void *arg;
	/* As receiver_sink.keep. */
	void (*keep)(
		void *arg, const struct receiver_request *q, keeper_done *done, void *done_arg);
	/* As receiver_sink.may_send. */
	bool (*may_send)(void *arg, uint64_t credential, const char *cluster);
	/* A notice of the fleet, at @now_ns of its clock, becomes a row of incidents. */
	void (*tell)(void *arg, const struct fleet_notice *n, int64_t now_ns);
};
