/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - what the stand-in's programs share: time, the start gate, options, the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern volatile int workload_stopped; /* set by SIGTERM and SIGINT */

/* workload_catch_signals - let SIGTERM and SIGINT end the program orderly. */
void workload_catch_signals(void);

uint64_t workload_now_ns(void);
void workload_sleep_until(uint64_t mono_ns);

/* workload_burn - use the CPU for @cpu_ns of this thread's own CPU time. */
void workload_burn(uint64_t cpu_ns);

/* workload_gate - create FILE.ready and wait until FILE exists (or a signal came). NULL: at once.
 */
void workload_gate(const char *file);

/* workload_number - an option's number (20e9 is fine); a bad one ends the program with status 64.
 */
uint64_t workload_number(const char *option, const char *text, double least, double most);

/* workload_percentile - nearest rank of @count values, which get sorted; 0 if there are none. */
uint64_t workload_percentile(uint64_t *values, size_t count, double percent);
