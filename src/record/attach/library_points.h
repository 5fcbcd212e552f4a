/* SPDX-License-Identifier: Apache-2.0 */
/* library_points.h - what is to be probed in a library file, and where in it that is. Files are looked at through a
 * descriptor that stays the caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/errinfo.h"
#include "model/identity.h"
#include "record/attach/uprobe.h"
#include "record/discover/elfsym.h"
#include "record/probe/mark/mark.h"

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

/* Where in a function's first bytes a probe costs least and is still right.
 *
 * The kernel emulates a few instructions under a probe (push, nop, jumps); any other it runs out of
 * line by single steps, which costs several microseconds in a virtual machine. Some functions begin
 * with one that changes neither stack nor arguments and is followed by one that is emulated: there
 * the probe may sit behind it. Only exact matches of bytes are moved; everything else stays at the
 * start, because a return probe behind the first change of the stack overwrites a wrong slot. */

#define PROLOGUE_BYTES 16 /* as many first bytes are looked at */

/* prologue_skip - bytes to move the probe by: 0, or the length of the harmless first instruction.
 */
unsigned prologue_skip(unsigned machine, const uint8_t code[PROLOGUE_BYTES]);
