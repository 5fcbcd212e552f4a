/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - see trust.h. */
#include "command/trust.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path_user.h"
#include "base/text.h"

int trust_known_path(char **ret, struct errinfo *reterr)
{
	return owner_home_file(TRUST_FILE, ret, reterr);
}

/* Only "yes" is yes: the answer is worth a look at the fingerprint. */
static bool ask_one(const struct tls_stranger *s)
{
	_cleanup_buf_ struct buf node = BUF_INIT(4096);
	char hex[2 * TLS_PIN_BYTES + 1], answer[16];

	tls_pin_text(&s->pin, hex);
	text_escape_terminal(&node, s->node);
	fprintf(stderr,
		"The certificate of %s is not known, and no trusted CA has signed it.\n"
		"  SHA-256 %s\n"
		"The node prints this when its dashboard starts. Trust it from now on? [yes/no] ",
		buf_str(&node), hex);
	fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin)) {
		fputc('\n', stderr);
		return false;
	}
	answer[strcspn(answer, "\r\n")] = 0;
	return !strcmp(answer, "yes");
}

int trust_ask(struct tls *tls, struct errinfo *reterr)
{
	const struct tls_stranger *list;
	size_t count = tls ? tls_strangers(tls, &list) : 0;
	int r, trusted = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!ask_one(&list[i]))
			continue;
		r = tls_trust(tls, &list[i], reterr);
		if (r < 0)
			return r;
		trusted++;
	}
	if (tls)
		tls_forget_strangers(tls);
	return trusted;
}

void trust_warn(const struct tls *tls)
{
	_cleanup_buf_ struct buf b = BUF_INIT(16384);

	if (!tls)
		return;
	tls_expiry(tls, &b);
	for (const char *line = buf_str(&b); *line;) {
		size_t len = strcspn(line, "\n");

		log_warning("%.*s", (int)len, line);
		line += len + (line[len] == '\n');
	}
}
