/* SPDX-License-Identifier: Apache-2.0 */
/* audit_private.h - what writing and verifying share. */
#pragma once

#include "cluster/tenant/audit.h"

#define AUDIT_ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define LINE_MAX_BYTES                                                                             \
	(64u << 10) /* a text of AUDIT_TEXT_MAX bytes that are all escaped, and the rest */
