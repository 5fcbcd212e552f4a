/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - the cluster service: receivers, core, answers and notices on one loop.
 *
 * What comes in goes to the core at once; a timer gives it the time and takes its notices. The clock
 * never goes back, whatever the machine's does (service_clock). */
#pragma once

#include "cluster/answer/api_server.h"
#include "cluster/cli/outlets.h"
#include "cluster/detect/fleet.h"
#include "cluster/ingest/receiver.h"
#include "net/server/server.h"

struct service;

/* How it hands over what is to be kept, without knowing the store. */
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

struct service_settings {
	struct fleet_settings fleet;      /* without rates: they are the service's */
	struct http_server_settings http; /* of all three; without an address */
	const char *grpc_address, *http_address, *api_address; /* NULL: not opened */
	const char *rates;       /* file of prices; NULL: the built-in ones */
	struct outlets *outlets; /* who is told; the caller's, and outlives the service */
	const char *snapshot;    /* file that keeps the nodes over a restart; NULL: none */
	struct keeping keeping;  /* what comes in is kept there, too */
	bool api_elsewhere;      /* without api_address: another server has its routes */
	const char *node_page;   /* as of api_server_settings */
};

int service_new(struct loop *l, const struct service_settings *s, struct service **ret,
	struct errinfo *reterr);
void service_free(struct service *s);
DEFINE_CLEANUP(struct service *, service_free)

/* service_X_address - where it listens; NULL: it does not. */
const char *service_grpc_address(const struct service *s);
const char *service_http_address(const struct service *s);
const char *service_api_address(const struct service *s);

/* service_api - page and API; NULL: none is opened. */
struct api_server *service_api(const struct service *s);

/* service_reload - reads the rates again; after a failure the old ones stay. */
int service_reload(struct service *s, struct errinfo *reterr);

/* service_drain - nothing more is taken; @done when the replies under way have gone out, the
 * snapshot is written and everybody has been told. */
void service_drain(struct service *s, loop_fn *done, void *arg);

/* ---- its clock ---- */

struct service_clock {
	int64_t now_ns; /* as told last; 0: never */
	uint64_t mono_ns;
};

/* service_clock_at - the time to tell the core, from the machine's two clocks: wall time, but never
 * back. A step forward is followed at once, one back by going at half speed until it is made up. */
int64_t service_clock_at(struct service_clock *c, int64_t wall_ns, uint64_t mono_ns);
