/* SPDX-License-Identifier: Apache-2.0 */
/* spread.h - median and spread of a few or many values, as bad ones among them cannot move them. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SPREAD_MIN 3 /* values; of two that differ, who is the ordinary one? */

struct spread {
	double median, mad; /* of an even number the median is the mean of the middle two */
	double sigma; /* an estimate of the standard deviation that a few wild values cannot move */
	size_t count;
};

void spread_sort(double *values, size_t n);
/* spread_of - of @sorted values; @mad_floor is the least MAD that sigma is computed from. sigma holds
 * the factor for small samples, so that k sigma below the median are as rare among @n normal values as
 * among many. */
struct spread spread_of(const double *sorted, size_t n, double k, double mad_floor);
double spread_median(const double *sorted, size_t n);

/* spread_factor - by how much 1.4826 MAD of @n values is to be stretched; 1 for many. 1 <= k <= 4. */
double spread_factor(size_t n, double k);
/* spread_z - how many sigmas a normal value exceeds with probability @p, 0 < p < 0.5. */
double spread_z(double p);

/* spread_is_split - half of the values or more are far below what the upper half is like. */
bool spread_is_split(const double *sorted, size_t n, double mad_floor);
