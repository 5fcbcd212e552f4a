/* SPDX-License-Identifier: Apache-2.0 */
/* home.c - see home.h. */
#include "diagnose/rows/home.h"

#include <stdio.h>
#include <string.h>

#include "base/search.h"

const struct process_home *home_of(const struct recording *rec, uint32_t pid)
{
	size_t at = LOWER_BOUND(i, rec->home_count, rec->homes[i].pid < pid);

	return at < rec->home_count && rec->homes[at].pid == pid ? &rec->homes[at] : NULL;
}

bool home_is_mps_server(const struct recording *rec, uint32_t pid)
{
	const struct process_home *h = home_of(rec, pid);

	return h && !strncmp(h->comm, "nvidia-cuda-mps", strlen("nvidia-cuda-mps"));
}

static bool is_group(const struct process_home *h)
{
	return h->cgroup_path[0] && strcmp(h->cgroup_path, "/") != 0;
}

bool home_apart(const struct process_home *a, const struct process_home *b)
{
	if (a->container_id[0] || b->container_id[0])
		return strcmp(a->container_id, b->container_id) != 0;
	return is_group(a) && is_group(b) && strcmp(a->cgroup_path, b->cgroup_path) != 0;
}

void home_text(const struct process_home *h, char *out, size_t size)
{
	if (h->pod[0])
		snprintf(out, size, "pod %s", h->pod);
	else if (h->container_id[0])
		snprintf(out, size, "container %.12s", h->container_id);
	else
		snprintf(out, size, "group %s", is_group(h) ? h->cgroup_path : "of the host");
}
