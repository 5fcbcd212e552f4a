/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - tells the service manager how this program is doing, by systemd's notify protocol:
 * datagrams to the socket in $NOTIFY_SOCKET. Without one every function does nothing.
 *
 * The watchdog's sign of life is sent by the thread whose work matters, between two pieces of it
 * (notify_alive() in a loop of one's own, loop_notify() in net/loop.h): a thread for the purpose would
 * go on saying that all is well while the work hangs.
 *
 * One manager a process. notify_open() comes before there are threads; the others belong to one thread
 * at a time. A message that cannot be sent is dropped: a program does not fail because of its manager. */
#pragma once

#include "base/clock.h"
#include "base/macros.h"

/* notify_open - finds the manager, connects, and takes the variables out of the environment, so that
 * helper processes do not speak for this one. 1 if there is one, 0 if not; -EINVAL or another errno if
 * $NOTIFY_SOCKET or $WATCHDOG_USEC makes no sense or nobody listens there. */
int notify_open(void);
void notify_close(void);
bool notify_is_open(void);

/* notify_ready - the work has begun, or goes on after notify_reloading(); the text is shown by
 * `systemctl status`. */
void notify_ready(const char *fmt, ...) _printf_(1, 2);
void notify_status(const char *fmt, ...) _printf_(1, 2);
void notify_reloading(void);
void notify_stopping(void);

/* notify_pulse_ns - how often a sign of life is wanted: half of the time after which the manager loses
 * patience. 0: never. */
uint64_t notify_pulse_ns(void);

/* notify_alive - a sign of life, if it is due at @now. To be called often. */
void notify_alive(mono_time now);
