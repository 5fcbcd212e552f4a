/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_files.h - the one list of the files of the cluster's page: the assembler embeds them
 * (cluster_files.S), cluster.c lists them. What both pages use lies in src/web/page. */
#pragma once

#include "web/files.h"

/* X(symbol, path, file, type) */
/* clang-format off */
#define CLUSTER_FILES(X)                                                                           \
	X(cluster_index, "/", "cluster.html", WEB_HTML)                                            \
	X(cluster_style, "/cluster.css", "cluster.css", WEB_CSS)                                   \
	X(cluster_app, "/js/cluster.js", "cluster.js", WEB_JS)                                     \
	X(cluster_heat, "/js/heat.js", "heat.js", WEB_JS)                                          \
	X(cluster_links, "/js/links.js", "links.js", WEB_JS)                                       \
	X(cluster_memory, "/js/memory.js", "memory.js", WEB_JS)                                    \
	X(cluster_nodes, "/js/nodes.js", "nodes.js", WEB_JS)                                       \
	X(cluster_now, "/js/now.js", "now.js", WEB_JS)                                             \
	X(cluster_past, "/js/past.js", "past.js", WEB_JS)                                          \
	X(cluster_rank, "/js/rank.js", "rank.js", WEB_JS)                                          \
	X(cluster_common_style, "/style.css", "style.css", WEB_CSS)                                \
	X(cluster_icon, "/icon.svg", "icon.svg", WEB_SVG)                                          \
	X(cluster_chart, "/js/chart.js", "js/chart.js", WEB_JS)                                    \
	X(cluster_client, "/js/client.js", "js/client.js", WEB_JS)                                 \
	X(cluster_dom, "/js/dom.js", "js/dom.js", WEB_JS)                                          \
	X(cluster_format, "/js/format.js", "js/format.js", WEB_JS)                                 \
	X(cluster_parts, "/js/parts.js", "js/parts.js", WEB_JS)
/* clang-format on */
