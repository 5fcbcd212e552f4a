/* SPDX-License-Identifier: Apache-2.0 */
/* notice.h - what the cluster finds, as an alert, as a message of the remediation stream and as a row of the table
 * incidents. Pure. */
#pragma once

#include "alert/alert_body.h"
#include "cluster/detect/fleet.h"
#include "cluster/store/batch.h"
#include "stream/stream_message.h"

void notice_alert(const struct fleet_notice *n, struct alert_notice *ret);

/* notice_stream - the message for @n at @now; false: the stream has none for it, because it is about
 * no single node. Texts of *ret are of @n. The event id is the episode's, the same in all of its
 * messages. */
bool notice_stream(const struct fleet_notice *n, wall_time now, struct stream_message *ret);

void notice_row(struct batch *b, const struct fleet_notice *n, int64_t now_ns);

/* notice_row_is_due - whether an incident that lasts is to have a row again at @now_ns, after @before_ns: 1, 2,
 * 4 … s after its beginning, from a minute on every minute. */
bool notice_row_is_due(const struct fleet_episode *e, int64_t before_ns, int64_t now_ns);
