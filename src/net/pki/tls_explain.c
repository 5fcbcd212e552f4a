/* SPDX-License-Identifier: Apache-2.0 */
/* tls_explain.c - why a handshake failed, in a sentence that says what to do. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <string.h>

#include "net/pki/cert_build.h"
#include "net/pki/tls_client.h"
#include "net/pki/tls_private.h"

static int explain_ground(const struct tls_meeting *m, struct errinfo *reterr)
{
	const char *file = m->tls->known_path;

	if (m->ground == TLS_NOT_PINNED)
		return errinfo_set(reterr, -EKEYREJECTED,
			"the certificate of %s does not match the given fingerprint: compare it with the one that the server prints when it starts",
			m->endpoint);
	return errinfo_set(reterr, -EKEYREJECTED,
		"the certificate of %s has changed, it is not the one in %s line %zu: if the node was given a new one, delete that line with `sed -i %zud %s`; if not, somebody may be in between",
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
	if (tls_is_unvouched((int)why))
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
		return errinfo_set(
			reterr, -EPROTO, "%s does not use TLS: give --no-tls or http://", endpoint);
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
