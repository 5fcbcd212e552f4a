/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names.h - which kernels the launches were of that an incident is about, in its sentences. */
#pragma once

#include "answer/explain.h"

/* kernel_names_put - adds to the explanations of @e, found in @c, the kernels of the launches among their
 * evidence. A recording without names changes nothing. */
void kernel_names_put(struct nodedb_content *c, struct explanation *e);
