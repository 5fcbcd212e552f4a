/* SPDX-License-Identifier: Apache-2.0 */
/* bench_fleet.c - how soon `ingero-cluster fleet` answers when many nodes push their health: the real
 * program, alone on one core, over HTTP on 127.0.0.1. The nodes are simulated on another core and push
 * in turn, evenly over the interval, whether or not the answers keep up: a push is due at its time,
 * and its latency is counted from then. They share CONNECTIONS, which stay open. One node in a hundred
 * is a straggler. Budget: 10,000 nodes every 5 s with a 99th percentile of 100 ms in 700 MB; 200 nodes
 * with 5 ms.
 *
 *   bench_fleet INGERO-CLUSTER [NODES [SECONDS [CONNECTIONS]]]    0 nodes: both of the above */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/detect/spread.h"
#include "push/push_wire.h"
#include "workload.h"

#define INTERVAL_S   5
#define WARMUP_S     (INTERVAL_S + 1) /* every node has pushed once */
#define PATIENCE_S   10               /* for answers after the last push */
#define GPUS         8
#define REQUEST_MAX  (64u << 10)
#define RESPONSE_MAX 8192
#define EVENTS_MAX   64
#define EXIT_SKIPPED 77

struct service { /* the program that is measured */
	pid_t pid;
	clockid_t cpu;
	uint16_t port, api_port;
};

struct connection {
	STAILQ_ENTRY(connection) next_free;
	int fd;          /* 0: not connected yet */
	uint64_t due_ns; /* of the push under way */
	char in[RESPONSE_MAX];
	size_t len;
};

struct load {
	uint64_t nodes, begin_ns, measured_ns; /* latencies of what is due from then on count */
	uint64_t next;                         /* push; of node next % nodes */
	struct connection *connections;
	STAILQ_HEAD(, connection) free; /* they take turns */
	size_t count, busy;
	uint16_t port;
	int epoll;
	struct buf body, request;
	double *latency_ms;
	size_t answers, room;
	uint64_t refused, rejected; /* not 200; 200, and some of it was rejected */
};

/* ---- the service ---- */

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		workload_die("sched_setaffinity", errno);
}

/* One for the service, one for the nodes. */
static void choose_cpus(int ret_cpus[2])
{
	cpu_set_t all;
	int found = 0;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		workload_die("sched_getaffinity", errno);
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
		if (CPU_ISSET(cpu, &all))
			ret_cpus[found++] = cpu;
	if (found == 2)
		return;
	printf("# skip: the service and the nodes need a CPU each\n");
	exit(EXIT_SKIPPED);
}

static void service_exec(const char *program, int cpu, int out)
{
	char interval[16];

	snprintf(interval, sizeof(interval), "%ds", INTERVAL_S);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	dup2(out, STDOUT_FILENO);
	dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* it tells of each straggler */
	execl(program, program, "fleet", "--no-token", "--push-interval", interval, "--grpc-addr",
		"", "--http-addr", "127.0.0.1:0", "--api-addr", "127.0.0.1:0", NULL);
	_exit(127);
}

