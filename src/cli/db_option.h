/* SPDX-License-Identifier: Apache-2.0 */
/* db_option.h - what --db means to the commands that read a recording. */
#pragma once

#include "base/errinfo.h"

/* db_option_path - the recording to read: @given, or the default one (*ret_default is then the
 * caller's to free). -ENOENT with a sentence if nothing has been recorded there yet. */
int db_option_path(
	const char *given, char **ret_default, const char **ret_path, struct errinfo *reterr);
