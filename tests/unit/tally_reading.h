/* SPDX-License-Identifier: Apache-2.0 */
/* tally_reading.h - for tests of the stand-in libraries as a whole: a tally of the test's own, and
 * reading it. The libraries read their settings when they are loaded, so the test starts itself
 * again with them in the environment. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cuda_sim.h"

static inline void tally_settings_make(const char *test, char **argv)
{
	char path[64];

	if (getenv("SIM_TALLY"))
		return;
	snprintf(path, sizeof(path), "/tmp/%s.%d", test, getpid());
	setenv("SIM_TALLY", path, 1);
	setenv("SIM_INIT_NS", "0", 1);
	setenv("SIM_KERNEL_NS", "0", 1);
	setenv("SIM_DEVICE_MEM", "1073741824", 1);
	execv("/proc/self/exe", argv);
	abort();
}

/* tally_read - column @column (calls is 0) of @symbol, written just now. */
static inline uint64_t tally_read(const char *suffix, const char *symbol, int column)
{
	unsigned long long v[7];
	char path[128], name[64];
	FILE *f;

	assert_int_equal(sim_tally_write(), 0);
	snprintf(path, sizeof(path), "%s.%s", getenv("SIM_TALLY"), suffix);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "# %*[^\n]"), 0);
	while (fscanf(f, "%63s %llu %llu %llu %llu %llu %llu %llu", name, &v[0], &v[1], &v[2],
		       &v[3], &v[4], &v[5], &v[6]) == 8) {
		if (strcmp(name, symbol) == 0) {
			fclose(f);
			return v[column];
		}
	}
	fclose(f);
	fail_msg("no %s in %s", symbol, path);
	return 0;
}

static inline void tally_files_remove(void)
{
	static const char *const suffixes[] = {"cudart", "cuda", "libnccl", "nccl"};
	char path[128];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(path, sizeof(path), "%s.%s", getenv("SIM_TALLY"), suffixes[i]);
		unlink(path);
	}
}
