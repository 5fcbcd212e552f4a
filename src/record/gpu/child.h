/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - the process that asks NVML. A stuck or dying driver stops it and nothing else.
 *
 * It is this program, executed again under the name GPU_CHILD_NAME with the socket to the agent as
 * file descriptor GPU_CHILD_FD; main() hands over to gpu_child_main() when it finds that name. So
 * it shares no memory, map or file with the agent. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/spawn.h"

#define GPU_CHILD_NAME "ingero-gpu-sampler"
#define GPU_CHILD_FD   SPAWN_SOCKET

/* How often it asks; within these. */
#define GPU_PERIOD_MIN_NS (100 * NS_PER_MS)
#define GPU_PERIOD_MAX_NS (60 * NS_PER_S)

bool gpu_child_is_meant(int argc, char **argv);

/* gpu_child_main - argv[1], if given: the library to load. Returns the exit code. */
int gpu_child_main(int argc, char **argv);
