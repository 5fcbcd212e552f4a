/* SPDX-License-Identifier: Apache-2.0 */
/* courtesy.h - a thread whose work can wait for some milliseconds but must be done. */
#pragma once

/* courtesy_begin - from now on the calling thread takes no CPU from a thread that runs, and gives its own to
 * one that wakes up (since Linux 6.12), without getting less of the CPUs in the long run, as it would by
 * its niceness. Where the kernel refuses, it stays as it is. */
void courtesy_begin(void);
