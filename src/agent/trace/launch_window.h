/* SPDX-License-Identifier: Apache-2.0 */
/* launch_window.h - when launches were probed, and so how many launches one that was seen stands
 * for. Under load the governor has them probed only part of the time. Pure: the caller brings the
 * time.
 *
 * What counts is the time in which launches were really begun to be seen: attaching and detaching
 * take tens of milliseconds themselves, so the planned share is not the true one. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

struct launch_window {
	bool is_open;         /* the probes that the governor may take away are there */
	mono_time since;      /* when it was last opened, or read while open */
	uint64_t seen_ns;     /* open time before that which is not accounted for */
	mono_time until;      /* when it was last closed */
	mono_time counted_to; /* launches are accounted for up to here */
};

/* launch_window_init - open from @now on. */
void launch_window_init(struct launch_window *w, mono_time now);

void launch_window_open(struct launch_window *w, mono_time now);
void launch_window_close(struct launch_window *w, mono_time now);

/* launch_window_weight - how many launches each of those stands for that were seen since the last
 * call: the time in which the window was open stands for all the time since launches were last
 * seen. @planned: what the governor meant, for a window too short to speak for itself. */
double launch_window_weight(struct launch_window *w, double planned, mono_time now);
