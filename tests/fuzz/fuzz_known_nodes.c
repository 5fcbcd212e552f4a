/* SPDX-License-Identifier: Apache-2.0 */
/* Files of known nodes and of fingerprints, and a CA's index: what cannot be read has a sentence with
 * its line; what can be read, and is written again, reads the same. */
#include "base/buf.h"
#include "fuzz.h"
#include "net/pki/ca.h"
#include "net/pki/known_nodes.h"

static void read_nodes(const char *text, size_t size)
{
	_cleanup_(known_nodes_done) struct known_nodes k = {0}, again = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 20);
	struct errinfo e = {0};
	size_t line = 0;

	if (known_nodes_parse("f", text, size, &k, &e) < 0) {
		MUST(*e.text && !k.count);
		return;
	}
	for (size_t i = 0; i < k.count; i++) {
		char hex[2 * TLS_PIN_BYTES + 1];

		MUST(known_nodes_judge(&k, k.rows[i].node, &k.rows[i].pin, &line) == KNOWN_MATCH);
		MUST(k.rows[i].line > 0 && (!i || k.rows[i].line > k.rows[i - 1].line));
		tls_pin_text(&k.rows[i].pin, hex);
		buf_printf(&b, "%s %s\n", k.rows[i].node, hex);
	}
	MUST(known_nodes_parse("f", buf_str(&b), b.len, &again, &e) == 0);
	MUST(again.count == k.count);
	for (size_t i = 0; i < k.count; i++)
		MUST(!strcmp(again.rows[i].node, k.rows[i].node) &&
			tls_pin_equal(&again.rows[i].pin, &k.rows[i].pin));
}

static void read_index(const char *text, size_t size)
{
	_cleanup_(ca_index_done) struct ca_index x = {0}, again = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 20);
	struct errinfo e = {0};

	if (ca_index_parse("f", text, size, &x, &e) < 0) {
		MUST(*e.text && !x.count);
		return;
	}
	for (size_t i = 0; i < x.count; i++)
		MUST(ca_name_is_good(x.rows[i].name) && !strchr(x.rows[i].serial, '/'));
	MUST(ca_index_write(&x, &b) == 0);
	MUST(ca_index_parse("f", buf_str(&b), b.len, &again, &e) == 0 && again.count == x.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls_pins pins = {0};
	struct errinfo e = {0};
	char *text = fuzz_text(data, size);

	read_nodes((const char *)data, size);
	read_index((const char *)data, size);
	if (tls_pins_add(&pins, text, &e) < 0)
		MUST(*e.text && !pins.count);
	tls_pins_done(&pins);
	free(text);
	return 0;
}