static uint16_t port_of(const char *line)
{
	const char *colon = strrchr(line, ':');

	return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

static void service_start(struct service *s, const char *program, int cpu)
{
	char line[256];
	int ends[2];
	FILE *out;

	*s = (struct service){0};
	if (pipe2(ends, O_CLOEXEC) < 0)
		workload_die("pipe", errno);
	s->pid = fork();
	if (s->pid < 0)
		workload_die("fork", errno);
	if (s->pid == 0)
		service_exec(program, cpu, ends[1]);
	close(ends[1]);
	out = fdopen(ends[0], "r");
	while (out && !s->api_port && fgets(line, sizeof(line), out)) {
		if (strncmp(line, "OTLP over HTTP:", 15) == 0)
			s->port = port_of(line);
		else if (strncmp(line, "Metrics:", 8) == 0)
			s->api_port = port_of(line);
	}
	if (!s->port || !s->api_port)
		workload_die(program, ECHILD);
	if (clock_getcpuclockid(s->pid, &s->cpu) != 0)
		workload_die("clock_getcpuclockid", ESRCH);
}

static double service_cpu_s(const struct service *s)
{
	struct timespec t;

	clock_gettime(s->cpu, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct disturbance {           /* seconds that a machine which is not quiet took away */
	double service, nodes; /* ready to run, and others had the core */
	double stolen;         /* by the host of a virtual machine, of all cores */
};

/* The @nth of the numbers that @path begins with, after an optional "cpu". */
static double read_seconds(const char *path, int nth, double unit)
{
	unsigned long long v = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		workload_die(path, errno);
	if (fscanf(f, "cpu") == EOF)
		workload_die(path, EBADMSG);
	while (nth-- > 0)
		if (fscanf(f, "%llu", &v) != 1)
			workload_die(path, EBADMSG);
	fclose(f);
	return (double)v / unit;
}

static struct disturbance disturbance(const struct service *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)s->pid);
	return (struct disturbance){.service = read_seconds(path, 2, 1e9),
		.nodes = read_seconds("/proc/self/schedstat", 2, 1e9),
		.stolen = read_seconds("/proc/stat", 8, (double)sysconf(_SC_CLK_TCK))};
}

/* Ends it; its greatest resident size in MB. */
static double service_stop(const struct service *s)
{
	struct rusage used;
	int status;

	kill(s->pid, SIGTERM);
	if (wait4(s->pid, &status, 0, &used) != s->pid || status)
		workload_die("ingero-cluster fleet failed", ECHILD);
	return (double)used.ru_maxrss / 1024;
}

/* From an address of its own for each @peer, as nodes have one: connections of one are limited. */
static int connect_to(uint16_t port, uint32_t peer)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK + peer)}};
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
		connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		workload_die("connect", errno);
	return fd;
}

/* Prints what the service itself says about the cluster. */
static void service_counts(const struct service *s)
{
	static const char ask[] =
		"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
	static const char *const names[] = {
		"ingero_fleet_known_nodes", "ingero_fleet_straggler_count"};
	FILE *f = fdopen(connect_to(s->api_port, 0), "r+");
	char line[1024];

	if (!f || write(fileno(f), ask, sizeof(ask) - 1) < 0)
		workload_die("/metrics", errno);
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (strncmp(line, names[i], strlen(names[i])) == 0 &&
				strstr(line, "cgroup_path_hash=\"\""))
				printf("  %s", line);
	fclose(f);
}

/* ---- the nodes ---- */

/* 0.94 with a noise of 0.02; every hundredth node is at half of that, with a slow CPU. */
static void fill_health(struct push_health *h, uint64_t node, uint64_t push)
{
	double noise = (double)((push * UINT64_C(0x9e3779b97f4a7c15)) >> 40) / (1u << 24) * 0.04;
	bool bad = node % 100 == 41;

	*h = (struct push_health){.who = {.cluster = "bench", .provider = "aws", .boot = 7},
		.sent_ns = wall_now().ns,
		.state = PUSH_ACTIVE,
		.score = (bad ? 0.47 : 0.92) + noise,
		.throughput = (bad ? 0.55 : 0.95) + noise,
		.compute = 0.93 + noise,
		.memory = 0.94 + noise,
		.cpu = (bad ? 0.41 : 0.91) + noise,
		.cohort = "0123456789abcdef",
		.workload = "training",
		.gpu_model = "NVIDIA H100 80GB HBM3",
		.gpu_count = GPUS,
		.signals = {1200 + noise, 0.4 + noise, 0.9 + noise, 1.7e9, 0.35 + noise}};
	snprintf(h->who.node, sizeof(h->who.node), "node-%05u", (unsigned)node);
	h->who.rank = (int32_t)(node * GPUS);
}

