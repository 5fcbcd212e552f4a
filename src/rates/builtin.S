/* SPDX-License-Identifier: Apache-2.0 */
/* builtin.S - gpu_rates.yaml as a text in read-only data. */
	.section .rodata
	.global rates_builtin_text
	.type rates_builtin_text, %object
rates_builtin_text:
	.incbin "gpu_rates.yaml"
	.byte 0
	.size rates_builtin_text, . - rates_builtin_text

	.section .note.GNU-stack, "", %progbits
