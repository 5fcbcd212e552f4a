/* SPDX-License-Identifier: Apache-2.0 */
/* health_file.h - the baseline in a file, so that a restart of the agent need not calibrate again.
 *
 * One JSON object: schema_version, saved_at (RFC 3339), sample_count, fast_alpha, floor_alpha,
 * fast_ema and hard_floor, each with Throughput, Compute, Memory and CPU. */
#pragma once

#include "node/health/health_baseline.h"
#include "base/clock.h"

#define HEALTH_FILE_SCHEMA  1
#define HEALTH_FILE_BYTES   (1u << 20)
#define HEALTH_FILE_AGE_NS  (600 * (int64_t)NS_PER_S) /* by default, older ones tell nothing */
#define HEALTH_FILE_DEFAULT "/var/lib/ingero/health-baseline.json"

/* X(NAME, id) */
#define HEALTH_LOADS(X)                                                                            \
	X(MISSING, "missing")                                                                      \
	X(FRESH, "fresh")           /* *ret is filled in */                                        \
	X(STALE, "stale")           /* too old, or saved in the future: deleted */                 \
	X(CORRUPT, "corrupt")       /* moved aside to NAME.corrupt-TIME */                         \
	X(UNREADABLE, "unreadable") /* left alone */                                               \
	X(NEWER, "newer_version")   /* left alone, for the version that wrote it */                \
	X(OTHER, "other_settings")  /* averages of another alpha: left alone */

enum health_load {
#define X(NAME, ...) HEALTH_LOAD_##NAME,
	HEALTH_LOADS(X)
#undef X
};
const char *health_load_id(enum health_load l);

/* health_file_load - one older than @age_ns is stale. */
enum health_load health_file_load(const char *path, const struct health_baseline_settings *s,
	int64_t age_ns, wall_time now, struct health_baseline *ret);

/* health_file_save - replaces the file, so that a reader sees the old one or the new; makes its folder.
 * Nothing is written before the baseline is warm: -EAGAIN. */
int health_file_save(const char *path, const struct health_baseline *b,
	const struct health_baseline_settings *s, wall_time now, struct errinfo *reterr);
