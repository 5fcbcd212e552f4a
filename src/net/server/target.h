/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - what a request line or :path asks for. */
#pragma once

#include <stddef.h>

struct target {
	char *path;      /* decoded; begins with '/', or is "*" */
	char *query;     /* as sent; "" if none */
	char *authority; /* of "http://host:port/path"; NULL if there is none */
};

/* target_parse - splits @text in place; @ret points into it. -EINVAL: not a target, bad escapes,
 * control characters, or a path that climbs ("/../"). */
int target_parse(char *text, struct target *ret);
