/* SPDX-License-Identifier: Apache-2.0 */
/* pusher.h - `ingero fleet-push`: tells a fleet how this node is doing. A process of its own beside
 * `ingero trace`, whose recording it reads: nothing that is traced ever waits for it.
 *
 * Every push_interval (+-10 %): the health of the node, as OTLP metrics in JSON; the reply may bring the
 * threshold by which the node judges itself. Every second, sooner if a rank was held up: new collectives;
 * every second what ranks are doing that have none. When the recording has an incident, or a rank is stuck: a report. */
#pragma once

#include <sys/types.h>

#include "node/health/health_monitor.h"
#include "deliver/endpoint.h"
#include "base/buf.h"
#include "base/errinfo.h"

#define PUSHER_INTERVAL_NS (10 * NS_PER_S)
#define PUSHER_TIMEOUT_NS  (5 * NS_PER_S)
#define PUSHER_WINDOW_NS   (60 * NS_PER_S)
#define PUSHER_POLL_NS     (10 * NS_PER_S) /* between questions for the threshold */
#define PUSHER_FLUSH_NS    (3 * NS_PER_S)  /* at the end, for what is not delivered yet */
#define PUSHER_REPLAY_RATE 20000           /* calls a second */

struct pusher_settings {                /* texts are the caller's */
	struct endpoint endpoint;       /* of the metrics */
	struct http_endpoint threshold; /* host "": it is not asked for */
	const char *cluster, *node;
	struct tls_client_settings tls; /* whom to trust, and what to show */
	const char *token;              /* NULL: none */
	bool insecure;                  /* the token may travel in the clear */
	const char *db;
	const char *baseline; /* file; NULL: none is kept */
	const char *mark;     /* file of what was delivered; NULL: none is kept */
	const char *provider; /* "aws", "auto", …; NULL: not told */
	uint64_t push_interval_ns, timeout_ns, window_ns, poll_interval_ns;
	uint64_t baseline_age_ns;     /* an older file tells nothing */
	uint32_t gpus;                /* 0: as recorded */
	uint32_t warmup;              /* readings */
	double hysteresis;            /* see health_monitor.h */
	uint32_t world_size;          /* of the job; 0: as recorded */
	int32_t rank;                 /* of this node; -1: as recorded */
	const char *workload;         /* NULL: as recorded */
	enum health_mode mode;        /* told until there is one to judge by */
	bool remediate;               /* open the remediation stream */
	const char *stream_path;      /* of its socket; NULL: where it belongs */
	gid_t stream_group;           /* whose members may read it; SOCKET_NO_GROUP: none */
	const struct endpoint *spans; /* gets a span of each episode; NULL: nobody does */
	const struct endpoint_fields *span_fields;
	bool stub;            /* made-up readings, without a recording */
	bool once;            /* one push, then the end */
	bool replay;          /* db is a finished recording: all of it, then the end */
	uint32_t replay_rate; /* calls a second */
};

/* pusher_check - settings that make no sense: -EINVAL with a sentence. */
int pusher_check(const struct pusher_settings *s, struct errinfo *reterr);

/* pusher_run - until SIGTERM or SIGINT; SIGHUP reads the certificates again. */
int pusher_run(const struct pusher_settings *s, struct errinfo *reterr);

/* pusher_probe - tries what pusher_run() would do, and sends nothing: whether the endpoint answers to its name,
 * over TLS, to the token and at the paths; whether there is a recording, and what of it would be sent. Writes
 * lines to @out. The first failure is returned, with its sentence and exit code. */
int pusher_probe(const struct pusher_settings *s, struct buf *out, struct errinfo *reterr);
