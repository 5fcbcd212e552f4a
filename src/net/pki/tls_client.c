/* SPDX-License-Identifier: Apache-2.0 */
/* tls_client.c - which servers a client trusts, what it shows them, and why a handshake failed.
 *
 * A server is trusted by the user's fingerprints, by an earlier meeting, by an authority, in this order: if its
 * certificate is of an authority (or is itself one of the certificates in the file of authorities) and holds the
 * name or address that was asked for; or if it shows exactly the certificate of a fingerprint, or of an earlier
 * meeting: then neither authority, name nor dates matter, because no other certificate would do. Nobody is written
 * down before the handshake has shown that the server holds the certificate's key. */
#include "net/pki/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509err.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "net/pki/cert.h"
#include "net/pki/tls_private.h"

DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)

/* ---- authorities ---- */

/* Where distributions keep their authorities; a static program cannot know which it runs on. */
static int trust_system(SSL_CTX *ctx)
{
	static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

	SSL_CTX_set_default_verify_paths(ctx);
	if (getenv(X509_get_default_cert_file_env()) || !access(X509_get_default_cert_dir(), R_OK))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(bundles); i++)
		if (!access(bundles[i], R_OK))
			return SSL_CTX_load_verify_file(ctx, bundles[i]) == 1 ? 0 : -EINVAL;
	return 0; /* nobody is trusted: each server is refused with a sentence */
}

static int trust_file(SSL_CTX *ctx, const char *path, struct errinfo *reterr)
{
	ERR_clear_error();
	if (SSL_CTX_load_verify_file(ctx, path) != 1)
		return errinfo_set(reterr, access(path, R_OK) < 0 ? -errno : -EINVAL,
			"cannot read the CA certificates from %s: %s", path, tls_reason());
	/* What the file holds is trusted as it is: a server's own certificate too. */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
	return 0;
}

/* ---- what it shows ---- */

static int show(SSL_CTX *ctx, const char *cert, const char *key, struct errinfo *reterr)
{
	int r = tls_key_check(key, reterr);

	if (r < 0)
		return r;
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		return errinfo_set(reterr, access(cert, R_OK) < 0 ? -errno : -EINVAL,
			"cannot read the client certificate from %s: %s", cert, tls_reason());
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1)
		return 0;
	if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
		return errinfo_set(
			reterr, -EINVAL, "%s is not the key of the certificate in %s", key, cert);
	return errinfo_set(
		reterr, -EINVAL, "cannot read the client key from %s: %s", key, tls_reason());
}

/* ---- whether a server is trusted ---- */

static bool is_unvouched(int why)
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
	if (!is_unvouched(X509_STORE_CTX_get_error(store)))
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
static int judge(X509_STORE_CTX *store, void *arg)
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
			"%s presents two different certificates: find out which one is right",
			m->endpoint);
	case KNOWN_STRANGER: break;
	}
	snprintf(s.node, sizeof(s.node), "%s", m->endpoint);
	return tls_trust(m->tls, &s, reterr);
}

/* ---- the context ---- */

static int load(struct tls *t, SSL_CTX **ret, struct errinfo *reterr)
{
	_cleanup_(SSL_CTX_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	int r = 0;

	if (!ctx)
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	/* Bytes that the kernel did not take are offered again from wherever they lie by then. */
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_cert_verify_callback(ctx, judge, NULL);
	r = t->ca ? trust_file(ctx, t->ca, reterr) : trust_system(ctx);
	if (r == 0 && t->cert)
		r = show(ctx, t->cert, t->key, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(ctx);
	return 0;
}

static int copy(const char *s, char **ret)
{
	*ret = s ? strdup(s) : NULL;
	return s && !*ret ? -ENOMEM : 0;
}

int tls_client_new(const struct tls_client_settings *s, struct tls **ret, struct errinfo *reterr)
{
	_cleanup_(tls_freep) struct tls *t = calloc(1, sizeof(*t));
	int r;

	if (!t || copy(s->ca, &t->ca) || copy(s->cert, &t->cert) || copy(s->key, &t->key))
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	if (!s->cert != !s->key)
		return errinfo_set(
			reterr, -EINVAL, "client certificate and key must be given together");
	for (size_t i = 0; i < s->pin_count; i++) {
		r = tls_pins_add(&t->pins, s->pins[i], reterr);
		if (r < 0)
			return r;
	}
	t->first_use = s->first_use;
	if (copy(s->known, &t->known_path))
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	r = s->known ? known_nodes_load(s->known, &t->known, reterr) : 0;
	if (r < 0)
		return r;
	t->load = load;
	r = load(t, &t->ctx, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(t);
	return 0;
}

/* ---- one connection ---- */

static bool is_address(const char *host)
{
	unsigned char a[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, a) == 1 || inet_pton(AF_INET6, host, a) == 1;
}

/* The name that must be in the certificate; also told to the server, which may have several. */
static int expect(SSL *ssl, const char *host)
{
	char name[256];
	size_t len = strlen(host);

	if (is_address(host))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	if (len && host[len - 1] == '.') /* the root, which certificates leave out */
		len--;
	snprintf(name, sizeof(name), "%.*s", (int)len, host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}

int tls_client_ssl(
	struct tls *t, const char *host, struct tls_meeting *m, SSL **ret, struct errinfo *reterr)
{
	SSL *ssl = SSL_new(t->ctx);

	if (!ssl || !expect(ssl, host)) {
		SSL_free(ssl);
		return errinfo_set(reterr, -ENOMEM, "%s: out of memory for TLS", m->endpoint);
	}
	m->tls = t;
	SSL_set_app_data(ssl, m);
	SSL_set_connect_state(ssl);
	*ret = ssl;
	return 0;
}

/* ---- why a handshake failed, in a sentence that says what to do ---- */

static int explain_ground(const struct tls_meeting *m, struct errinfo *reterr)
{
	const char *file = m->tls->known_path;

	if (m->ground == TLS_NOT_PINNED)
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s does not match the given fingerprint: compare it with the one that the server prints when it starts",
			m->endpoint);
	return errinfo_set(reterr, -EKEYREJECTED,
		"the certificate of %s has changed, it is not the one in %s line %zu: if the node was given a new one, delete that line with `sed -i %zud %s`; if not, the connection may be intercepted",
		m->endpoint, file, m->line, m->line, file);
}

static int explain_authority(const struct tls_meeting *m, struct errinfo *reterr)
{
	char hex[2 * TLS_PIN_BYTES + 1];

	tls_pin_text(&m->shown, hex);
	if (m->signed_by && m->trusted_ca > m->signed_by)
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is of CA %u of this fleet, which was replaced: give the node a new one, `ingero cert rotate`",
			m->endpoint, m->signed_by);
	if (m->trusted_ca && m->trusted_ca < m->signed_by)
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is of CA %u of this fleet, which is not in %s yet: copy the CA's new ca.pem",
			m->endpoint, m->signed_by, m->tls->ca ? m->tls->ca : "the system's store");
	if (m->ground == TLS_STRANGER)
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is not signed by a trusted CA: give --ca-cert with the CA's certificate, or --trust-on-first-use to trust this one from now on (SHA-256 %s)",
			m->endpoint, hex);
	return errinfo_set(reterr, -EKEYREJECTED,
		"the certificate of %s is not signed by a trusted CA: give --ca-cert with the CA's certificate, or with the server's own if it is self-signed",
		m->endpoint);
}

