/* SPDX-License-Identifier: Apache-2.0 */
/* files.S - the dashboard's files (files.h). */
#include "web/files.h"

	.section .rodata
WEB_FILES(EMBED)

	.section .note.GNU-stack, "", %progbits
