/* SPDX-License-Identifier: Apache-2.0 */
/* alert_queue.h - what one receiver of alerts has yet to be told, in order, and which episodes it
 * believes to last. Pure.
 *
 * A later notice of an episode replaces one that still waits. An episode that began and ended while
 * it waited is not told at all; one whose begin was told is always told its end. Whatever is not
 * told is counted. */
#pragma once

#include "base/idmap.h"
#include "base/macros.h"
#include "alert/alert_body.h"

#define ALERT_WAITING_MAX 1024
#define ALERT_OPEN_MAX    1024 /* episodes that last, at the receiver */

struct alert_item {
	struct alert_notice notice;
	struct alert_matter first; /* as it was when it was first told */
	struct alert_item *next;
};

struct alert_open {
	struct alert_matter first, now;
};

struct alert_queue {
	struct alert_item *head, *tail;
	size_t count;
	struct idmap open; /* id -> struct alert_open */
	uint64_t merged;   /* into one that waited */
	uint64_t brief;    /* notices of episodes that were over before they were told */
	uint64_t lost;     /* no room */
};

#define ALERT_QUEUE_INIT ((struct alert_queue){.open = IDMAP_INIT(ALERT_OPEN_MAX)})

void alert_queue_done(struct alert_queue *q);
void alert_queue_put(struct alert_queue *q, const struct alert_notice *n);

/* alert_queue_take - the next one, the caller's (free()); NULL: none. It counts as told. */
struct alert_item *alert_queue_take(struct alert_queue *q);

/* alert_queue_open - walks the episodes that the receiver believes to last; *cursor = 0 at first. */
const struct alert_open *alert_queue_open(const struct alert_queue *q, size_t *cursor);
