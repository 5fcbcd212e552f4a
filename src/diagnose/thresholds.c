/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/thresholds.h"

const double thresholds_default[THRESHOLD_COUNT] = {
#define X(NAME, value, ...) value,
	THRESHOLDS(X)
#undef X
};

const double *thresholds = thresholds_default;
