/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - the clocks behind on-CPU samples: one on every CPU, each running the program
 * cpu_sample of the kernel half. */
#pragma once

#include "base/errinfo.h"
#include "base/macros.h"

#define SAMPLE_HZ_MAX 999

struct sample_clocks;

/* sample_clocks_open - start a clock of @hz ticks a second on every CPU that is online.
 * On success *ret is the caller's. -EPERM, or why the kernel has none. */
int sample_clocks_open(
	int prog_fd, unsigned hz, struct sample_clocks **ret, struct errinfo *reterr);
DECLARE_FREE(struct sample_clocks, sample_clocks_close)

/* sample_clocks_renew - follow CPUs that came or went since the last look: to be called now and
 * then. */
void sample_clocks_renew(struct sample_clocks *s);

/* sample_probe - can this process have such a clock? 0, -EPERM, or what the kernel says. */
int sample_probe(void);
