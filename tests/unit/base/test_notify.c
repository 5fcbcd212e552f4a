/* SPDX-License-Identifier: Apache-2.0 */
/* test_notify.c - what a service manager at a real socket hears, and when it hears nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/notify.h"
#include "net/loop.h"

#define AT(ms) ((mono_time){(uint64_t)(ms)*NS_PER_MS})

struct manager {
	int fd;
	char folder[64], name[108];
};

static void listen_at(struct manager *m)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = strlen(m->name);

	memcpy(address.sun_path, m->name, len);
	if (m->name[0] == '@')
		address.sun_path[0] = 0;
	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(m->fd >= 0);
	assert_int_equal(bind(m->fd, (const void *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
		0);
	setenv("NOTIFY_SOCKET", m->name, 1);
}

static int manager_new(void **state)
{
	static struct manager m;

	m = (struct manager){.fd = -1};
	snprintf(m.folder, sizeof(m.folder), "/tmp/ingero-notify-XXXXXX");
	assert_non_null(mkdtemp(m.folder));
	snprintf(m.name, sizeof(m.name), "%s/socket", m.folder);
	listen_at(&m);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	*state = &m;
	return 0;
}

static int manager_free(void **state)
{
	struct manager *m = *state;

	notify_close();
	close(m->fd);
	unlink(m->name);
	rmdir(m->folder);
	return 0;
}

/* The next message; "" if there is none. */
static const char *heard(struct manager *m)
{
	static char text[2048];
	ssize_t n = recv(m->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n < 0 ? 0 : n] = 0;
	return text;
}

