/* SPDX-License-Identifier: Apache-2.0 */
/* recording.h - recorded runs that travel inside the program, as SQL text for nodedb_read_sql(). */
#pragma once

extern const char recording_incident[], recording_cold_start[], recording_memcpy_bottleneck[],
	recording_periodic_spike[], recording_cpu_contention[], recording_gpu_steal[];
