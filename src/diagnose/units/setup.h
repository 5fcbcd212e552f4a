/* SPDX-License-Identifier: Apache-2.0 */
/* setup.h - waits for the GPU before a job's first step. */
#pragma once

#include "diagnose/units/step.h"

/* setup_count - how many of the first of @n steps, found from the waits of thread @tid, are none: a program that copies
 * its model to the GPU waits for every tensor, and launches hardly anything before it does. 0 where that is not
 * known. @scratch has room for twice @n. */
size_t setup_count(const struct recording *rec, uint32_t pid, uint32_t tid,
	const struct step *steps, size_t n, uint64_t *scratch);
