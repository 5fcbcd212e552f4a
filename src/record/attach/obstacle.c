/* SPDX-License-Identifier: Apache-2.0 */
/* obstacle.c - see obstacle.h. What each setting does was read in the kernel's source, and in the patches of Debian and
 * Ubuntu, whose perf_event_open() refuses everybody without CAP_SYS_ADMIN while kernel.perf_event_paranoid is above 2;
 * the kernel itself takes CAP_PERFMON at every level. */
#include "record/attach/obstacle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

static bool has(const struct obstacle_view *v, unsigned bit)
{
	return v->caps >> bit & 1;
}

void obstacle_look(const char *root, struct obstacle_view *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *caps, *seccomp;

	*ret = (struct obstacle_view){.root = root};
	if (file_read_at(root, "/proc/self/status", 8192, &b) < 0)
		return;
	caps = strstr(buf_str(&b), "\nCapEff:\t");
	seccomp = strstr(buf_str(&b), "\nSeccomp:\t");
	if (caps)
		ret->caps = strtoull(caps + strlen("\nCapEff:\t"), NULL, 16);
	ret->has_seccomp = seccomp && seccomp[strlen("\nSeccomp:\t")] == '2';
}

bool obstacle_to_run(const struct obstacle_view *v, char out[OBSTACLE_MAX])
{
	char line[128];

	if (file_read_line(v->root, "/sys/kernel/security/lockdown", line, sizeof(line)) < 0 ||
		!strstr(line, "[confidentiality]"))
		return false;
	snprintf(out, OBSTACLE_MAX,
		"kernel lockdown is \"confidentiality\", in which eBPF may not read the kernel's "
		"memory: boot with lockdown=integrity or without");
	return true;
}

/* All users of the machine are here under their own numbers, unless this is a user namespace. */
static bool is_user_namespace(const struct obstacle_view *v)
{
	unsigned long inside, outside, count;
	char line[128];

	return file_read_line(v->root, "/proc/self/uid_map", line, sizeof(line)) == 0 &&
	       sscanf(line, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
	       (outside != 0 || count != 4294967295);
}

#define SECCOMP_ADVICE                                                                             \
	"a seccomp filter refuses %s: let it allow bpf and perf_event_open (docker and podman: "   \
	"--security-opt seccomp=unconfined, Kubernetes: seccompProfile Unconfined, or a profile "  \
	"of your own)"

bool obstacle_to_load(const struct obstacle_view *v, char out[OBSTACLE_MAX])
{
	if (obstacle_to_run(v, out))
		return true;
	if (is_user_namespace(v))
		snprintf(out, OBSTACLE_MAX,
			"this is a user namespace, in which the capabilities do not count: start "
			"it as the machine's root (docker: --userns=host, podman: with sudo)");
	else if (!has(v, CAP_SYS_ADMIN_BIT) && !(has(v, CAP_BPF_BIT) && has(v, CAP_PERFMON_BIT)))
		return false; /* which is said of the capabilities */
	else if (v->has_seccomp)
		snprintf(out, OBSTACLE_MAX, SECCOMP_ADVICE, "bpf()");
	else
		return false;
	return true;
}

bool obstacle_to_sample(const struct obstacle_view *v, char out[OBSTACLE_MAX])
{
	char level[16] = "";

	if (!has(v, CAP_SYS_ADMIN_BIT) && !has(v, CAP_PERFMON_BIT))
		return false; /* which is said of the capabilities */
	file_read_line(v->root, "/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));
	if (!has(v, CAP_SYS_ADMIN_BIT) && strtol(level, NULL, 10) > 2)
		snprintf(out, OBSTACLE_MAX,
			"kernel.perf_event_paranoid is %s, and above 2 this kernel (Debian's, "
			"Ubuntu's) wants CAP_SYS_ADMIN for perf events: set it to 2 (sysctl -w "
			"kernel.perf_event_paranoid=2), or give CAP_SYS_ADMIN",
			level);
	else if (v->has_seccomp)
		snprintf(out, OBSTACLE_MAX, SECCOMP_ADVICE, "perf_event_open()");
	else
		return false;
	return true;
}

bool obstacle_to_look(const struct obstacle_view *v, char out[OBSTACLE_MAX])
{
	char profile[128];

	if (!has(v, CAP_SYS_PTRACE_BIT))
		snprintf(out, OBSTACLE_MAX,
			"give CAP_SYS_PTRACE to see the processes of other users");
	else if (file_read_line(v->root, "/proc/self/attr/current", profile, sizeof(profile)) ==
			 0 &&
		 strstr(profile, "(enforce)"))
		snprintf(out, OBSTACLE_MAX,
			"the AppArmor profile %.100s keeps this process from others: start the "
			"container with --security-opt apparmor=unconfined",
			profile);
	else
		return false;
	return true;
}
