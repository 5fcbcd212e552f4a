/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - the command `version`, the same in each program. */
#pragma once

#include "command/option.h"

extern const struct command cmd_version;
