/* SPDX-License-Identifier: Apache-2.0 */
/* recording.S - the recordings, packed by gzip, in read-only data: each a struct nodedb_packed. */
	.macro recording name, file
	.section .rodata
text_\name:
	.incbin "\file"
end_\name:
	.section .data.rel.ro, "aw"
	.balign 8
	.global recording_\name
	.type recording_\name, %object
recording_\name:
	.quad text_\name
	.quad end_\name - text_\name
	.size recording_\name, . - recording_\name
	.endm

	recording incident, "incident.sql.gz"
	recording cold_start, "cold-start.sql.gz"
	recording memcpy_bottleneck, "memcpy-bottleneck.sql.gz"
	recording periodic_spike, "periodic-spike.sql.gz"
	recording cpu_contention, "cpu-contention.sql.gz"
	recording gpu_steal, "gpu-steal.sql.gz"

	.section .note.GNU-stack, "", %progbits
