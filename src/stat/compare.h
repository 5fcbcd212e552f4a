/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - whether two sets of measurements differ by more than noise. Two tests, each wrong in one of 100 cases:
 * Welch's on the means, which sees a few slow ones among many, and Mann and Whitney's on the order, which a few wild
 * ones cannot blind. Either is enough. */
#pragma once

#include <stddef.h>

#define COMPARE_MIN 3 /* values on either side; below, nothing can be said */

enum compare_verdict {
	COMPARE_UNKNOWN, /* too few values */
	COMPARE_NOISE,
	COMPARE_MORE, /* the second is larger */
	COMPARE_LESS,
};

struct compare_set { /* what is known of one set */
	double count, mean, variance;
};

struct compared {
	enum compare_verdict verdict;
	double difference; /* of the means: second - first */
	double margin;     /* of Welch's interval, which holds the true difference */
};

/* compare_sets - Welch's test alone. A difference below @least is noise, however sure it is. */
struct compared compare_sets(
	const struct compare_set *a, const struct compare_set *b, double least);

/* compare_values - both tests, of @n values @a and @m values @b, which are put in order. Of eight or more the outermost
 * one at either end counts as its neighbour: a single wild value (the first step, which compiles) does not decide. */
struct compared compare_values(double *a, size_t n, double *b, size_t m, double least);

/* compare_part - whether part of one set lies far beyond all of the other, as what happens in half of the time does:
 * two values or more, each twice the other's largest and @least more, and the means likewise. Both sets are in
 * order, as compare_values() leaves them. */
enum compare_verdict compare_part(
	const double *a, size_t n, const double *b, size_t m, double least);

/* What a treatment changes, from pairs of measurements with and without it. */

#define PAIRED_MAX 32 /* pairs; later ones would add little */

struct paired {
	double middle;    /* the estimate */
	double low, high; /* the truth is between, in 95 of 100 cases */
};

/* paired_estimate - from @n differences (with minus without). They need not be normal, only as
 * often above the truth as below it by the same amount, which a random order within each pair
 * provides. Returns 0, or -ERANGE unless PAIRED_MIN <= @n <= PAIRED_MAX. */
int paired_estimate(const double *differences, size_t n, struct paired *ret);
