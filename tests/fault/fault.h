/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h - the n-th allocation fails.
 *
 * The linker leads malloc() and its like here (meson.build), for our code and for every library that
 * is linked statically: SQLite, jansson, libevent, libyaml. fault_torture() runs a scenario with the
 * first allocation failing, then the second, and so on until it gets through without a failure. Of
 * scenarios with many allocations it takes ever longer steps; FAULT=all in the environment takes every
 * one.
 *
 * To add a scenario: a function that does the work, gives everything back, and returns 0 or a
 * negative errno; a row in a test_alloc_X.c. It may return 0 although an allocation failed, if what
 * it did is right all the same: it asserts that itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* fault_arm - from now on, the @nth allocation fails (from 1), once. fault_disarm - whether it did. */
void fault_arm(uint64_t nth);
bool fault_disarm(void);

/* fault_suspend, fault_resume - around what a scenario does beside the point: its assertions. */
void fault_suspend(void);
void fault_resume(void);

uint64_t fault_allocations(void); /* since fault_arm() */

typedef int fault_scenario(void *arg);

/* fault_torture - as above. Asserts each time: 0 or -ENOMEM, no descriptor left open; the first run
 * without a failure is 0. Returns how many allocations there are. */
uint64_t fault_torture(fault_scenario *run, void *arg);
