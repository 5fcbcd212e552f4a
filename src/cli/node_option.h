/* SPDX-License-Identifier: Apache-2.0 */
/* node_option.h - --node NAME: one node of a recording that holds several. */
#pragma once

#include "store/nodedb.h"

/* node_option_list - the nodes to look at: @name alone if it is given, else those of the recording;
 * none if it does not name any. *ret is the caller's (free()). -EINVAL with the names that there
 * are if @name is not among them. */
int node_option_list(const char *path, const char *name, struct nodedb_node **ret,
	size_t *ret_count, struct errinfo *reterr);