static void make_request(struct load *l)
{
	const struct push_counters counters = {.cohort = "0123456789abcdef",
		.launches = l->next * 6000,
		.stall_ns = l->next * 1000000,
		.copied_bytes = {0, l->next << 20, l->next << 10, l->next << 24, 0}};
	struct push_health h;
	const struct push_metrics m = {.health = &h,
		.detection_mode = "fleet",
		.fleet_reachable = true,
		.counters = &counters,
		.counter_count = 1,
		.start_ns = (uint64_t)wall_now().ns - NS_PER_S};

	fill_health(&h, l->next % l->nodes, l->next);
	h.who.world_size = (uint32_t)l->nodes * GPUS;
	buf_clear(&l->body);
	push_metrics_write(&l->body, &m, true);
	buf_clear(&l->request);
	buf_printf(&l->request,
		"POST /v1/metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		l->body.len);
	buf_append(&l->request, l->body.data, l->body.len);
	if (l->body.err || l->request.err)
		workload_die("a push", ENOBUFS);
}

static uint64_t due_ns(const struct load *l)
{
	return l->begin_ns + l->next * (INTERVAL_S * NS_PER_S / l->nodes);
}

/* With its first push: the service waits only so long for that. */
static void open_connection(struct load *l, struct connection *c)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

	c->fd = connect_to(l->port, (uint32_t)(c - l->connections) + 1);
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e) < 0)
		workload_die("epoll_ctl", errno);
}

/* A connection that is free has sent all before: its socket has room for a push. */
static void push_next(struct load *l)
{
	struct connection *c = STAILQ_FIRST(&l->free);

	STAILQ_REMOVE_HEAD(&l->free, next_free);
	if (!c->fd)
		open_connection(l, c);
	l->busy++;
	c->due_ns = due_ns(l);
	c->len = 0;
	make_request(l);
	l->next++;
	if (send(c->fd, l->request.data, l->request.len, MSG_NOSIGNAL) != (ssize_t)l->request.len)
		workload_die("send", errno);
}

/* Whether the whole of a response is there. */
static bool is_complete(const struct connection *c)
{
	const char *end = strstr(c->in, "\r\n\r\n"), *length = strcasestr(c->in, "content-length:");

	if (!end || !length || length > end)
		return false;
	return c->len >= (size_t)(end + 4 - c->in) + strtoul(length + 15, NULL, 10);
}

static void note_answer(struct load *l, struct connection *c)
{
	if (strncmp(c->in, "HTTP/1.1 200", 12) != 0)
		l->refused++;
	else if (strstr(c->in, "rejected"))
		l->rejected++;
	if (l->measured_ns && c->due_ns >= l->measured_ns && l->answers < l->room)
		l->latency_ms[l->answers++] = (double)(mono_now().ns - c->due_ns) / 1e6;
	STAILQ_INSERT_TAIL(&l->free, c, next_free);
	l->busy--;
}

static void read_answer(struct load *l, struct connection *c)
{
	ssize_t n = recv(c->fd, c->in + c->len, sizeof(c->in) - 1 - c->len, 0);

	if (n <= 0)
		workload_die("the service closed a connection", n < 0 ? errno : ECONNRESET);
	c->len += (size_t)n;
	c->in[c->len] = 0;
	if (is_complete(c))
		note_answer(l, c);
}

static void wait_for_answers(struct load *l, uint64_t ns)
{
	const struct timespec t = {
		.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_pwait2(l->epoll, events, EVENTS_MAX, &t, NULL);

	if (n < 0 && errno != EINTR)
		workload_die("epoll_pwait2", errno);
	for (int i = 0; i < n; i++)
		read_answer(l, events[i].data.ptr);
}

static void load_until(struct load *l, uint64_t end_ns)
{
	for (uint64_t now; (now = mono_now().ns) < end_ns;) {
		uint64_t wake_ns = end_ns;

		while (!STAILQ_EMPTY(&l->free) && due_ns(l) <= now)
			push_next(l);
		if (!STAILQ_EMPTY(&l->free))
			wake_ns = MIN(end_ns, due_ns(l));
		wait_for_answers(l, wake_ns > now ? wake_ns - now : 0);
	}
}

static void load_start(struct load *l, uint16_t port)
{
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0 || !l->connections || !l->latency_ms)
		workload_die("the simulated nodes", ENOMEM);
	STAILQ_INIT(&l->free);
	for (size_t i = 0; i < l->count; i++)
		STAILQ_INSERT_TAIL(&l->free, &l->connections[i], next_free);
	l->port = port;
	l->begin_ns = mono_now().ns;
}

