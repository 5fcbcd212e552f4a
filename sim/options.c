// SPDX-License-Identifier: Apache-2.0
/* options.c - getopt_long driven by a described table. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "workload.h"

#define MAX_ROWS 40

static void help_print(const struct option_row *rows, const char *summary)
{
	static const char *const values[] = {" N", " TEXT", "", "[=N]"};
	char left[64];

	printf("%s - %s\n\n", program_invocation_short_name, summary);
	for (; rows->name; rows++) {
		snprintf(left, sizeof(left), "--%s%s", rows->name, values[rows->type]);
		printf("  %-24s %s\n", left, rows->help);
	}
}

static void row_store(const struct option_row *row, const char *text, void *settings)
{
	char *field = (char *)settings + row->offset;

	switch (row->type) {
	case OPTION_SWITCH: *(bool *)field = true; break;
	case OPTION_TEXT: *(const char **)field = text; break;
	case OPTION_MAYBE:
	case OPTION_NUMBER:
		*(uint64_t *)field =
			text ? workload_number(row->name, text, row->least, row->most) : row->alone;
		break;
	}
}

void options_parse(
	const struct option_row *rows, int argc, char **argv, const char *summary, void *settings)
{
	static const int wants[] = {
		[OPTION_NUMBER] = required_argument,
		[OPTION_TEXT] = required_argument,
		[OPTION_SWITCH] = no_argument,
		[OPTION_MAYBE] = optional_argument,
	};
	struct option longs[MAX_ROWS + 2] = {{"help", no_argument, NULL, 1000}};
	int n, c;

	for (n = 0; rows[n].name && n < MAX_ROWS; n++)
		longs[n + 1] = (struct option){rows[n].name, wants[rows[n].type], NULL, n};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 1000) {
			help_print(rows, summary);
			exit(0);
		}
		if (c < 0 || c >= n)
			exit(64);
		row_store(&rows[c], optarg, settings);
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument %s\n", program_invocation_short_name,
			argv[optind]);
		exit(64);
	}
}
