/* SPDX-License-Identifier: Apache-2.0 */
/* port_holder.h - which process listens on a port of this machine, for the sentence that says so. */
#pragma once

#include <stdint.h>

struct port_holder {
	uint32_t pid;
	char comm[64];
};

/* port_holder_find - one that listens on TCP port @port, as process @inside sees the network (0: as this one does).
 * @root is a prefix as in base/file.h. All processes are looked into: not for every call.
 * 0; -ENOENT: nobody, or a process of another user that this one may not look into. */
int port_holder_find(const char *root, uint32_t inside, uint16_t port, struct port_holder *ret);
