/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - gives up its privileges, opens NVML, and once a second sends a record for each GPU.
 *
 * Invariants:
 *  1. No byte of the driver's library runs before the privileges are gone: no capability, none to
 * be gained, and another user than root where that user may open /dev/nvidia*.
 *  2. It dies with the agent (PR_SET_PDEATHSIG), and leaves by itself when the agent closes the
 *     socket: NVML is then shut down in order.
 *  3. Nothing waits here for the agent's sake: the agent watches the clock (sampler.c). */
#include "record/gpu/child.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/confine.h"
#include "record/gpu/nvml.h"

#define GPU_CHILD_FD SPAWN_SOCKET

/* One H200 takes 42 ms a round, all but 1 ms of it waiting in the two PCIe counters; NVML brings
 * 18 MB of memory and 185 MB of address space. */
#define PERIOD_NS     NS_PER_S /* unless the agent says another */
#define SILENT_ROUNDS 10 /* all GPUs failing this often: begin anew, the driver may be another */
#define ADDRESS_BYTES (8ULL << 30)
#define OPEN_FILES    256

bool gpu_child_is_meant(int argc, char **argv)
{
	return argc > 0 && !strcmp(argv[0], GPU_CHILD_NAME);
}

/* ---- privileges ---- */

/* The group whose members may open the device files that NVML needs (nvidiactl, nvidia0, …), if
 * others may not; 0: others may, or there are none; -1: only root may. */
static int64_t device_group(void)
{
	int64_t group = 0;
	glob_t g = {0};

	if (glob("/dev/nvidia[c0-9]*", 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc && group >= 0; i++) {
			struct stat st;

			if (stat(g.gl_pathv[i], &st) < 0 || !S_ISCHR(st.st_mode) ||
				(st.st_mode & 06) == 06)
				continue;
			group = (st.st_mode & 060) == 060 ? (int64_t)st.st_gid : -1;
		}
	globfree(&g);
	return group;
}

static int drop_root(void)
{
	int64_t group = device_group();

	if (group < 0)
		return 0;
	return confine_user(CONFINE_NOBODY, group > 0 ? (gid_t)group : CONFINE_NOBODY);
}

static int give_up_privileges(void)
{
	static const struct confine_limits limits = {
		.address_bytes = ADDRESS_BYTES,
		.open_files = OPEN_FILES,
	};
	int r;

	confine_limits(&limits);
	(void)prctl(PR_SET_NAME, "ingero-gpu", 0, 0, 0);
	confine_bounding_set();
	r = drop_root();
	r = r ?: confine_capabilities();
	return r < 0 ? r : confine_life(GPU_CHILD_FD);
}

/* ---- sampling ---- */

static bool tell(struct gpu_record *record)
{
	ssize_t n;

	record->magic = GPU_RECORD_MAGIC;
	record->mono_ns = mono_now().ns;
	do
		n = send(GPU_CHILD_FD, record, sizeof(*record), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == sizeof(*record);
}

static int send_end(int err, const char *text)
{
	struct gpu_record record = {
		.kind = err == -ENOENT || err == -ENODEV ? GPU_RECORD_ABSENT : GPU_RECORD_FAILED,
		.end.lasting = err == -ENOENT || err == -ENOSYS,
	};

	snprintf(record.end.text, sizeof(record.end.text), "%s", text);
	tell(&record);
	return EXIT_FAILURE;
}

static bool send_hello(const struct nvml_library *n)
{
	struct gpu_record record = {.kind = GPU_RECORD_HELLO, .hello.count = nvml_count(n)};

	nvml_driver(n, record.hello.driver, sizeof(record.hello.driver));
	nvml_cuda(n, record.hello.cuda, sizeof(record.hello.cuda));
	return tell(&record);
}

/* Returns how many GPUs answered; negative if the agent is gone. */
static int sample_all(struct nvml_library *n)
{
	int answered = 0;

	nvml_take_errors(n, wall_now());
	for (unsigned i = 0; i < nvml_count(n); i++) {
		struct gpu_record record = {.kind = GPU_RECORD_SAMPLE};
		struct gpu_sample *s = &record.reading.sample;

		nvml_read(n, i, s);
		if (s->nvml_error)
			snprintf(record.reading.error, sizeof(record.reading.error), "%s",
				nvml_error_text(n, s->nvml_error));
		answered += s->mem_total_bytes != GPU_UNKNOWN;
		if (!tell(&record))
			return -EPIPE;
	}
	return answered;
}

/* What the agent says is the period. False: it has closed the socket. */
static bool hear_period(uint64_t *period_ns)
{
	uint64_t told;
	ssize_t n = recv(GPU_CHILD_FD, &told, sizeof(told), MSG_DONTWAIT);

	if (n == sizeof(told))
		*period_ns = MIN(MAX(told, GPU_PERIOD_MIN_NS), GPU_PERIOD_MAX_NS);
	return n > 0;
}

/* Until the next full period. False: the agent has closed the socket. */
static bool wait_turn(uint64_t *due, uint64_t *period_ns)
{
	struct pollfd fd = {.fd = GPU_CHILD_FD, .events = POLLIN};
	uint64_t last = *due, now;

	for (;;) {
		now = mono_now().ns;
		*due = last + *period_ns;
		if (*due < now)
			*due = now; /* a slow reading: no hurry to catch up */
		if (poll(&fd, 1, (int)((*due - now) / NS_PER_MS)) == 0)
			return true;
		if (!hear_period(period_ns))
			return false;
	}
}

static int sample_for_ever(struct nvml_library *n)
{
	uint64_t due = mono_now().ns, period_ns = PERIOD_NS;
	int silent = 0;

	if (!send_hello(n))
		return EXIT_SUCCESS;
	do {
		int answered = sample_all(n);

		if (answered < 0)
			return EXIT_SUCCESS;
		silent = answered ? 0 : silent + 1;
		if (silent == SILENT_ROUNDS)
			return send_end(-EIO, "NVML reports no GPU");
	} while (wait_turn(&due, &period_ns));
	return EXIT_SUCCESS;
}

/* @path is opened before the user changes: the folder above it may be closed to the new one. */
static int open_library(const char *path, struct nvml_library **ret, struct errinfo *reterr)
{
	_cleanup_fd_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char opened[32];
	int r;

	if (path && fd < 0)
		return errinfo_set(reterr, -ENOENT, "cannot open %s: %s", path, strerror(errno));
	r = give_up_privileges();
	if (r < 0)
		return errinfo_set(reterr, r, "the sampling process cannot drop its privileges: %s",
			strerror(-r));
	if (!path)
		return nvml_open(NULL, ret, reterr);
	snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else /proc/self is root's */
	r = nvml_open(opened, ret, reterr);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return r;
}

int gpu_child_main(int argc, char **argv)
{
	_cleanup_(nvml_closep) struct nvml_library *n = NULL;
	struct errinfo e = {0};
	int r = open_library(argc > 1 ? argv[1] : NULL, &n, &e);

	if (r < 0)
		return send_end(r, e.text[0] ? e.text : strerror(-r));
	return sample_for_ever(n);
}
