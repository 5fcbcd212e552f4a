/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/compose/severity.h"

#define HIGH_SHARE   0.10
#define MEDIUM_SHARE 0.03
#define WHOLE_HIGH   0.30
#define WHOLE_MEDIUM 0.15
#define HIGH_SURE    0.6
#define MEDIUM_SURE  0.4

enum severity severity_of(double share, double confidence, bool is_whole)
{
	if (share >= (is_whole ? WHOLE_HIGH : HIGH_SHARE) && confidence >= HIGH_SURE)
		return SEVERITY_HIGH;
	if (share >= (is_whole ? WHOLE_MEDIUM : MEDIUM_SHARE) && confidence >= MEDIUM_SURE)
		return SEVERITY_MEDIUM;
	return SEVERITY_LOW;
}
