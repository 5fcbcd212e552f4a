/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h - how the programs of tests wait for the tracer and are ended: GATE.ready says that they
 * are there, GATE that they may begin, GATE.end that they may stop. Rounds are a few ms apart and
 * cease by themselves after a while. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define GATE_ROUND_US   4000
#define GATE_PATIENCE_S 40

static inline int gate_is_there(const char *gate, const char *suffix)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", gate, suffix);
	return access(path, F_OK) == 0;
}

static inline void gate_make(const char *gate, const char *suffix)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s%s", gate, suffix);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static inline void gate_wait(const char *gate)
{
	gate_make(gate, ".ready");
	while (!gate_is_there(gate, ""))
		usleep(2000);
}

/* gate_round - whether there is to be another one; waits a little. */
static inline int gate_round(const char *gate)
{
	static time_t begun;

	if (!begun)
		begun = time(NULL);
	usleep(GATE_ROUND_US);
	return time(NULL) - begun < GATE_PATIENCE_S && !gate_is_there(gate, ".end");
}
