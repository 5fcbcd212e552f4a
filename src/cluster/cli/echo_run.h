/* SPDX-License-Identifier: Apache-2.0 */
/* echo_run.h - the cluster's memory, alone (`echo`) or with the fleet (`all`), until a signal ends it.
 *
 * SIGHUP reads certificates, tokens and rates again; what cannot be read stays as it was. SIGTERM and SIGINT:
 * who comes is told to come again, what was acknowledged is stored; a second one does not wait. */
#pragma once

#include "cluster/cli/flags.h"

struct echo_run_settings {
	const struct echo_flags *echo;
	const struct fleet_flags *fleet; /* NULL: without one */
	struct listen_addresses at;
};

int echo_run(const struct echo_run_settings *s, struct errinfo *reterr);
