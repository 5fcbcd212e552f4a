/* SPDX-License-Identifier: Apache-2.0 */
/* btf_modules.c - lets the probes load without CAP_SYS_ADMIN.
 *
 * A kernel's variable that vmlinux does not describe (x86-64 kernels have either __preempt_count or pcpu_hot) is
 * looked for by libbpf in the BTF of modules. Listing those needs CAP_SYS_ADMIN, and libbpf before 1.3 takes the
 * refusal for a failure of the whole load instead of for "not found". No variable of ours is a module's: a list
 * that may not be read is as good as an empty one. Linked in place of libbpf's by --wrap (meson.build). */
#include <errno.h>

#include <bpf/bpf.h>

int __real_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id);
int __wrap_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id);

int __wrap_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id)
{
	int r = __real_bpf_btf_get_next_id(start_id, next_id);

	if (r == -EPERM || (r < 0 && errno == EPERM)) {
		errno = ENOENT;
		return -ENOENT;
	}
	return r;
}
