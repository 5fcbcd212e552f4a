/* SPDX-License-Identifier: Apache-2.0 */
/* home.h - where processes live: containers and control groups. */
#pragma once

#include "diagnose/recording.h"

/* home_of - NULL: not known. */
const struct process_home *home_of(const struct recording *rec, uint32_t pid);

/* home_is_mps_server - whether @pid is the server through which MPS's clients use a GPU: it does nothing of its own there. */
bool home_is_mps_server(const struct recording *rec, uint32_t pid);

/* home_apart - whether they live in different containers, or control groups where there are none.
 * The root group is nobody's: what runs there is outside of containers only if the other is inside
 * of one. */
bool home_apart(const struct process_home *a, const struct process_home *b);

/* home_text - "pod train-7", "container 0123456789ab", "group /system.slice/cron". */
void home_text(const struct process_home *h, char *out, size_t size);
