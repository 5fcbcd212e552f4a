/* SPDX-License-Identifier: Apache-2.0 */
/* db_option.h - what --db and --since mean to the commands that read a recording. */
#pragma once

#include "agent/store/nodedb.h"

/* db_option_path - the recording to read: @given, or the default one (*ret_default is then the
 * caller's to free). -ENOENT with a sentence if nothing has been recorded there yet. */
int db_option_path(
	const char *given, char **ret_default, const char **ret_path, struct errinfo *reterr);

/* db_option_since - sets @f to what is at most @since_ns older than the newest event; 0: no limit.
 */
int db_option_since(
	const char *path, uint64_t since_ns, struct nodedb_filter *f, struct errinfo *reterr);
