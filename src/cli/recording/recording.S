/* SPDX-License-Identifier: Apache-2.0 */
/* recording.S - the recordings as NUL-terminated texts in read-only data. */
	.section .rodata
	.macro recording name, file
	.global recording_\name
	.type recording_\name, %object
recording_\name:
	.incbin "\file"
	.byte 0
	.size recording_\name, . - recording_\name
	.endm

	recording incident, "incident.sql"
	recording cold_start, "cold-start.sql"
	recording memcpy_bottleneck, "memcpy-bottleneck.sql"
	recording periodic_spike, "periodic-spike.sql"
	recording cpu_contention, "cpu-contention.sql"
	recording gpu_steal, "gpu-steal.sql"

	.section .note.GNU-stack, "", %progbits
