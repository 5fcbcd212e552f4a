/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - the files of the cluster's page (cluster_files.h). */
#include "base/macros.h"
#include "web/cluster/cluster_files.h"
#include "web/web.h"

#define X(symbol, ...) extern const char web_##symbol[], web_##symbol##_end[];
CLUSTER_FILES(X)
#undef X

static struct web_file files[] = {
#define X(symbol, path_, file_, type_)                                                             \
	{.path = path_, .type = type_, .data = web_##symbol, .end = web_##symbol##_end},
	CLUSTER_FILES(X)
#undef X
};

struct web_site web_cluster = {.files = files, .count = ARRAY_SIZE(files)};
