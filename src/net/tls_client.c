/* SPDX-License-Identifier: Apache-2.0 */
/* tls_client.c - interim: the client's half of TLS follows. */
#include "net/tls_client.h"

#include <errno.h>

__attribute__((weak)) void tls_free(struct tls *t)
{
	(void)t;
}

int tls_client_new(const struct tls_client_settings *s, struct tls **ret, struct errinfo *reterr)
{
	(void)s, (void)ret;
	return errinfo_set(reterr, -EOPNOTSUPP, "TLS is not there yet");
}

int tls_client_ssl(
	struct tls *t, const char *host, const char *place, SSL **ret, struct errinfo *reterr)
{
	(void)t, (void)host, (void)ret;
	return errinfo_set(reterr, -EOPNOTSUPP, "%s: TLS is not there yet", place);
}

int tls_client_explain(const SSL *ssl, const char *place, struct errinfo *reterr)
{
	(void)ssl;
	return errinfo_set(reterr, -EPROTO, "TLS with %s failed", place);
}

bool tls_client_was_cut(void)
{
	return false;
}
