/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_doing.c - see pusher_doing.h. A thread that waits for its GPU by polling memory looks as one
 * that computes: running. One that blocks in a driver's ioctl waits for the GPU. */
#include "node/push/pusher_doing.h"

#include <sys/syscall.h>

#include "base/file.h"

/* System calls in which threads stay; those that only one architecture has are left out there. */
static const struct {
	long number;
	const char *name;
	enum push_doing doing;
	bool waits; /* also those that wait for their GPU, and a collective on it, stay there */
} calls[] = {
	{SYS_ioctl, "ioctl", PUSH_DOING_GPU, true},
	{SYS_futex, "futex", PUSH_DOING_BLOCKED, true},
	{SYS_read, "read", PUSH_DOING_BLOCKED, false},
	{SYS_pread64, "pread", PUSH_DOING_BLOCKED, false},
	{SYS_readv, "readv", PUSH_DOING_BLOCKED, false},
	{SYS_write, "write", PUSH_DOING_BLOCKED, false},
	{SYS_fsync, "fsync", PUSH_DOING_BLOCKED, false},
	{SYS_openat, "open", PUSH_DOING_BLOCKED, false},
	{SYS_recvfrom, "recv", PUSH_DOING_BLOCKED, false},
	{SYS_recvmsg, "recvmsg", PUSH_DOING_BLOCKED, false},
	{SYS_sendto, "send", PUSH_DOING_BLOCKED, false},
	{SYS_sendmsg, "sendmsg", PUSH_DOING_BLOCKED, false},
	{SYS_connect, "connect", PUSH_DOING_BLOCKED, false},
	{SYS_accept4, "accept", PUSH_DOING_BLOCKED, false},
	{SYS_ppoll, "ppoll", PUSH_DOING_BLOCKED, true},
	{SYS_pselect6, "pselect", PUSH_DOING_BLOCKED, true},
	{SYS_epoll_pwait, "epoll_wait", PUSH_DOING_BLOCKED, true},
	{SYS_nanosleep, "nanosleep", PUSH_DOING_BLOCKED, false},
	{SYS_clock_nanosleep, "clock_nanosleep", PUSH_DOING_BLOCKED, false},
	{SYS_wait4, "wait", PUSH_DOING_BLOCKED, false},
#ifdef SYS_poll
	{SYS_poll, "poll", PUSH_DOING_BLOCKED, true},
	{SYS_select, "select", PUSH_DOING_BLOCKED, true},
	{SYS_epoll_wait, "epoll_wait", PUSH_DOING_BLOCKED, true},
#endif
};

/* State and start of "pid (name) S …": the name may hold anything, also brackets. */
static bool parse_stat(const char *line, char *ret_state, uint64_t *ret_start)
{
	const char *p = strrchr(line, ')');

	if (!p || p[1] != ' ' || !p[2])
		return false;
	*ret_state = p[2];
	p += 2;
	for (int field = 3; field < 22; field++) {
		p = strchr(p, ' ');
		if (!p)
			return false;
		p++;
	}
	*ret_start = strtoull(p, NULL, 10);
	return true;
}

static int read_of(const char *root, uint32_t pid, const char *name, char *out, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
	return file_read_line(root, path, out, size);
}

static void read_blocked(const char *root, uint32_t pid, char state, struct pusher_doing *ret)
{
	char call[128] = "", channel[64] = "";
	const char *name = NULL;
	long number = -1;
	char *end;

	ret->doing = PUSH_DOING_BLOCKED;
	(void)read_of(root, pid, "wchan", channel, sizeof(channel));
	if (read_of(root, pid, "syscall", call, sizeof(call)) >= 0) {
		number = strtol(call, &end, 10);
		if (end == call)
			number = -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].number == number) {
			name = calls[i].name;
			ret->doing = state == 'D' ? PUSH_DOING_BLOCKED : calls[i].doing;
			ret->is_elsewhere = !calls[i].waits;
		}
	if (!strcmp(channel, "0"))
		channel[0] = 0;
	snprintf(ret->where, sizeof(ret->where), "%s%s%s%.40s%s", name ? "in " : "",
		name ? name : "", channel[0] && name ? " (" : "", channel,
		channel[0] && name ? ")" : "");
}

void pusher_doing_read(
	const char *root, uint32_t pid, uint64_t start_ticks, struct pusher_doing *ret)
{
	char line[1024], state;
	uint64_t start;
	int r = read_of(root, pid, "stat", line, sizeof(line));

	*ret = (struct pusher_doing){.doing = PUSH_DOING_UNKNOWN};
	if (r == -ENOENT || r == -ESRCH) {
		ret->doing = PUSH_DOING_GONE;
		return;
	}
	if (r < 0 || !parse_stat(line, &state, &start))
		return;
	if ((start_ticks && start != start_ticks) || strchr("ZXx", state))
		ret->doing = PUSH_DOING_GONE;
	else if (state == 'T' || state == 't')
		ret->doing = PUSH_DOING_STOPPED;
	else if (state == 'R')
		ret->doing = PUSH_DOING_RUNNING;
	else
		read_blocked(root, pid, state, ret);
}
