/* SPDX-License-Identifier: Apache-2.0 */
/* client_names.c - names by evdns: /etc/hosts and the servers of /etc/resolv.conf.
 *
 * getaddrinfo() is never called: it blocks, and in a static program it loads libraries of the
 * machine it runs on. Those two files are read anew when they were last read a while ago and no
 * lookup is under way, since agents run for months.
 *
 * Who answers for a name is not always who configured it. So a name never leads to a link-local address, where the
 * metadata services of clouds are, and one that has led to the open network does not lead to a private
 * address or this machine later on. An address that was given itself is followed wherever it is.
 *
 * Invariant: a lookup whose answer has not come is evdns's until its function has run, even after
 * it was cancelled, and evdns uses its base until then: that is freed with the last of them. */
#include "net/client/client_private.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <limits.h>
#include <netinet/in.h>
#include <strings.h>

#include "base/file.h"

#define REREAD_NS (30 * NS_PER_S)
#define FAR_NAMES 256 /* of fan-outs to more, the last ones are not remembered */

struct client_names {
	struct event_base *base;
	const char *root;
	struct evdns_base *dns;
	uint64_t read_ns;
	size_t under_way;
	size_t cancelled;     /* their functions have not run yet */
	bool abandoned;       /* freed when there are no such */
	char *far[FAR_NAMES]; /* names that have led to the open network */
	size_t far_count;
};

struct client_lookup {
	struct client_names *names;
	bool cancelled;
	char *host;
	struct evdns_getaddrinfo_request *request;
	client_names_done *done;
	void *arg;
};

int client_names_new(struct event_base *base, const char *root, struct client_names **ret)
{
	struct client_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->base = base;
	n->root = root;
	*ret = n;
	return 0;
}

void client_names_free(struct client_names *n)
{
	n->abandoned = true;
	if (n->cancelled)
		return;
	if (n->dns)
		evdns_base_free(n->dns, 1);
	while (n->far_count)
		free(n->far[--n->far_count]);
	free(n);
}

/* The files' absence is no failure: names are then asked for on this machine, as everybody does. */
static int servers_read(struct client_names *n)
{
	uint64_t now_ns = mono_now().ns;
	char path[PATH_MAX];

	if (n->dns && (n->under_way || n->cancelled || now_ns - n->read_ns < REREAD_NS))
		return 0;
	if (n->dns)
		evdns_base_free(n->dns, 1);
	n->dns = evdns_base_new(n->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!n->dns)
		return -ENOMEM;
	n->read_ns = now_ns;
	evdns_base_set_option(n->dns, "timeout:", "2");
	if (file_join(path, sizeof(path), n->root, "/etc/resolv.conf") == 0)
		evdns_base_resolv_conf_parse(n->dns, DNS_OPTIONS_ALL & ~DNS_OPTION_HOSTSFILE, path);
	if (file_join(path, sizeof(path), n->root, "/etc/hosts") == 0)
		evdns_base_load_hosts(n->dns, path);
	return 0;
}

static void add_address(struct client_addresses *a, const struct sockaddr *sa, size_t len)
{
	if (a->count < CLIENT_ADDRESSES && len <= sizeof(a->at[0]))
		memcpy(&a->at[a->count++], sa, len);
}

/* Whether @host needs no asking: it is an address, or this machine. Servers here listen on
 * 127.0.0.1 unless told otherwise, so that comes first. */
static bool is_known(const char *host, uint16_t port, struct client_addresses *a)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	bool local = !strcasecmp(host, "localhost");

	if (inet_pton(AF_INET, local ? "127.0.0.1" : host, &v4.sin_addr) == 1)
		add_address(a, (struct sockaddr *)&v4, sizeof(v4));
	if (inet_pton(AF_INET6, local ? "::1" : host, &v6.sin6_addr) == 1)
		add_address(a, (struct sockaddr *)&v6, sizeof(v6));
	return a->count > 0;
}

/* ---- what a name may lead to ---- */

enum reach { REACH_FAR, REACH_NEAR, REACH_LINK };

struct net {
	uint32_t prefix;
	unsigned bits;
	enum reach reach;
};

static enum reach reach_v4(uint32_t a)
{
	static const struct net nets[] = {
		{0x00000000, 8, REACH_NEAR},  /* this machine, as far as Linux is concerned */
		{0x0a000000, 8, REACH_NEAR},  /* RFC 1918 */
		{0x64400000, 10, REACH_NEAR}, /* carriers' and clouds' own, RFC 6598 */
		{0x7f000000, 8, REACH_NEAR},
		{0xa9fe0000, 16, REACH_LINK},
		{0xac100000, 12, REACH_NEAR},
		{0xc0a80000, 16, REACH_NEAR},
	};

