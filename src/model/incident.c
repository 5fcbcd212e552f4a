/* SPDX-License-Identifier: Apache-2.0 */
/* incident.c - names of severities and causes, and words for confidence. */
#include "model/incident.h"

const char *severity_name(enum severity s)
{
	static const char *const names[] = {"LOW", "MEDIUM", "HIGH", "CRITICAL"};

	return names[s];
}

const char *confidence_word(double confidence)
{
	return confidence >= 0.9   ? "very likely"
	       : confidence >= 0.7 ? "likely"
	       : confidence >= 0.5 ? "probable"
	       : confidence >= 0.3 ? "possible"
				   : "uncertain";
}

const char *cause_name(enum cause c)
{
	static const char *const names[] = {
#define X(NAME, name, ...) name,
		CAUSES(X)
#undef X
	};

	return names[c];
}

const char *cause_layer(enum cause c)
{
	static const char *const layers[] = {
#define X(NAME, name, layer, ...) layer,
		CAUSES(X)
#undef X
	};

	return layers[c];
}
