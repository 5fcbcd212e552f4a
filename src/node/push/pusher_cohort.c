/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_cohort.c - see pusher_cohort.h. */
#include "node/push/pusher_cohort.h"

#include <ctype.h>

#include "base/buf.h"
#include "net/digest.h"

#define KEY_MAX 4096

static void hash_text(const char *text, size_t len, char ret[PUSH_HASH_MAX])
{
	char hex[DIGEST_HEX] = ""; /* stays so without memory: no group */

	(void)digest_sha256(text, len, hex);
	memcpy(ret, hex, PUSH_HASH_MAX - 1);
	ret[PUSH_HASH_MAX - 1] = 0;
}

void pusher_group_hash(const char *path, char ret[PUSH_HASH_MAX])
{
	ret[0] = 0;
	if (*path)
		hash_text(path, strlen(path), ret);
}

/* A piece between '/', '-', '_', '.' and ':' that names one of many: a number, or hexadecimal digits
 * with at least one number in them, as ids have. Kubernetes writes "pod" before those of its pods. */
static bool is_instance(const char *s, size_t len)
{
	bool has_digit = false;

	if (len > 3 && !strncmp(s, "pod", 3)) {
		s += 3;
		len -= 3;
	}
	for (size_t i = 0; i < len; i++) {
		if (!isxdigit((unsigned char)s[i]))
			return false;
		has_digit = has_digit || isdigit((unsigned char)s[i]);
	}
	return len && has_digit;
}

static void put_general(struct buf *b, const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/-_.:");

		if (!is_instance(path, len))
			buf_append(b, path, len);
		path += len;
		if (*path)
			buf_putc(b, *path++);
	}
}

void pusher_cohort_hash(
	const char *workload, const char *job, const char *cgroup, char ret[PUSH_HASH_MAX])
{
	_cleanup_buf_ struct buf key = BUF_INIT(KEY_MAX);

	ret[0] = 0;
	if (!*job && !*cgroup)
		return;
	buf_printf(&key, "%s\n%s\n", workload, job);
	if (!*job)
		put_general(&key, cgroup);
	if (!key.err)
		hash_text(key.data, key.len, ret);
}
