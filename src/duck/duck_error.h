/* SPDX-License-Identifier: Apache-2.0 */
/* duck_error.h - DuckDB's words as an errno and a sentence of one line. */
#pragma once

#include "base/errinfo.h"

int duck_error(const char *message, struct errinfo *reterr);
