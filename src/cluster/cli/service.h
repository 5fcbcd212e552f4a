/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - the cluster service: receivers, core, answers and notices on one loop.
 *
 * What comes in goes to the core at once; a timer gives it the time and takes its notices. The clock
 * never goes back, whatever the machine's does (service_clock). */
#pragma once

#include <limits.h>

#include "base/path_user.h"
#include "cluster/answer/api_server.h"
#include "cluster/detect/fleet.h"
#include "cluster/ingest/receiver.h"
#include "model/metric.h"
#include "net/server/server.h"

/* With whose rights the cluster's services use files, and what they give up before the first
 * stranger speaks: docs/adr/0013-rights-to-files.md, docs/adr/0022-cluster-as-root.md. */

#define SERVICE_PATHS_MAX 24

struct service_rights {
	const char *writes[SERVICE_PATHS_MAX]; /* folders, made if they are missing */
	size_t write_count;
	/* Files that are read again, and such as are written, with the rights that each path has: who
	 * opens them takes these (path_user_enter()). */
	const char *reads[SERVICE_PATHS_MAX];
	size_t read_count;
	const char *own[SERVICE_PATHS_MAX];
	size_t own_count;
	char file_folder[PATH_MAX]; /* of service_rights_write_file() */
	bool sql;      /* begins processes for SQL on DuckDB, whose library is loaded */
	bool low_port; /* listens on a port below 1024 */
};

/* service_rights_write, service_rights_read, service_rights_own - one more; NULL is none. One over the
 * ceiling is left out, and refused by the kernel when it is used. */
void service_rights_write(struct service_rights *s, const char *folder);
/* service_rights_write_file - the folder of the file @path; of one file. */
void service_rights_write_file(struct service_rights *s, const char *path);
void service_rights_read(struct service_rights *s, const char *path);
void service_rights_own(struct service_rights *s, const char *path);

/* service_rights_enter - from here to path_user_leave() this thread uses files with the rights of whoever may change
 * names in the @count @folders, which has to be one user. Nothing unless root runs. -EPERM with a sentence. */
int service_rights_enter(const char *const *folders, size_t count, struct path_user *ret_before,
	struct errinfo *reterr);

/* service_rights_files - the same of s->writes, which are made. */
int service_rights_files(
	const struct service_rights *s, struct path_user *ret_before, struct errinfo *reterr);

/* service_rights_confine - then everything that @s does not name is given up for good. To be called while there is
 * one thread. */
void service_rights_confine(const struct service_rights *s);

/* Who is told by the cluster service: the log, receivers of alerts, the remediation stream,
 * and receivers of OTLP to whom everything is forwarded. Belongs to the loop's thread. */

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
DECLARE_FREE(struct outlets, outlets_free)

void outlets_tell(struct outlets *o, const struct fleet_notice *n);

bool outlets_want_requests(const struct outlets *o); /* somebody wants outlets_forward() */
void outlets_forward(struct outlets *o, const struct receiver_request *q);

/* outlets_finish - @fn runs once, when everybody has been told, or an attempt has failed. */
void outlets_finish(struct outlets *o, loop_fn *fn, void *arg);

void outlets_metrics(const struct outlets *o, struct metric_set *s);

struct service;

/* How it hands over what is to be kept, without knowing the store. */
struct keeping { /* all run on the loop's thread; keep NULL: nothing is kept */
	void *arg;
	/* As receiver_sink.keep. */
	void (*keep)(
		void *arg, const struct receiver_request *q, keeper_done *done, void *done_arg);
	/* As receiver_sink.admit and receiver_sink.may_send. */
	int (*admit)(void *arg, uint64_t credential, char *why, size_t size);
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
DECLARE_FREE(struct service, service_free)

/* service_addresses - where it listens; NULL: it does not. */
struct service_addresses {
	const char *grpc, *http, *api, *health;
};
struct service_addresses service_addresses(const struct service *s);

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
