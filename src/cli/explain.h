/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - from a loaded recording to printed incidents; shared by `explain` and `demo`. */
#pragma once

#include <stdbool.h>

#include "agent/store/nodedb.h"
#include "base/errinfo.h"

struct explain_style {
	bool json;
	bool colour;
	bool labels; /* say which held during each incident */
};

/* explain_wants_colour - a terminal behind @fd, and NO_COLOR is not set. */
bool explain_wants_colour(int fd);

/* explain_content - find the incidents of @c and print them to stdout. */
int explain_content(
	const struct nodedb_content *c, struct explain_style style, struct errinfo *reterr);

/* explain_chains - print the verdicts that are stored in the file. */
int explain_chains(
	const struct nodedb_content *c, struct explain_style style, struct errinfo *reterr);
