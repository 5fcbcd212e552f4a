/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - the fleet, the cluster's memory, or both (`fleet`, `echo`, `all`), until a signal ends them.
 *
 * SIGHUP reads certificates, tokens and rates again; what cannot be read stays as it was. SIGTERM and SIGINT let
 * replies under way end and write the snapshot; with a memory who comes is told to come again, and what was
 * acknowledged is stored; a second one does not wait. */
#pragma once

#include "cluster/cli/flags.h"

struct services_settings {
	const struct echo_flags *echo;   /* NULL: no memory */
	const struct fleet_flags *fleet; /* NULL: no fleet */
	const struct access_flags *access;
	struct listen_addresses at;
};

/* services_run - the exit code, after saying what went wrong. */
int services_run(const struct services_settings *s);
