/* SPDX-License-Identifier: Apache-2.0 */
/* library_points.h - what is to be probed in a library file, and where in it that is. Files are looked at through a
 * descriptor that stays the caller's. */
#pragma once

#include "record/attach/uprobe.h"
#include "base/errinfo.h"
#include "model/identity.h"

struct library_points {
	struct uprobe_point points[UPROBE_POINTS_MAX];
	size_t count;
	struct wire_nccl_layout layout; /* of TARGET_NCCL */
};

/* library_points_known - are there functions to probe in files of @kind? */
bool library_points_known(enum target_library_kind kind);
/* library_points_are_marks - whether what is found there are marks, for uprobe_attach_marks(). */
bool library_points_are_marks(enum target_library_kind kind);

/* library_points_are_alike - whether the same functions are probed in files of both kinds. */
bool library_points_are_alike(enum target_library_kind a, enum target_library_kind b);

/* library_points_find - of the file @fd, which sentences call @name and cookies @number. -ENOENT: it has none of them. */
int library_points_find(enum target_library_kind kind, int fd, const char *name, unsigned number,
	struct library_points *ret, struct errinfo *reterr);

/* library_points_names - the places at which kernels get their names. -ENOENT: it has none. */
int library_points_names(enum target_library_kind kind, int fd, const char *name,
	struct library_points *ret, struct errinfo *reterr);
