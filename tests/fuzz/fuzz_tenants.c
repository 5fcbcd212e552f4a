/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tokens, and audit files: what cannot be read has a sentence, what can be read reads the same
 * again, and an audit file that is whole has all of its bytes in whole lines. */
#include "cluster/tenant/audit.h"
#include "cluster/tenant/tenants.h"
#include "fuzz.h"

#include <sys/stat.h>

static void read_tokens(const char *path)
{
	struct tenants *t = NULL;
	struct errinfo e = {0};
	size_t count;

	if (tenants_read(path, &t, &e) < 0) {
		MUST(!t && *e.text);
		return;
	}
	token_set_hashes(tenants_tokens(t), &count);
	MUST(count > 0 && count <= TOKEN_SET_MAX);
	for (size_t i = 0; i < count; i++) {
		const struct token_hash *h = &token_set_hashes(tenants_tokens(t), &count)[i];
		const struct tenant *who = tenants_find(t, token_hash_number(h), 1);

		MUST(who && who->name && who->verbs && !who->clusters == !who->cluster_count);
		for (size_t k = 0; k < who->cluster_count; k++)
			MUST(*who->clusters[k] &&
				tenant_may_see(who, who->clusters[k], strlen(who->clusters[k])));
		MUST(tenant_may_see(who, "", 0) == !who->clusters);
	}
	MUST(tenants_reload(t, 1, &e) == 0);
	tenants_free(t);
}

static void read_audit(const char *path, size_t size)
{
	struct audit_span s;
	struct errinfo e = {0};

	if (audit_verify(path, NULL, &s, &e) < 0) {
		MUST(*e.text);
		return;
	}
	MUST(s.is_torn ? s.bytes < size : s.bytes == size);
	MUST(!s.first == !s.last && s.first <= s.last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_place("tenants", data, size);

	chmod(path, 0600);
	read_tokens(path);
	read_audit(path, size);
	return 0;
}
