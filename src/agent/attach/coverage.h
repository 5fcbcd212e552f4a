/* SPDX-License-Identifier: Apache-2.0 */
/* coverage.h - the library files that are probed, each (dev, inode) once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/probe/probe.h"
#include "base/errinfo.h"
#include "base/macros.h"
#include "model/target.h"

struct coverage_file {
	struct target_library library;
	size_t probes; /* functions probed; 0: the file could not be probed, see why */
	char why[256]; /* "" if probed */
};

struct coverage;

int coverage_new(struct probe *p, struct coverage **ret);
void coverage_free(struct coverage *c); /* detaches everything */
DEFINE_CLEANUP(struct coverage *, coverage_free)

/* coverage_add - probe the file behind @path (any path that opens it) unless it is known already.
 * Returns 1 if it is newly probed, 0 if it was known, or a negative errno with the reason, which is
 * also kept for coverage_file(): a file that failed once is not tried again. */
int coverage_add(struct coverage *c, const struct target_library *lib, const char *path,
	struct errinfo *reterr);

bool coverage_has(const struct coverage *c, const struct target_library *lib);
size_t coverage_count(const struct coverage *c);
const struct coverage_file *coverage_file(const struct coverage *c, size_t i);

/* coverage_probes - functions probed in all files of @kind. */
size_t coverage_probes(const struct coverage *c, enum target_library_kind kind);

/* coverage_launches - attach or detach the probes of launches (COOKIE_LAUNCH) of all files. Returns
 * 0 or the first failure; a file whose probes cannot come back stays without them. */
int coverage_launches(struct coverage *c, bool on);

/* coverage_detach - remove every probe; the list of files stays. */
void coverage_detach(struct coverage *c);
