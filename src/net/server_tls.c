/* SPDX-License-Identifier: Apache-2.0 */
/* server_tls.c - the TLS of a server's connection. */
#include "net/server_tls.h"

struct bufferevent *server_tls_bufferevent(struct connection *c, struct event_base *base, int fd)
{
	return NULL;
}
int server_tls_accepted(struct connection *c)
{
	return 0;
}
bool server_tls_chose_h2(const struct connection *c)
{
	return false;
}
void server_tls_say_goodbye(struct connection *c)
{
}
