/* SPDX-License-Identifier: Apache-2.0 */
/* tls_pin.c - see tls_pin.h. */
#include "net/pki/tls_pin.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int tls_pin_parse(const char *s, size_t len, struct tls_pin *ret)
{
	struct tls_pin f = {0};
	size_t digits = 0;

	for (size_t i = 0; i < len; i++) {
		int c = tolower((unsigned char)s[i]);

		if (c == ':' && digits && digits % 2 == 0 && i + 1 < len && s[i - 1] != ':')
			continue;
		if (!isxdigit(c) || digits == 2 * sizeof(f.bytes))
			return -EINVAL;
		f.bytes[digits / 2] = (unsigned char)(f.bytes[digits / 2] << 4 |
						      (c <= '9' ? c - '0' : c - 'a' + 10));
		digits++;
	}
	if (digits != 2 * sizeof(f.bytes))
		return -EINVAL;
	*ret = f;
	return 0;
}

void tls_pin_text(const struct tls_pin *p, char out[2 * TLS_PIN_BYTES + 1])
{
	for (size_t i = 0; i < sizeof(p->bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", p->bytes[i]);
}

bool tls_pin_equal(const struct tls_pin *a, const struct tls_pin *b)
{
	return CRYPTO_memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void tls_pins_done(struct tls_pins *p)
{
	free(p->rows);
	*p = (struct tls_pins){0};
}

int tls_pins_add(struct tls_pins *p, const char *text, struct errinfo *reterr)
{
	const char *equals = strrchr(text, '='), *hex = equals ? equals + 1 : text;
	size_t node_len = equals ? (size_t)(equals - text) : 0;
	struct tls_pin_row row = {0}, *grown;

	if (tls_pin_parse(hex, strlen(hex), &row.pin) < 0 || (equals && !node_len) ||
		node_len >= sizeof(row.node))
		return errinfo_set(reterr, -EINVAL,
			"a fingerprint has 64 hexadecimal digits (SHA-256), with NODE= in front if it is for one node; the server prints it when it starts");
	if (p->count == TLS_PINS_MAX)
		return errinfo_set(
			reterr, -E2BIG, "there can be at most %d fingerprints", TLS_PINS_MAX);
	memcpy(row.node, text, node_len);
	grown = realloc(p->rows, (p->count + 1) * sizeof(*grown));
	if (!grown)
		return errinfo_set(reterr, -ENOMEM, "out of memory for TLS");
	p->rows = grown;
	p->rows[p->count++] = row;
	return 0;
}

/* is_for - "gpu1" and "gpu1:8080" are for the endpoint "gpu1:8080", "[::1]" for "[::1]:8080". */
static bool is_for(const char *node, const char *endpoint)
{
	size_t len = strlen(node);
	const char *port = strrchr(endpoint, ':');

	return !strcasecmp(node, endpoint) ||
	       (port && len == (size_t)(port - endpoint) && !strncasecmp(node, endpoint, len));
}

enum tls_pins_verdict tls_pins_judge(
	const struct tls_pins *p, const char *endpoint, const struct tls_pin *shown)
{
	bool own = false, general = false, own_match = false, general_match = false;

	for (size_t i = 0; i < p->count; i++) {
		const struct tls_pin_row *row = &p->rows[i];
		bool match = tls_pin_equal(&row->pin, shown);

		if (!row->node[0]) {
			general = true;
			general_match = general_match || match;
		} else if (is_for(row->node, endpoint)) {
			own = true;
			own_match = own_match || match;
		}
	}
	if (own)
		return own_match ? TLS_PINS_MATCH : TLS_PINS_DIFFER;
	if (general)
		return general_match ? TLS_PINS_MATCH : TLS_PINS_DIFFER;
	return TLS_PINS_SILENT;
}
