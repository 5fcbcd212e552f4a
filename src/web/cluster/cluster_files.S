/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_files.S - the cluster page's files (cluster_files.h). */
#include "web/cluster/cluster_files.h"

	.section .rodata
CLUSTER_FILES(EMBED)

	.section .note.GNU-stack, "", %progbits
