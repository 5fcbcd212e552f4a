/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/compose/severity.h"

#include "diagnose/thresholds.h"

enum severity severity_sure(enum severity severity, double confidence)
{
	enum severity most = confidence >= THRESHOLD(HIGH_SURE)     ? SEVERITY_CRITICAL
			     : confidence >= THRESHOLD(MEDIUM_SURE) ? SEVERITY_MEDIUM
								    : SEVERITY_LOW;

	return severity < most ? severity : most;
}

enum severity severity_of(double share, double confidence, bool is_whole)
{
	enum severity by_share = SEVERITY_LOW;

	if (share >= (is_whole ? THRESHOLD(WHOLE_HIGH) : THRESHOLD(HIGH_SHARE)))
		by_share = SEVERITY_HIGH;
	else if (share >= (is_whole ? THRESHOLD(WASTE) : THRESHOLD(MEDIUM_SHARE)))
		by_share = SEVERITY_MEDIUM;
	return severity_sure(by_share, confidence);
}
