/* SPDX-License-Identifier: Apache-2.0 */
/* notice_stream.h - notices of the cluster as messages of the remediation stream. Pure. */
#pragma once

#include "cluster/detect/fleet.h"
#include "stream/stream_message.h"

/* notice_stream - the message for @n at @now; false: the stream has none for it, because it is about
 * no single node. Texts of *ret are of @n. The event id is the episode's, the same in all of its
 * messages. */
bool notice_stream(const struct fleet_notice *n, wall_time now, struct stream_message *ret);
