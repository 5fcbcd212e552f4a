/* SPDX-License-Identifier: Apache-2.0 */
#include "model/kernel.h"

#include "base/search.h"

/* The last row that holds at @ns; if none does yet, the first. */
const struct kernel_use *kernel_use_find(
	const struct kernel_use *rows, size_t count, uint32_t pid, uint64_t function, int64_t ns)
{
	const struct kernel_use *found = NULL;

	for (size_t at = LOWER_BOUND(i, count,
		     rows[i].pid < pid || (rows[i].pid == pid && rows[i].function < function));
		at < count; at++) {
		const struct kernel_use *k = &rows[at];

		if (k->pid != pid || k->function != function || (found && k->since.ns > ns))
			break;
		found = k;
	}
	return found;
}
