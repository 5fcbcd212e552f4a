/* SPDX-License-Identifier: Apache-2.0 */
/* chain_step.c - see chain_step.h. The text may have been cut anywhere by its ceiling. */
#include "answer/chain_step.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

const char *chain_step_next(const char *lines, struct chain_step *ret)
{
	size_t line = strcspn(lines, "\n"), used;

	if (!*lines)
		return NULL;
	*ret = (struct chain_step){.layer = lines, .layer_len = MIN(strcspn(lines, "\t"), line)};
	used = MIN(ret->layer_len + 1, line);
	ret->detail = lines + used;
	ret->detail_len = MIN(strcspn(ret->detail, "\t"), line - used);
	used = MIN(used + ret->detail_len + 1, line);
	ret->has_us = isdigit((unsigned char)lines[used]) && used < line;
	ret->us = ret->has_us ? strtoull(lines + used, NULL, 10) : 0;
	return lines + line + (lines[line] == '\n');
}
