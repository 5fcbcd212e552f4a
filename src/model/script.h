/* SPDX-License-Identifier: Apache-2.0 */
/* script.h - what an interpreter runs, by its command line: "train.py" says more than "python3". */
#pragma once

#include <stddef.h>

#define SCRIPT_MAX 64

/* script_of - the script or module that the arguments of a process name, without its folder; "" if the program is no
 * interpreter, or runs no file. Nothing else of a command line is kept. @args: ended by NUL each, as /proc has
 * them, or by spaces, as the store has them. Returns @out. */
const char *script_of(const char *args, size_t len, char out[SCRIPT_MAX]);
