/* SPDX-License-Identifier: Apache-2.0 */
/* client_names.c - names by evdns: /etc/hosts and the servers of /etc/resolv.conf.
 *
 * getaddrinfo() is never called: it blocks, and in a static program it loads libraries of the
 * machine it runs on. Those two files are read anew when they were last read a while ago and no
 * lookup is under way, since agents run for months.
 *
 * Invariant: a lookup whose answer has not come is evdns's until its function has run, even after
 * it was cancelled, and evdns uses its base until then: that is freed with the last of them. */
#include "net/client_names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/file.h"

#define REREAD_NS (30 * NS_PER_S)

struct client_names {
	struct event_base *base;
	const char *root;
	struct evdns_base *dns;
	uint64_t read_ns;
	size_t under_way;
	size_t cancelled; /* their functions have not run yet */
	bool abandoned;   /* freed when there are no such */
};

struct client_lookup {
	struct client_names *names;
	bool cancelled;
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

	for (struct evutil_addrinfo *i = found; i; i = i->ai_next)
		if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
			add_address(&a, i->ai_addr, i->ai_addrlen);
	if (found)
		evutil_freeaddrinfo(found);
	if (l->cancelled) {
		if (--l->names->cancelled == 0 && l->names->abandoned)
			client_names_free(l->names);
	} else {
		l->names->under_way--;
		if (a.count)
			l->done(l->arg, 0, &a);
		else
			l->done(l->arg, eai ? errno_of(eai) : -ENOENT, NULL);
	}
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
	char service[8];
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
	*l = (struct client_lookup){.names = n, .done = done, .arg = arg};
	n->under_way++;
	snprintf(service, sizeof(service), "%u", port);
	/* NULL: on_answer() has run, and @l is gone. */
	request = evdns_getaddrinfo(n->dns, host, service, &hints, on_answer, l);
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
