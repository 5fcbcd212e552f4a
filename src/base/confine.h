/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - what a process gives up before it touches code or data that it does not trust.
 *
 * For a process made by spawn_self(). The order matters: confine_bounding_set() needs a capability,
 * confine_user() takes it away, confine_capabilities() makes that final, and confine_life() comes
 * after them because a change of user clears what it sets. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define CONFINE_NOBODY 65534

struct confine_limits {
	uint64_t address_bytes; /* memory and mapped files; not set under sanitizers, which need
				   more */
	uint64_t file_bytes;    /* of a file that it writes */
	uint64_t open_files;
};

/* confine_limits - set them, and no core file and no locked memory. Lower ones that are in force
 * stay. */
void confine_limits(const struct confine_limits *limits);

/* confine_bounding_set - no capability can come back through an executable file. */
void confine_bounding_set(void);

/* confine_user - from root to nobody, with the one group @gid. Nothing if it is not root. */
int confine_user(gid_t gid);

/* confine_capabilities - have none, and none to be gained by any means. */
int confine_capabilities(void);

/* confine_life - die with the parent whose end of @socket is open. -ESRCH if it is gone already. */
int confine_life(int socket);
