/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names.h - which kernels the launches were of that an incident is about, in its sentences. */
#pragma once

#include "agent/answer/explain.h"
#include "base/errinfo.h"

/* kernel_names_put - adds to the explanations of @e, found in @c of the recording at @path, the kernels of the
 * launches among their evidence. A recording without names changes nothing. */
int kernel_names_put(const char *path, const struct nodedb_content *c, struct explanation *e,
	struct errinfo *reterr);
