/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/accounts/kernel_thread.h"

#include <string.h>

#include "base/macros.h"

bool kernel_thread_is(const char *comm)
{
	static const char *const starts[] = {"kworker/", "ksoftirqd/", "migration/", "cpuhp/",
		"swapper", "rcu_", "rcuo", "rcuc/", "irq/", "idle_inject/", "kswapd", "kcompactd",
		"khugepaged", "ksmd", "kthreadd", "kblockd", "kdevtmpfs", "jbd2/", "xfsaild/",
		"xfs-", "btrfs-", "dmcrypt_write", "scsi_eh_", "nvme-", "nfsd", "nfsiod", "rpciod",
		"flush-", "writeback", "watchdogd", "napi/", "nv_queue", "nvidia-modeset", "UVM "};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (!strncmp(comm, starts[i], strlen(starts[i])))
			return true;
	return false;
}
