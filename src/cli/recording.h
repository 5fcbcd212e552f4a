/* SPDX-License-Identifier: Apache-2.0 */
/* recording.h - recorded runs that travel inside the program, for nodedb_read_packed(). */
#pragma once

#include "store/nodedb.h"

extern const struct nodedb_packed recording_incident, recording_cold_start,
	recording_memcpy_bottleneck, recording_periodic_spike, recording_cpu_contention,
	recording_gpu_steal;
