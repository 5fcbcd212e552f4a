/* SPDX-License-Identifier: Apache-2.0 */
/* notify.c - see notify.h.
 *
 * The socket is connected at once: a thread that is confined later may make and connect none, and
 * landlock shuts abstract names. Signs of life never wait for a manager that does not read; what must
 * arrive, waits SEND_SECONDS at most. */
#include "base/notify.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#define SEND_SECONDS 5
#define STATUS_MAX   512

static struct {
	int fd;
	uint64_t pulse_ns;
	mono_time last; /* sign of life */
} manager = {.fd = -1};

/* ---- finding it ---- */

/* A path, or "@" and an abstract name. */
static int address_of(const char *name, struct sockaddr_un *ret, socklen_t *ret_len)
{
	size_t len = strlen(name);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof(ret->sun_path))
		return -EINVAL;
	memcpy(ret->sun_path, name, len);
	if (name[0] == '@')
		ret->sun_path[0] = 0;
	/* An abstract name ends where the address does, a path with its zero. */
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'));
	return 0;
}

static int connect_to(const char *name, int *ret)
{
	struct timeval patience = {.tv_sec = SEND_SECONDS};
	_cleanup_fd_ int fd = -1;
	struct sockaddr_un address;
	socklen_t len;
	int r = address_of(name, &address, &len);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
		connect(fd, (const void *)&address, len) < 0)
		return -errno;
	*ret = fd;
	fd = -1;
	return 0;
}

static int parse_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && errno == 0 ? 0 : -EINVAL;
}

/* $WATCHDOG_PID says whose signs are wanted: the variables reach children, too. */
static int parse_pulse(const char *usec, const char *pid, uint64_t *ret)
{
	uint64_t us, who = (uint64_t)getpid();

	*ret = 0;
	if (!usec)
		return 0;
	if (parse_number(usec, &us) < 0 || !us || us > UINT64_MAX / NS_PER_US)
		return -EINVAL;
	if (pid && parse_number(pid, &who) < 0)
		return -EINVAL;
	if (who == (uint64_t)getpid())
		*ret = us * NS_PER_US / 2;
	return 0;
}

int notify_open(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	uint64_t pulse_ns;
	int fd = -1, r = 0;

	notify_close();
	if (!name || !name[0])
		return 0;
	r = parse_pulse(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), &pulse_ns);
	r = r ?: connect_to(name, &fd);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	if (r < 0)
		return r;
	manager.fd = fd;
	manager.pulse_ns = pulse_ns;
	return 1;
}

void notify_close(void)
{
	if (manager.fd >= 0)
		close(manager.fd);
	manager.fd = -1;
	manager.pulse_ns = 0;
	manager.last = (mono_time){0};
}

bool notify_is_open(void)
{
	return manager.fd >= 0;
}

/* ---- telling it ---- */

static int tell(const char *text, int flags)
{
	ssize_t n;

	if (manager.fd < 0)
		return 0;
	do
		n = send(manager.fd, text, strlen(text), MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* A line feed would begin another assignment. */
static void tell_status(const char *before, const char *fmt, va_list ap)
{
	char text[STATUS_MAX];

	if (manager.fd < 0)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	for (char *s = text; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = ' ';
	(void)tell(FORMATTED(STATUS_MAX + 64, "%sSTATUS=%s", before, text), 0);
}

void notify_ready(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_status("READY=1\n", fmt, ap);
	va_end(ap);
}

void notify_status(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_status("", fmt, ap);
	va_end(ap);
}

void notify_reloading(void)
{
	(void)tell(FORMATTED(96, "RELOADING=1\nMONOTONIC_USEC=%llu",
			   (unsigned long long)(mono_now().ns / NS_PER_US)),
		0);
}

void notify_stopping(void)
{
	(void)tell("STOPPING=1", 0);
}

uint64_t notify_pulse_ns(void)
{
	return manager.pulse_ns;
}

void notify_alive(mono_time now)
{
	if (!manager.pulse_ns || (manager.last.ns && now.ns - manager.last.ns < manager.pulse_ns))
		return;
	if (tell("WATCHDOG=1", MSG_DONTWAIT) == 0)
		manager.last = now;
}
