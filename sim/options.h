/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - described options of the stand-in's programs: parsing and --help from one table. */
#pragma once

#include <stddef.h>

enum option_type {
	OPTION_NUMBER, /* uint64_t */
	OPTION_TEXT,   /* const char * */
	OPTION_SWITCH, /* bool */
	OPTION_MAYBE,  /* uint64_t: --x alone stores `alone`, --x=N stores N */
};

struct option_row {
	const char *name; /* NULL ends the table */
	enum option_type type;
	size_t offset; /* of the field in the settings */
	const char *help;
	double least, most;
	unsigned long long alone;
};

/* options_parse - fill @settings. --help prints the table and ends the program; a mistake ends it
 * with status 64. */
void options_parse(
	const struct option_row *rows, int argc, char **argv, const char *summary, void *settings);
