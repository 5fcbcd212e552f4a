/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - from a loaded recording to printed incidents; shared by `explain` and `demo`. */
#pragma once

#include "answer/explain.h"
#include "base/buf.h"
#include "base/errinfo.h"
#include "cli/progress.h"

struct explain_style {
	bool json;
	bool colour;
	int columns;               /* of the terminal; 0: none */
	bool verbose;              /* with timeline, figures and evidence */
	const char *again;         /* as in struct report_scope */
	bool labels;               /* say which held during each incident */
	bool stacks;               /* print the stacks that matter */
	struct buf *text;          /* to append to, instead of printing; may be NULL */
	struct json_writer *into;  /* with json: an open array to add to, instead of printing */
	struct progress *progress; /* ended before anything is printed; may be NULL */
};

/* explain_style_detect - colour on a terminal behind @fd unless NO_COLOR is set, and its width. */
struct explain_style explain_style_detect(int fd);

struct json_writer;

/* explain_content - find the incidents of @c and print them to stdout. */
int explain_content(
	const struct nodedb_content *c, struct explain_style style, struct errinfo *reterr);

/* explain_chains - print the verdicts that are stored in the file. */
int explain_chains(
	const struct nodedb_content *c, struct explain_style style, struct errinfo *reterr);
