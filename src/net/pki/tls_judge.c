/* SPDX-License-Identifier: Apache-2.0 */
/* tls_judge.c - whether a server is trusted: by the user's fingerprints, by an earlier meeting, by an
 * authority, in this order. Nobody is written down before the handshake has shown that the server
 * holds the certificate's key. */
#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/pki/cert_build.h"
#include "net/pki/tls_client.h"
#include "net/pki/tls_private.h"

bool tls_is_unvouched(int why)
{
	switch (why) {
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE: return true;
	default: return false;
	}
}

/* find_generation - of the fleet's CA that signed @leaf, and what is trusted of it. */
static void find_generation(struct tls_meeting *m, const X509 *leaf)
{
	const STACK_OF(X509_OBJECT) *all =
		X509_STORE_get0_objects(SSL_CTX_get_cert_store(m->tls->ctx));
	char fleet[CERT_HEX_MAX], other[CERT_HEX_MAX];
	unsigned generation;

	m->signed_by = 0;
	if (!cert_fleet(X509_get_issuer_name(leaf), fleet, &m->signed_by))
		return;
	for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
		const X509 *ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));

		if (ca && cert_fleet(X509_get_subject_name(ca), other, &generation) &&
			!strcmp(fleet, other))
			m->trusted_ca = MAX(m->trusted_ca, generation);
	}
}

static bool is_in_time(const X509 *cert)
{
	return X509_cmp_current_time(X509_get0_notBefore(cert)) < 0 &&
	       X509_cmp_current_time(X509_get0_notAfter(cert)) > 0;
}

static void note_stranger(struct tls *t, const struct tls_meeting *m)
{
	struct tls_stranger *p;

	for (size_t i = 0; i < t->stranger_count; i++)
		if (!strcmp(t->strangers[i].node, m->endpoint) &&
			tls_pin_equal(&t->strangers[i].pin, &m->shown))
			return;
	if (t->stranger_count == TLS_PINS_MAX)
		return;
	p = realloc(t->strangers, (t->stranger_count + 1) * sizeof(*p));
	if (!p)
		return;
	t->strangers = p;
	/* In the order of their names: that of their answers differs from one time to the next. */
	for (p += t->stranger_count++; p > t->strangers && strcmp(p[-1].node, m->endpoint) > 0; p--)
		*p = p[-1];
	*p = (struct tls_stranger){.pin = m->shown};
	snprintf(p->node, sizeof(p->node), "%s", m->endpoint);
}

/* judge_known - of a server that no fingerprint of the user's is about: as met before, or by an
 * authority; a stranger may be trusted from now on. */
static int judge_known(struct tls_meeting *m, X509_STORE_CTX *store, const X509 *leaf)
{
	struct tls *t = m->tls;
	enum known_verdict known = known_nodes_judge(&t->known, m->endpoint, &m->shown, &m->line);

	if (known == KNOWN_MATCH) {
		m->ground = TLS_BY_MEETING;
		return X509_V_OK;
	}
	if (known == KNOWN_CHANGED) {
		m->ground = TLS_NOT_AS_MET;
		return X509_V_ERR_APPLICATION_VERIFICATION;
	}
	m->ground = TLS_BY_AUTHORITY;
	if (X509_verify_cert(store) == 1)
		return X509_V_OK;
	if (!tls_is_unvouched(X509_STORE_CTX_get_error(store)))
		return X509_STORE_CTX_get_error(store);
	find_generation(m, leaf);
	if (!t->known_path)
		return X509_STORE_CTX_get_error(store);
	if (!is_in_time(leaf))
		return X509_V_ERR_CERT_HAS_EXPIRED;
	m->ground = t->first_use ? TLS_BY_FIRST_USE : TLS_STRANGER;
	if (t->first_use)
		return X509_V_OK;
	note_stranger(t, m);
	return X509_STORE_CTX_get_error(store);
}

/* Instead of OpenSSL's walk along the chain, which is a part of it. */
int tls_judge(X509_STORE_CTX *store, void *arg)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls_meeting *m = SSL_get_app_data(ssl);
	const X509 *leaf = X509_STORE_CTX_get0_cert(store);
	unsigned int len = 0;
	int why = X509_V_ERR_APPLICATION_VERIFICATION;

	(void)arg;
	if (!leaf || X509_digest(leaf, EVP_sha256(), m->shown.bytes, &len) != 1 ||
		len != sizeof(m->shown.bytes)) {
		X509_STORE_CTX_set_error(store, X509_V_ERR_UNSPECIFIED);
		return 0;
	}
	switch (tls_pins_judge(&m->tls->pins, m->endpoint, &m->shown)) {
	case TLS_PINS_MATCH:
		m->ground = TLS_BY_PIN;
		why = X509_V_OK;
		break;
	case TLS_PINS_DIFFER: m->ground = TLS_NOT_PINNED; break;
	case TLS_PINS_SILENT: why = judge_known(m, store, leaf); break;
	}
	X509_STORE_CTX_set_error(store, why);
	return why == X509_V_OK;
}

size_t tls_strangers(const struct tls *t, const struct tls_stranger **ret)
{
	*ret = t->strangers;
	return t->stranger_count;
}

void tls_forget_strangers(struct tls *t)
{
	t->stranger_count = 0;
}

int tls_trust(struct tls *t, const struct tls_stranger *s, struct errinfo *reterr)
{
	int r = known_nodes_remember(t->known_path, s->node, &s->pin, reterr);

	return r < 0 ? r : known_nodes_add(&t->known, s->node, &s->pin);
}

int tls_client_met(const struct tls_meeting *m, struct errinfo *reterr)
{
	struct tls_stranger s = {.pin = m->shown};
	size_t line;

	/* Of two connections at once the first one writes it down. */
	if (m->ground != TLS_BY_FIRST_USE)
		return 0;
	switch (known_nodes_judge(&m->tls->known, m->endpoint, &m->shown, &line)) {
	case KNOWN_MATCH: return 0;
	case KNOWN_CHANGED:
		return errinfo_set(reterr, -EKEYREJECTED,
			"%s shows two certificates at once: ask which of them is right",
			m->endpoint);
	case KNOWN_STRANGER: break;
	}
	snprintf(s.node, sizeof(s.node), "%s", m->endpoint);
	return tls_trust(m->tls, &s, reterr);
}
