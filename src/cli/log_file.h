/* SPDX-License-Identifier: Apache-2.0 */
/* log_file.h - the file that --log names. */
#pragma once

#include "base/errinfo.h"

/* log_file_open - appends to @path, which is made with mode 0600 if it is not there, with the rights of
 * whoever may change it. *ret is the descriptor. */
int log_file_open(const char *path, int *ret, struct errinfo *reterr);
