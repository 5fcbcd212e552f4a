/* SPDX-License-Identifier: Apache-2.0 */
/* push_who.c - who pushes, as attributes of a resource and back; and attributes as bounded values.
 *
 * Names are keys of tables in the cluster: one that is too long is refused, never cut, because two
 * nodes with one beginning would become one. */

#include "base/hash.h"
#include "base/text.h"
#include "push/push_private.h"

void push_who_put(struct otlp_attributes *a, const struct push_who *who)
{
	otlp_put_text(a, PUSH_KEY_NODE, who->node);
	otlp_put_text(a, PUSH_KEY_CLUSTER, who->cluster);
	if (who->world_size)
		otlp_put_int(a, PUSH_KEY_WORLD, who->world_size);
	if (who->rank >= 0)
		otlp_put_int(a, PUSH_KEY_RANK, who->rank);
	if (who->provider[0])
		otlp_put_text(a, PUSH_KEY_PROVIDER, who->provider);
	if (who->boot)
		otlp_put_int(a, PUSH_KEY_BOOT, (int64_t)who->boot);
}

bool push_is_plain(const char *s, size_t len)
{
	uint32_t cp;

	for (size_t i = 0; i < len;) {
		int n = text_utf8_next(s + i, len - i, &cp);

		if (n < 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
			return false;
		i += (size_t)n;
	}
	return true;
}

bool push_word_get(const struct otlp_attributes *a, const char *key, char *ret, size_t size)
{
	const struct otlp_value *v = otlp_attribute_get(a, key);

	ret[0] = 0;
	if (!v)
		return true;
	if (v->kind != OTLP_TEXT || v->len >= size || !push_is_plain(v->text, v->len))
		return false;
	memcpy(ret, v->text, v->len);
	ret[v->len] = 0;
	return true;
}

void push_text_get(const struct otlp_attributes *a, const char *key, char *ret, size_t size)
{
	const struct otlp_value *v = otlp_attribute_get(a, key);
	size_t used = 0;
	uint32_t cp;

	if (v && v->kind == OTLP_TEXT)
		while (used < v->len) {
			int n = text_utf8_next(v->text + used, v->len - used, &cp);

			if (n < 0 || used + (size_t)n >= size)
				break;
			memcpy(ret + used, v->text + used, (size_t)n);
			used += (size_t)n;
		}
	ret[used] = 0;
}

/* The decimal number that is all of @v's text. */
static bool text_number(const struct otlp_value *v, bool *ret_negative, uint64_t *ret)
{
	bool negative = v->len && v->text[0] == '-';
	uint64_t n = 0;

	if (v->len == negative)
		return false;
	for (size_t i = negative; i < v->len; i++) {
		unsigned digit = (unsigned)(v->text[i] - '0');

		if (digit > 9 || __builtin_mul_overflow(n, UINT64_C(10), &n) ||
			__builtin_add_overflow(n, digit, &n))
			return false;
	}
	*ret_negative = negative;
	*ret = n;
	return true;
}

int64_t push_int_get(const struct otlp_attributes *a, const char *key, int64_t missing)
{
	const struct otlp_value *v = otlp_attribute_get(a, key);
	bool negative;
	uint64_t n;

	if (v && v->kind == OTLP_INT)
		return v->i;
	if (v && v->kind == OTLP_DOUBLE && v->d >= -0x1p53 && v->d <= 0x1p53)
		return (int64_t)v->d;
	if (v && v->kind == OTLP_TEXT && text_number(v, &negative, &n) && n <= INT64_MAX)
		return negative ? -(int64_t)n : (int64_t)n;
	return missing;
}

double push_double_get(const struct otlp_attributes *a, const char *key, double missing)
{
	const struct otlp_value *v = otlp_attribute_get(a, key);

	if (v && v->kind == OTLP_DOUBLE)
		return v->d;
	return v && v->kind == OTLP_INT ? (double)v->i : missing;
}

/* Any text tells one run of an agent from the next; a number in it is that number. */
static uint64_t boot_get(const struct otlp_attributes *a)
{
	const struct otlp_value *v = otlp_attribute_get(a, PUSH_KEY_BOOT);
	bool negative;
	uint64_t n;

	if (v && v->kind == OTLP_INT)
		return (uint64_t)v->i;
	if (!v || v->kind != OTLP_TEXT || !v->len)
		return 0;
	if (text_number(v, &negative, &n) && !negative)
		return n;
	return hash_bytes(v->text, v->len) | 1;
}

const char *push_who_get(const struct otlp_attributes *a, struct push_who *ret)
{
	int64_t rank = push_int_get(a, PUSH_KEY_RANK, -1);
	int64_t world = push_int_get(a, PUSH_KEY_WORLD, 0);

	*ret = (struct push_who){.rank = -1};
	if (!push_word_get(a, PUSH_KEY_NODE, ret->node, sizeof(ret->node)))
		return PUSH_KEY_NODE " is too long or not plain text";
	if (!ret->node[0])
		return PUSH_KEY_NODE " is missing";
	if (!push_word_get(a, PUSH_KEY_CLUSTER, ret->cluster, sizeof(ret->cluster)))
		return PUSH_KEY_CLUSTER " is too long or not plain text";
	if (!ret->cluster[0])
		return PUSH_KEY_CLUSTER " is missing";
	if (!push_word_get(a, PUSH_KEY_PROVIDER, ret->provider, sizeof(ret->provider)))
		return PUSH_KEY_PROVIDER " is too long or not plain text";
	if (rank < -1 || rank > INT32_MAX)
		return PUSH_KEY_RANK " is out of range";
	if (world < 0 || world > INT32_MAX)
		return PUSH_KEY_WORLD " is out of range";
	ret->rank = (int32_t)rank;
	ret->world_size = (uint32_t)world;
	ret->boot = boot_get(a);
	return NULL;
}

int push_reject(struct push_taken *t, size_t count, const char *fmt, ...)
{
	va_list ap;

	t->rejected += count;
	if (!t->why[0]) {
		va_start(ap, fmt);
		vsnprintf(t->why, sizeof(t->why), fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

int64_t push_time(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

bool push_record_is(const struct otlp_record *r, const char *name)
{
	const char *text = r->event_len ? r->event : r->scope;
	size_t len = r->event_len ? r->event_len : r->scope_len;

	return len == strlen(name) && memcmp(text, name, len) == 0;
}
