/* SPDX-License-Identifier: Apache-2.0 */
/* incident_json.c - see incident_json.h.
 *
 * Names of traced processes are inside, so any byte may occur: what is not valid UTF-8 becomes
 * U+FFFD and control characters are escaped; the text is valid JSON whatever the names are. */
#include "agent/store/incident_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at @s, 0 if it is not one. The text ends with a NUL, which
 * never continues a sequence, so nothing is read past it. */
static size_t sequence_len(const unsigned char *s)
{
	size_t n;

	if (s[0] < 0x80)
		return 1;
	n = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
	    : (s[0] & 0xf0) == 0xe0        ? 3
	    : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
					   : 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
		(s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0; /* overlong, a surrogate, or beyond U+10FFFF */
	return n;
}

static void put_string(struct buf *out, const char *text)
{
	buf_putc(out, '"');
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t n = sequence_len(s);

		if (n == 0)
			buf_puts(out, "\xef\xbf\xbd");
		else if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			buf_printf(out, "\\u%04x", *s);
		else
			buf_append(out, s, n);
		s += n ? n : 1;
	}
	buf_putc(out, '"');
}

static void put_member(struct buf *out, const char *before, const char *key, const char *text)
{
	buf_printf(out, "%s\"%s\":", before, key);
	put_string(out, text);
}

void incident_json_causes(const struct incident *i, struct buf *out)
{
	buf_putc(out, '[');
	for (int n = 0; n < i->cause_count; n++) {
		const struct incident_cause *c = &i->causes[n];

		put_member(out, n ? ",{" : "{", "cause", cause_name(c->cause));
		put_member(out, ",", "layer", cause_layer(c->cause));
		buf_printf(out, ",\"ns\":%" PRIu64 ",\"calls\":%u", c->ns, c->calls);
		if (c->culprit_pid || c->culprit[0]) {
			buf_printf(out, ",\"culprit_pid\":%u", c->culprit_pid);
			put_member(out, ",", "culprit", c->culprit);
			buf_printf(out, ",\"culprit_share\":%.4f", c->culprit_share);
		}
		buf_putc(out, '}');
	}
	buf_putc(out, ']');
}

void incident_json_evidence(const struct incident *i, const char *node, struct buf *out)
{
	char id[320];

	buf_putc(out, '[');
	for (int n = 0; n < i->evidence_count; n++) {
		snprintf(id, sizeof(id), "%s:%" PRIu64, node, i->evidence[n]);
		if (n)
			buf_putc(out, ',');
		put_string(out, id);
	}
	buf_putc(out, ']');
}

void incident_json_timeline(const struct incident *i, struct buf *out)
{
	buf_putc(out, '[');
	for (int n = 0; n < i->step_count; n++) {
		const struct incident_step *s = &i->timeline[n];

		put_member(out, n ? ",{" : "{", "layer", s->layer);
		put_member(out, ",", "op", s->op);
		put_member(out, ",", "detail", s->detail);
		if (s->dur_ns)
			buf_printf(out, ",\"dur_us\":%" PRIu64, (uint64_t)(s->dur_ns / NS_PER_US));
		buf_printf(out, ",\"timestamp\":%" PRId64 "}", s->time.ns);
	}
	buf_putc(out, ']');
}

void incident_json_fixes(const struct incident *i, struct buf *out)
{
	buf_putc(out, '[');
	for (int n = 0; n < i->fix_count; n++) {
		if (n)
			buf_putc(out, ',');
		put_string(out, i->fixes[n]);
	}
	buf_putc(out, ']');
}
