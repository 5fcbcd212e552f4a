/* SPDX-License-Identifier: Apache-2.0 */
/* recording.S - the recordings as NUL-terminated texts in read-only data. */
	.section .rodata
	.global recording_incident
	.type recording_incident, %object
recording_incident:
	.incbin "incident.sql"
	.byte 0
	.size recording_incident, . - recording_incident

	.section .note.GNU-stack, "", %progbits