	for (size_t i = 0; i < ARRAY_SIZE(nets); i++)
		if (a >> (32 - nets[i].bits) == nets[i].prefix >> (32 - nets[i].bits))
			return nets[i].reach;
	return REACH_FAR;
}

static enum reach reach_of(const struct sockaddr_storage *a)
{
	static const unsigned char nat64[12] = {0x00, 0x64, 0xff, 0x9b};
	static const struct in6_addr ec2 = {{{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54}}};
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
	const unsigned char *p = v6->s6_addr;

	if (a->ss_family == AF_INET)
		return reach_v4(ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr));
	if (IN6_IS_ADDR_V4MAPPED(v6) || !memcmp(p, nat64, sizeof(nat64)))
		return reach_v4((uint32_t)p[12] << 24 | (uint32_t)p[13] << 16 |
				(uint32_t)p[14] << 8 | p[15]);
	if (IN6_IS_ADDR_LINKLOCAL(v6) || IN6_ARE_ADDR_EQUAL(v6, &ec2))
		return REACH_LINK;
	return IN6_IS_ADDR_LOOPBACK(v6) || IN6_IS_ADDR_UNSPECIFIED(v6) || (p[0] & 0xfe) == 0xfc
		       ? REACH_NEAR
		       : REACH_FAR;
}

/* Leaves of @a what @host may lead to. */
static void sift(struct client_names *n, const char *host, struct client_addresses *a)
{
	bool is_far = EXISTS(i, n->far_count, !strcasecmp(n->far[i], host)), was_far = is_far;
	size_t kept = 0;

	for (size_t i = 0; i < a->count; i++)
		is_far |= reach_of(&a->at[i]) == REACH_FAR;
	for (size_t i = 0; i < a->count; i++)
		if (reach_of(&a->at[i]) <= (is_far ? REACH_FAR : REACH_NEAR))
			a->at[kept++] = a->at[i];
	a->count = kept;
	if (is_far && !was_far && n->far_count < FAR_NAMES && (n->far[n->far_count] = strdup(host)))
		n->far_count++;
}

static int errno_of(int eai)
{
	switch (eai) {
	case EVUTIL_EAI_NONAME:
	case EVUTIL_EAI_NODATA: return -ENOENT;
	case EVUTIL_EAI_MEMORY: return -ENOMEM;
	default: /* no answer, or one that says that the server failed */ return -EHOSTUNREACH;
	}
}

static void on_answer(int eai, struct evutil_addrinfo *found, void *arg)
{
	struct client_lookup *l = arg;
	struct client_addresses a = {};
	size_t any;

	for (struct evutil_addrinfo *i = found; i; i = i->ai_next)
		if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
			add_address(&a, i->ai_addr, i->ai_addrlen);
	if (found)
		evutil_freeaddrinfo(found);
	any = a.count;
	sift(l->names, l->host, &a);
	if (l->cancelled) {
		if (--l->names->cancelled == 0 && l->names->abandoned)
			client_names_free(l->names);
	} else {
		l->names->under_way--;
		if (a.count)
			l->done(l->arg, 0, &a);
		else
			l->done(l->arg, any ? -EACCES : eai ? errno_of(eai) : -ENOENT, NULL);
	}
	free(l->host);
	free(l);
}

int client_names_lookup(struct client_names *n, const char *host, uint16_t port,
	client_names_done *done, void *arg, struct client_lookup **ret)
{
	struct evutil_addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};
	struct evdns_getaddrinfo_request *request;
	struct client_addresses a = {};
	struct client_lookup *l;
	int r;

	*ret = NULL;
	if (is_known(host, port, &a)) {
		done(arg, 0, &a);
		return 0;
	}
	r = servers_read(n);
	if (r < 0)
		return r;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct client_lookup){.names = n, .host = strdup(host), .done = done, .arg = arg};
	if (!l->host) {
		free(l);
		return -ENOMEM;
	}
	n->under_way++;
	/* NULL: on_answer() has run, and @l is gone. */
	request = evdns_getaddrinfo(n->dns, host, FORMATTED(8, "%u", port), &hints, on_answer, l);
	if (request) {
		l->request = request;
		*ret = l;
	}
	return 0;
}

void client_names_cancel(struct client_lookup *l)
{
	l->names->under_way--;
	l->names->cancelled++;
	l->cancelled = true;
	evdns_getaddrinfo_cancel(l->request);
}

bool client_address_is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	if (a->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		return v6->sin6_addr.s6_addr[12] == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}
