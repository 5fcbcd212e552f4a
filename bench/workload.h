/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - sim-calls as a benchmark's child: held until the probes are on, then measured. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct workload {
	pid_t pid;
	int out;                /* its standard output */
	char folder[64];        /* holds the gate */
	char path[96];          /* the gate: the child runs once this exists */
	uint64_t cpu_before_ns; /* what it had used when it was ready */
};

struct workload_result {
	double wall_ns; /* per call */
	double cpu_ns;  /* per call; preemption by others is not in it */
	uint64_t calls;
	double seconds;
};

/* workload_start - runs @program with @args (ended by NULL) and waits until it is at the gate.
 * Every function here ends the benchmark with a sentence when something fails. */
void workload_start(struct workload *w, const char *program, const char *const *args);
void workload_go(struct workload *w);

/* workload_wait - the child's own figures, after it has ended. */
struct workload_result workload_wait(struct workload *w);

/* workload_median - sorts @values. */
double workload_median(double *values, size_t count);

/* workload_need_root - a benchmark that loads BPF programs is skipped (77) without root. */
void workload_need_root(void);

void workload_die(const char *what, int err) __attribute__((noreturn));
