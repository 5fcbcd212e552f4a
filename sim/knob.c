// SPDX-License-Identifier: Apache-2.0
/* knob.c - reads the environment once. Each library and program has its own copy of this module;
 * they agree because they read the same environment. After the first knob_get() the settings never
 * change, so that they are read without a lock. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "knob.h"

static struct knobs settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct knob_row {
	const char *name;
	double initial, least, most;
	const char *meaning;
} rows[] = {
#define X(field, name, initial, least, most, meaning) {name, initial, least, most, meaning},
	SIM_KNOBS(X)
#undef X
};

int knob_parse(const char *text, double least, double most, uint64_t *ret_value)
{
	char *end;
	double v;

	v = strtod(text, &end);
	if (end == text || *end || v != v)
		return -EINVAL;
	if (v < least || v > most)
		return -ERANGE;
	*ret_value = (uint64_t)v;
	return 0;
}

static uint64_t row_read(const struct knob_row *row)
{
	const char *text = getenv(row->name);
	uint64_t v = (uint64_t)row->initial;

	if (text && knob_parse(text, row->least, row->most, &v) < 0)
		fprintf(stderr, "sim: %s must be a number from %.0f to %.0f; using %.0f\n",
			row->name, row->least, row->most, row->initial);
	return v;
}

static void settings_read(void)
{
	const struct knob_row *row = rows;

#define X(field, ...) settings.field = row_read(row++);
	SIM_KNOBS(X)
#undef X
	settings.tally = getenv("SIM_TALLY");
	if (settings.tally && !*settings.tally)
		settings.tally = NULL;
}

const struct knobs *knob_get(void)
{
	pthread_once(&once, settings_read);
	return &settings;
}

void knob_print(FILE *f)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fprintf(f, "%-24s %12.0f  %s\n", rows[i].name, rows[i].initial, rows[i].meaning);
	fprintf(f, "%-24s %12s  %s\n", "SIM_NCCL_DIR", "/dev/shm",
		"where ranks of different processes meet");
	fprintf(f, "%-24s %12s  %s\n", "SIM_GPU_SHARE", "",
		"processes with the same path share a GPU; its files begin with it");
	fprintf(f, "%-24s %12s  %s\n", "SIM_TALLY", "",
		"path of the tally, %p is the process id; none without it");
}
