// SPDX-License-Identifier: Apache-2.0
/* node.c - sim-node: runs a command as one node of a cluster on this machine. The node has a
 * network of its own (10.77.GROUP.INDEX on a bridge of the group; the machine itself is .254), a
 * host name and, by --clock-ms, a monotonic clock that differs from the machine's. Processes, files
 * and shared memory are the machine's, so that ranks of different nodes can meet.
 *
 * Three processes: this one stays outside, makes the links and removes them; the one it forks
 * enters the namespaces; the command is that one's child, because only children enter a time
 * namespace. The node ends with its command: status and signals pass through, and whatever else of
 * the node runs on loses its link. The bridge goes with the last node of the group. Needs root and
 * ip(8). */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define SUBNET "10.77"
#define HOST   254 /* the machine's own place in the subnet */

static struct {
	long index, of, group, clock_ms;
} node = {1, 1, 0, 0};

static char bridge[16], outer[16], inner[16];
static volatile pid_t child;
static bool quiet; /* links may vanish while they are being removed, with their namespace */

static void fail(const char *what)
{
	fprintf(stderr, "sim-node: %s: %s\n", what, strerror(errno));
	exit(71);
}

static void pass_on(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/* Runs ip with the words of @words, which may not hold blanks of their own; its exit status. */
static int ip(const char *words)
{
	char copy[256], *argv[24] = {"ip"}, *save;
	int n = 1, status;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *w = strtok_r(copy, " ", &save); w && n < 23; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	pid = fork();
	if (pid == 0) {
		if (quiet)
			close(STDERR_FILENO);
		execvp("ip", argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int ip_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int ip_format(const char *format, ...)
{
	char words[256];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	return ip(words);
}

static void ip_must(const char *what, int status)
{
	if (status == 0)
		return;
	fprintf(stderr, "sim-node: %s: ip ended with %d\n", what, status);
	exit(71);
}

/* One node at a time makes or removes links: the machine's network itself is the lock. */
static int links_lock(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		fail("/proc/self/ns/net");
	return fd;
}

static bool link_exists(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%s", name);
	return access(path, F_OK) == 0;
}

static bool bridge_is_used(void)
{
	char command[128], line[16];
	FILE *f;
	bool used;

	snprintf(command, sizeof(command), "ip -o link show master %s", bridge);
	f = popen(command, "re");
	used = f && fgets(line, sizeof(line), f);
	if (f)
		pclose(f);
	return used;
}

static void links_remove(void)
{
	int lock = links_lock();

	quiet = true;
	if (link_exists(outer))
		ip_format("link del %s", outer);
	if (link_exists(bridge) && !bridge_is_used())
		ip_format("link del %s", bridge);
	close(lock);
}

/* The inner end starts in the namespaces of @pid. */
static void links_make(pid_t pid)
{
	int lock = links_lock();

	if (!link_exists(bridge)) {
		ip_must("bridge", ip_format("link add %s type bridge", bridge));
		atexit(links_remove);
		ip_must("bridge", ip_format("addr add " SUBNET ".%ld.%d/24 dev %s", node.group,
					  HOST, bridge));
		ip_must("bridge", ip_format("link set %s up", bridge));
	} else {
		atexit(links_remove);
	}
	if (link_exists(outer)) {
		fprintf(stderr, "sim-node: node %ld of group %ld is there already\n", node.index,
			node.group);
		_exit(71);
	}
	ip_must("link",
		ip_format("link add %s type veth peer name %s netns %d", outer, inner, (int)pid));
	ip_must("link", ip_format("link set %s master %s up", outer, bridge));
	close(lock);
}

static void clock_set(void)
{
	long long ns = (long long)node.clock_ms * 1000000, sec = ns / 1000000000;
	FILE *f = fopen("/proc/self/timens_offsets", "we");

	if (ns % 1000000000 < 0)
		sec--; /* the nanoseconds are never negative */
	if (!f ||
		fprintf(f, "monotonic %lld %lld\nboottime %lld %lld\n", sec, ns - sec * 1000000000,
			sec, ns - sec * 1000000000) < 0 ||
		fclose(f) != 0)
		fail("time namespace");
}

static void inside_prepare(void)
{
	char name[32];

	snprintf(name, sizeof(name), "node%ld", node.index);
	if (sethostname(name, strlen(name)) < 0)
		fail("host name");
	ip_must("address",
		ip_format("addr add " SUBNET ".%ld.%ld/24 dev %s", node.group, node.index, inner));
	ip_must("address", ip_format("link set %s name eth0", inner));
	ip_must("address", ip_format("link set eth0 up"));
	ip_must("address", ip_format("link set lo up"));
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int child_wait(void)
{
	int status;

	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			return 71;
	return status_of(status);
}

/* The process in the namespaces: tells through @ready that they exist, goes on when @go closes. */
static int inside_run(int ready, int go, char **command)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (unshare(CLONE_NEWNET | CLONE_NEWUTS | (node.clock_ms ? CLONE_NEWTIME : 0)) < 0)
		fail("namespaces");
	if (node.clock_ms)
		clock_set();
	if (write(ready, "", 1) != 1 || read(go, &byte, 1) != 1)
		return 71; /* the outer one failed, and said so */
	close(ready);
	close(go);
	inside_prepare();
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		execvp(command[0], command);
		fprintf(stderr, "sim-node: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	return child < 0 ? 71 : child_wait();
}

static void usage(FILE *to)
{
	fprintf(to, "sim-node - runs a command as a node of its own network, name and clock\n\n"
		    "sim-node --of N --index K [--group G] [--clock-ms M] -- COMMAND [ARG...]\n\n"
		    "  --of N        nodes of the cluster (1)\n"
		    "  --index K     which one, from 1: 10.77.G.K, host name nodeK (1)\n"
		    "  --group G     cluster, 0 to 254, if there are several (0)\n"
		    "  --clock-ms M  added to the monotonic clock, may be negative (0)\n");
}

static long number(const char *text, long least, long most)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || *end || v < least || v > most) {
		fprintf(stderr, "sim-node: %s is not a number from %ld to %ld\n", text, least,
			most);
		exit(64);
	}
	return v;
}

static void options_read(int argc, char **argv)
{
	static const struct option longs[] = {{"of", 1, NULL, 'n'}, {"index", 1, NULL, 'k'},
		{"group", 1, NULL, 'g'}, {"clock-ms", 1, NULL, 'c'}, {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		switch (c) {
		case 'n': node.of = number(optarg, 1, HOST - 1); break;
		case 'k': node.index = number(optarg, 1, HOST - 1); break;
		case 'g': node.group = number(optarg, 0, 254); break;
		case 'c': node.clock_ms = number(optarg, -1000000000, 1000000000); break;
		case 'h': usage(stdout); exit(0);
		default: exit(64);
		}
	}
	if (optind == argc || node.index > node.of) {
		usage(stderr);
		exit(64);
	}
}

int main(int argc, char **argv)
{
	struct sigaction forward = {.sa_handler = pass_on};
	int ready[2], go[2];
	char byte;

	options_read(argc, argv);
	snprintf(bridge, sizeof(bridge), "simbr%ld", node.group);
	snprintf(outer, sizeof(outer), "simo%ld-%ld", node.group, node.index);
	snprintf(inner, sizeof(inner), "simi%ld-%ld", node.group, node.index);
	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
		fail("pipe");
	sigaction(SIGTERM, &forward, NULL);
	sigaction(SIGINT, &forward, NULL);
	child = fork();
	if (child == 0) {
		close(ready[0]);
		close(go[1]);
		child = 0;
		_exit(inside_run(ready[1], go[0], argv + optind));
	}
	if (child < 0)
		fail("fork");
	close(ready[1]);
	close(go[0]);
	if (read(ready[0], &byte, 1) != 1)
		return child_wait(); /* it has said why */
	links_make(child);
	if (write(go[1], "", 1) != 1)
		fail("node");
	return child_wait();
}