static void load_done(struct load *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->connections[i].fd)
			close(l->connections[i].fd);
	close(l->epoll);
	free(l->connections);
	free(l->latency_ms);
	buf_done(&l->body);
	buf_done(&l->request);
}

/* ---- one measurement ---- */

static double percentile(const struct load *l, double part)
{
	return l->answers ? l->latency_ms[(size_t)(part * (double)(l->answers - 1))] : 0;
}

static void measure(
	const char *program, int cpu, uint64_t nodes, unsigned seconds, size_t connections)
{
	size_t pushes = nodes * (seconds / INTERVAL_S + 1);
	struct load l = {.nodes = nodes,
		.count = connections,
		.connections = calloc(connections, sizeof(struct connection)),
		.body = BUF_INIT(REQUEST_MAX),
		.request = BUF_INIT(REQUEST_MAX),
		.latency_ms = calloc(pushes, sizeof(double)),
		.room = pushes};
	struct service s;
	uint64_t end_ns;
	struct disturbance before, after;
	double used_s;

	service_start(&s, program, cpu);
	load_start(&l, s.port);
	l.measured_ns = l.begin_ns + WARMUP_S * NS_PER_S;
	end_ns = l.measured_ns + seconds * NS_PER_S;
	load_until(&l, l.measured_ns);
	used_s = service_cpu_s(&s);
	before = disturbance(&s);
	load_until(&l, end_ns);
	used_s = service_cpu_s(&s) - used_s;
	after = disturbance(&s);
	while (l.busy && mono_now().ns < end_ns + PATIENCE_S * NS_PER_S)
		wait_for_answers(&l, NS_PER_S);
	spread_sort(l.latency_ms, l.answers);
	printf("%u nodes every %d s, %zu bytes a push, %zu connections\n", (unsigned)nodes,
		INTERVAL_S, l.body.len, connections);
	printf("  %.0f requests/s; ms p50 %.2f, p99 %.2f, max %.2f\n", (double)l.answers / seconds,
		percentile(&l, 0.5), percentile(&l, 0.99), percentile(&l, 1));
	printf("  refused %llu, partly rejected %llu, not answered %zu\n",
		(unsigned long long)l.refused, (unsigned long long)l.rejected, l.busy);
	service_counts(&s);
	load_done(&l);
	printf("  disturbed: the service for %.1f %% of the time, the nodes %.1f %%, by the host %.1f %% of a core\n",
		(after.service - before.service) * 100 / seconds,
		(after.nodes - before.nodes) * 100 / seconds,
		(after.stolen - before.stolen) * 100 / seconds);
	printf("  CPU %.1f %% of one core", used_s * 100 / seconds);
	printf(", most resident %.0f MB\n", service_stop(&s));
}

int main(int argc, char **argv)
{
	uint64_t nodes = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	unsigned seconds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 20;
	size_t connections = argc > 4 ? strtoul(argv[4], NULL, 10) : 200;
	int cpus[2];

	if (argc < 2 || seconds < 1 || connections < 1 || nodes > 1000000) {
		fprintf(stderr,
			"usage: bench_fleet INGERO-CLUSTER [NODES [SECONDS [CONNECTIONS]]]\n");
		return 64;
	}
	choose_cpus(cpus);
	pin(cpus[1]);
	measure(argv[1], cpus[0], nodes ? nodes : 10000, seconds, connections);
	if (!nodes)
		measure(argv[1], cpus[0], 200, seconds, connections);
	return 0;
}
