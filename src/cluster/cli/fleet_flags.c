/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_flags.c - see fleet_flags.h. */
#include "cluster/cli/fleet_flags.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

int fleet_flags_check(const struct fleet_flags *f, struct errinfo *reterr)
{
	if (f->node_page && strncmp(f->node_page, "https://", 8) != 0 &&
		strncmp(f->node_page, "http://", 7) != 0)
		return errinfo_set(reterr, -EINVAL,
			"--node-page: give an address that begins with https:// or http://, for example 'https://{node}:8080/'");
	if (f->forward_spool && !f->forward)
		return errinfo_set(reterr, -EINVAL, "--forward-spool needs --forward");
	return 0;
}

static struct fleet_settings core_settings(const struct fleet_flags *f)
{
	struct fleet_settings s = fleet_defaults;

	s.nodes = nodes_defaults;
	s.calls = calls_defaults;
	s.nodes.k = f->k;
	s.nodes.ema_alpha = f->ema_alpha;
	s.nodes.interval_ns = f->interval_ns;
	s.nodes.ttl_multiplier = (uint32_t)f->ttl_multiplier;
	s.nodes.quorum = (uint32_t)f->quorum;
	s.nodes.nodes_max = (uint32_t)f->max_nodes;
	s.nodes.nodes_per_token = (uint32_t)f->nodes_per_token;
	s.provider = f->provider;
	s.seed = (uint64_t)wall_now().ns;
	return s;
}

struct service_settings fleet_flags_settings(const struct fleet_flags *f)
{
	return (struct service_settings){.fleet = core_settings(f),
		.rates = f->rates,
		.snapshot = f->snapshot,
		.node_page = f->node_page};
}

struct outlets_settings fleet_flags_outlets(const struct fleet_flags *f)
{
	return (struct outlets_settings){.config = f->alerts,
		.forward = f->forward,
		.forward_spool = f->forward_spool,
		.remediate = f->remediate};
}

void fleet_flags_rights(const struct fleet_flags *f, struct service_rights *rights)
{
	service_rights_write_file(rights, f->snapshot);
	service_rights_read(rights, f->rates);
}