static int explain_verify(long why, const struct tls_meeting *m, struct errinfo *reterr)
{
	if (is_unvouched((int)why))
		return explain_authority(m, reterr);
	switch (why) {
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is for another name: use a name in the certificate, or add this name to it",
			m->endpoint);
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s has expired: renew it on the server", m->endpoint);
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is not valid yet: compare the clocks of both "
			"machines",
			m->endpoint);
	case X509_V_ERR_INVALID_PURPOSE:
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s is for clients only: issue one for the node, without --client",
			m->endpoint);
	case X509_V_ERR_APPLICATION_VERIFICATION: return explain_ground(m, reterr);
	default:
		return errinfo_set(reterr, -EKEYREJECTED, "the certificate of %s is rejected: %s",
			m->endpoint, X509_verify_cert_error_string(why));
	}
}

/* explain_unknown - our certificate is of an authority that the server does not know; it has named
 * those that it does. */
static int explain_unknown(const SSL *ssl, const char *endpoint, struct errinfo *reterr)
{
	const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(ssl);
	const X509 *own = SSL_get_certificate(ssl);
	char fleet[CERT_HEX_MAX], other[CERT_HEX_MAX];
	unsigned mine = 0, theirs = 0, generation;

	if (!own || !cert_fleet(X509_get_issuer_name(own), fleet, &mine))
		mine = 0;
	for (int i = 0; mine && i < sk_X509_NAME_num(names); i++)
		if (cert_fleet(sk_X509_NAME_value(names, i), other, &generation) &&
			!strcmp(fleet, other))
			theirs = MAX(theirs, generation);
	if (theirs && theirs != mine)
		return errinfo_set(reterr, -EKEYREJECTED,
			"%s rejects the client certificate: it is of CA %u of this fleet, and the node trusts CA %u; %s",
			endpoint, mine, theirs,
			mine < theirs ? "get a new one, `ingero cert rotate`"
				      : "copy the CA's new ca.pem to the node");
	return errinfo_set(reterr, -EKEYREJECTED,
		"%s rejects the client certificate (unknown CA): give one signed by its CA with --client-cert and --client-key",
		endpoint);
}

int tls_client_explain(const SSL *ssl, const char *endpoint, struct errinfo *reterr)
{
	switch (ERR_GET_REASON(ERR_peek_error())) {
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		return explain_verify(SSL_get_verify_result(ssl), SSL_get_app_data(ssl), reterr);
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return explain_unknown(ssl, endpoint, reterr);
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
		return errinfo_set(reterr, -EKEYREJECTED,
			"%s rejects the client certificate, which has expired: get a new one, `ingero cert rotate`, and give it with --client-cert and --client-key",
			endpoint);
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
	case SSL_R_UNEXPECTED_MESSAGE:
		return errinfo_set(reterr, -EPROTO,
			"%s does not use TLS: write http:// before its address", endpoint);
	case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
	case SSL_R_UNSUPPORTED_PROTOCOL:
		return errinfo_set(reterr, -EPROTO,
			"%s does not support TLS 1.3, the only accepted version: update the server",
			endpoint);
	case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
		return errinfo_set(reterr, -EPROTO,
			"%s uses another protocol inside TLS than requested: check the port",
			endpoint);
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return errinfo_set(reterr, -EKEYREJECTED,
			"%s requires a client certificate: give --client-cert and --client-key",
			endpoint);
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		return errinfo_set(reterr, -EKEYREJECTED,
			"%s rejects the client certificate (%s): give one signed by its CA with --client-cert and --client-key",
			endpoint, tls_reason());
	default:
		return errinfo_set(
			reterr, -EPROTO, "TLS with %s failed: %s", endpoint, tls_reason());
	}
}

bool tls_client_was_cut(void)
{
	return ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
}
