/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - uprobe links of newer kernels, which the installed kernel headers do not know yet. */
#pragma once

#include <stdint.h>

#define LINK_UPROBE_MULTI   48 /* enum bpf_attach_type, kernel 6.6 */
#define LINK_UPROBE_SESSION 57 /* kernel 6.13 */
#define LINK_MULTI_RETURN   1  /* flag: the program runs at return */

/* What BPF_LINK_CREATE takes for them. */
struct link_uprobe_multi {
	uint32_t prog_fd;
	uint32_t target_fd; /* 0 */
	uint32_t attach_type;
	uint32_t link_flags; /* 0 */
	uint64_t path;       /* of the file, const char * */
	uint64_t offsets;    /* file offsets, const uint64_t * */
	uint64_t ref_ctr_offsets;
	uint64_t cookies; /* const uint64_t * */
	uint32_t cnt;
	uint32_t flags; /* 0 or LINK_MULTI_RETURN */
	uint32_t pid;   /* 0: every process that maps the file */
	uint32_t pad;
};