static void says_all_at_a_path(void **state)
{
	struct manager *m = *state;
	unsigned long long us = 0;

	assert_int_equal(notify_open(), 1);
	assert_true(notify_is_open());
	notify_ready("%d probes", 63);
	assert_string_equal(heard(m), "READY=1\nSTATUS=63 probes");
	notify_status("a\nREADY=0\x1b[2J");
	assert_string_equal(heard(m), "STATUS=a READY=0 [2J");
	notify_reloading();
	assert_int_equal(sscanf(heard(m), "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1);
	assert_true(us > 0 && us <= mono_now().ns / NS_PER_US);
	notify_stopping();
	assert_string_equal(heard(m), "STOPPING=1");
	assert_string_equal(heard(m), "");
}

static void says_it_at_an_abstract_name(void **state)
{
	struct manager *m = *state;

	close(m->fd);
	unlink(m->name);
	snprintf(m->name, sizeof(m->name), "@ingero-notify-%d", (int)getpid());
	listen_at(m);
	assert_int_equal(notify_open(), 1);
	notify_ready("up");
	assert_string_equal(heard(m), "READY=1\nSTATUS=up");
}

static void helpers_do_not_inherit_it(void **state)
{
	setenv("WATCHDOG_USEC", "1000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	assert_int_equal(notify_open(), 1);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));
}

static void is_silent_without_a_manager(void **state)
{
	struct manager *m = *state;

	unsetenv("NOTIFY_SOCKET");
	setenv("WATCHDOG_USEC", "1000", 1);
	assert_int_equal(notify_open(), 0);
	assert_false(notify_is_open());
	assert_int_equal(notify_pulse_ns(), 0);
	notify_ready("up");
	notify_status("up");
	notify_reloading();
	notify_stopping();
	notify_alive(AT(5));
	assert_string_equal(heard(m), "");
}

static void refuses_what_makes_no_sense(void **state)
{
	static const char *const names[] = {"relative", "@", "/", "vsock:2:1"};
	static const char *const times[] = {"", "0", "x", "-5", "10s", "99999999999999999999"};
	struct manager *m = *state;
	char name[200];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		setenv("NOTIFY_SOCKET", names[i], 1);
		assert_true(notify_open() < 0);
		assert_false(notify_is_open());
	}
	memset(name, 'a', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(notify_open(), -EINVAL);
	setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
	assert_int_equal(notify_open(), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		setenv("NOTIFY_SOCKET", m->name, 1);
		setenv("WATCHDOG_USEC", times[i], 1);
		assert_int_equal(notify_open(), -EINVAL);
	}
}

static void open_with_watchdog(const char *pid)
{
	setenv("WATCHDOG_USEC", "20000", 1);
	if (pid)
		setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(notify_open(), 1);
}

static void gives_a_sign_every_half(void **state)
{
	struct manager *m = *state;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	open_with_watchdog(pid);
	assert_int_equal(notify_pulse_ns(), 10 * NS_PER_MS);
	notify_alive(AT(1000));
	assert_string_equal(heard(m), "WATCHDOG=1");
	notify_alive(AT(1009));
	assert_string_equal(heard(m), "");
	notify_alive(AT(1010));
	assert_string_equal(heard(m), "WATCHDOG=1");
	notify_alive(AT(1019));
	assert_string_equal(heard(m), "");
}

static void another_process_is_watched(void **state)
{
	struct manager *m = *state;

	open_with_watchdog("1");
	assert_int_equal(notify_pulse_ns(), 0);
	notify_alive(AT(1000));
	assert_string_equal(heard(m), "");
	notify_ready("up"); /* which is another matter */
	assert_string_equal(heard(m), "READY=1\nSTATUS=up");
}

/* A manager that does not read must not stop the work. */
static void does_not_wait_for_the_manager(void **state)
{
	int heard_count = 0;
	struct manager *m = *state;

	open_with_watchdog(NULL);
	for (uint64_t ms = 10; ms < 20000; ms += 10)
		notify_alive(AT(ms));
	while (heard(m)[0])
		heard_count++;
	assert_true(heard_count > 0 && heard_count < 1999);
	notify_alive(AT(20000)); /* and goes on when it does */
	assert_string_equal(heard(m), "WATCHDOG=1");
}

/* ---- the loop ---- */

struct scene {
	struct manager *m;
	struct loop *loop;
	int signs, signs_while_stuck;
};

static void stuck(void *arg)
{
	struct scene *s = arg;
	struct pollfd p = {.fd = s->m->fd, .events = POLLIN};

	while (heard(s->m)[0])
		continue;
	/* ten times as long as a sign may take */
	s->signs_while_stuck = poll(&p, 1, 100);
	loop_stop(s->loop);
}

static void on_sign(void *arg)
{
	struct scene *s = arg;

	if (strcmp(heard(s->m), "WATCHDOG=1") == 0 && ++s->signs == 3)
		assert_int_equal(loop_call(s->loop, stuck, s), 0);
}

static void a_stuck_loop_gives_no_sign(void **state)
{
	struct scene s = {.m = *state, .signs_while_stuck = -1};

	open_with_watchdog(NULL);
	assert_int_equal(loop_new(&s.loop), 0);
	assert_int_equal(loop_watch(s.loop, s.m->fd, on_sign, &s), 0);
	assert_int_equal(loop_notify(s.loop), 0);
	assert_int_equal(loop_run(s.loop), 0); /* ends only after three signs: the control */
	assert_true(s.signs >= 3);
	assert_int_equal(s.signs_while_stuck, 0);
	loop_free(s.loop);
}

static void a_loop_that_nobody_watches(void **state)
{
	struct scene s = {.m = *state};

	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_open(), 0);
	assert_int_equal(loop_new(&s.loop), 0);
	assert_int_equal(loop_notify(s.loop), 0);
	loop_stop(s.loop);
	assert_int_equal(loop_run(s.loop), 0);
	assert_string_equal(heard(s.m), "");
	loop_free(s.loop);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, manager_new, manager_free)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(says_all_at_a_path),
		CASE(says_it_at_an_abstract_name),
		CASE(helpers_do_not_inherit_it),
		CASE(is_silent_without_a_manager),
		CASE(refuses_what_makes_no_sense),
		CASE(gives_a_sign_every_half),
		CASE(another_process_is_watched),
		CASE(does_not_wait_for_the_manager),
		CASE(a_stuck_loop_gives_no_sign),
		CASE(a_loop_that_nobody_watches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
