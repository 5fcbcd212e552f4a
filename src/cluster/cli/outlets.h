/* SPDX-License-Identifier: Apache-2.0 */
/* outlets.h - who is told by the cluster service: the log, receivers of alerts, the remediation stream,
 * and receivers of OTLP to whom everything is forwarded. Belongs to the loop's thread. */
#pragma once

#include "cluster/cli/service_rights.h"
#include "cluster/detect/fleet.h"
#include "cluster/ingest/receiver.h"
#include "model/metric.h"

struct outlets_settings {
	const char *config;        /* file of alerts and targets (notify_config.h); NULL: none */
	const char *forward;       /* one more target; NULL: none */
	const char *forward_spool; /* its folder; NULL: 16 MiB of memory */
	bool remediate;            /* open the remediation stream */
};

struct outlets;

/* outlets_new - reads the file; what @s points to outlives it. */
int outlets_new(struct loop *l, const struct outlets_settings *s, struct outlets **ret,
	struct errinfo *reterr);

/* outlets_rights - adds the folders that will be written. */
void outlets_rights(const struct outlets *o, struct service_rights *rights);

/* outlets_open - opens spools and the socket. */
int outlets_open(struct outlets *o, struct errinfo *reterr);
void outlets_free(struct outlets *o);
DEFINE_CLEANUP(struct outlets *, outlets_free)

void outlets_tell(struct outlets *o, const struct fleet_notice *n);

bool outlets_want_requests(const struct outlets *o); /* somebody wants outlets_forward() */
void outlets_forward(struct outlets *o, const struct receiver_request *q);

/* outlets_finish - @fn runs once, when everybody has been told, or an attempt has failed. */
void outlets_finish(struct outlets *o, loop_fn *fn, void *arg);

void outlets_metrics(const struct outlets *o, struct metric_set *s);
