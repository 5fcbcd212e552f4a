/* SPDX-License-Identifier: Apache-2.0 */
/* perfmap.h - names of generated code, from the /tmp/perf-PID.map that JIT compilers write.
 *
 * Lines "START SIZE NAME", START and SIZE in hexadecimal. Later lines win where they overlap
 * earlier ones; bad lines are skipped and counted. The file is foreign and bounded. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define PERFMAP_BYTES_MAX (64u << 20)

struct perfmap;

/* perfmap_read - all of @fd, which stays the caller's; a file longer than PERFMAP_BYTES_MAX is read
 * up to there. */
int perfmap_read(int fd, struct perfmap **ret);
void perfmap_free(struct perfmap *p);
DEFINE_CLEANUP(struct perfmap *, perfmap_free)

/* perfmap_at - the name of the code at @address; NULL if there is none. Valid until free. */
const char *perfmap_at(const struct perfmap *p, uint64_t address, uint64_t *ret_from_start);
size_t perfmap_count(const struct perfmap *p);
size_t perfmap_bad_lines(const struct perfmap *p);
