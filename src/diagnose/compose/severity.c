/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/compose/severity.h"

#define HIGH_SHARE   0.10
#define MEDIUM_SHARE 0.03
#define WHOLE_HIGH   0.30
#define WHOLE_MEDIUM 0.15
#define HIGH_SURE    0.6
#define MEDIUM_SURE  0.4

enum severity severity_sure(enum severity severity, double confidence)
{
	enum severity most = confidence >= HIGH_SURE     ? SEVERITY_CRITICAL
			     : confidence >= MEDIUM_SURE ? SEVERITY_MEDIUM
							 : SEVERITY_LOW;

	return severity < most ? severity : most;
}

enum severity severity_of(double share, double confidence, bool is_whole)
{
	enum severity by_share = SEVERITY_LOW;

	if (share >= (is_whole ? WHOLE_HIGH : HIGH_SHARE))
		by_share = SEVERITY_HIGH;
	else if (share >= (is_whole ? WHOLE_MEDIUM : MEDIUM_SHARE))
		by_share = SEVERITY_MEDIUM;
	return severity_sure(by_share, confidence);
}
