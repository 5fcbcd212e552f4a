/* SPDX-License-Identifier: Apache-2.0 */
/* flamegraph.S - what a flame graph carries in itself, as NUL-terminated texts in read-only data. */
	.section .rodata
	.global flamegraph_css
	.type flamegraph_css, %object
flamegraph_css:
	.incbin "flamegraph.css"
	.byte 0
	.size flamegraph_css, . - flamegraph_css

	.global flamegraph_js
	.type flamegraph_js, %object
flamegraph_js:
	.incbin "flamegraph.js"
	.byte 0
	.size flamegraph_js, . - flamegraph_js

	.section .note.GNU-stack, "", %progbits
