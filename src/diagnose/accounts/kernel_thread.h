/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_thread.h - the kernel's own threads among the culprits. By their names: a recording does not say which processes
 * are the kernel's. */
#pragma once

#include <stdbool.h>

bool kernel_thread_is(const char *comm);
