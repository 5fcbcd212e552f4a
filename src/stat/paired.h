/* SPDX-License-Identifier: Apache-2.0 */
/* paired.h - what a treatment changes, from pairs of measurements with and without it. */
#pragma once

#include <stddef.h>

#define PAIRED_MAX 32 /* pairs; later ones would add little */
#define PAIRED_MIN 8  /* below this an interval says nothing */

struct paired {
	double middle;    /* the estimate */
	double low, high; /* the truth is between, in 95 of 100 cases */
};

/* paired_estimate - from @n differences (with minus without). They need not be normal, only as
 * often above the truth as below it by the same amount, which a random order within each pair
 * provides. Returns 0, or -ERANGE unless PAIRED_MIN <= @n <= PAIRED_MAX. */
int paired_estimate(const double *differences, size_t n, struct paired *ret);
