/* SPDX-License-Identifier: Apache-2.0 */
/* socket_owner.c - see socket_owner.h.
 *
 * The question goes to the kernel over a netlink socket of its own, so that it is about the network
 * namespace that this process is in, and is answered within sendto(): nothing is waited for.
 *
 * Invariants:
 *  1. The socket that is asked about is named by all four of its addresses and ports.
 *  2. A socket that no process holds any more has no owner, whatever user the kernel writes for it
 *     (it writes root).
 *  3. The number that stands for all users that this user namespace does not know is nobody's. */
#include "net/server/socket_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#define UNKNOWN_USER 65534 /* of every namespace, unless kernel.overflowuid was changed */

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

static void put_end(const union address *a, __be16 *port, __be32 host[4])
{
	if (a->any.sa_family == AF_INET) {
		*port = a->v4.sin_port;
		memcpy(host, &a->v4.sin_addr, sizeof(a->v4.sin_addr));
	} else {
		*port = a->v6.sin6_port;
		memcpy(host, &a->v6.sin6_addr, sizeof(a->v6.sin6_addr));
	}
}

static int send_question(int fd, const union address *remote, const union address *local)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct question q = {.head = {.nlmsg_len = sizeof(q),
				     .nlmsg_type = SOCK_DIAG_BY_FAMILY,
				     .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (uint8_t)remote->any.sa_family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = UINT32_MAX,
			.id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
	ssize_t n;

	put_end(remote, &q.body.id.idiag_sport, q.body.id.idiag_src);
	put_end(local, &q.body.id.idiag_dport, q.body.id.idiag_dst);
	n = sendto(fd, &q, sizeof(q), 0, (const struct sockaddr *)&kernel, sizeof(kernel));
	return n == (ssize_t)sizeof(q) ? 0 : n < 0 ? -errno : -EIO;
}

/* The kernel gives a listener on the same port where the connection is gone: not who was meant. */
static bool is_asked_for(
	const struct inet_diag_msg *m, const union address *remote, const union address *local)
{
	return m->idiag_inode && m->id.idiag_sport == htons(address_port(remote)) &&
	       m->id.idiag_dport == htons(address_port(local));
}

static int read_answer(int fd, const union address *remote, const union address *local, uid_t *ret)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} a;
	ssize_t n = recv(fd, &a, sizeof(a), MSG_DONTWAIT);
	const struct inet_diag_msg *m = NLMSG_DATA(&a.head);
	const struct nlmsgerr *e = NLMSG_DATA(&a.head);

	if (n < 0)
		return -errno;
	if (!NLMSG_OK(&a.head, (size_t)n))
		return -EIO;
	if (a.head.nlmsg_type == NLMSG_ERROR)
		return a.head.nlmsg_len >= NLMSG_LENGTH(sizeof(*e)) && e->error < 0 ? e->error
										    : -EIO;
	if (a.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || a.head.nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return -EIO;
	if (!is_asked_for(m, remote, local))
		return -ENOENT;
	*ret = m->idiag_uid;
	return 0;
}

int socket_owner(const union address *remote, const union address *local, uid_t *ret)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (remote->any.sa_family != local->any.sa_family ||
		(remote->any.sa_family != AF_INET && remote->any.sa_family != AF_INET6))
		return -EAFNOSUPPORT;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		return -errno;
	r = send_question(fd, remote, local);
	return r < 0 ? r : read_answer(fd, remote, local, ret);
}

bool socket_owner_is_one_of(
	const union address *remote, const union address *local, const uid_t *users, size_t count)
{
	uid_t uid;

	if (!count || !address_is_loopback(remote) || !address_is_loopback(local) ||
		socket_owner(remote, local, &uid) < 0 || uid == UNKNOWN_USER)
		return false;
	return EXISTS(i, count, users[i] == uid);
}
