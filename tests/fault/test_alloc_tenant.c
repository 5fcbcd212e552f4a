/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while a file of tokens is read, and read again: -ENOMEM, and who was let in still is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "cluster/tenant/audit.h"
#include "cluster/tenant/tenants.h"
#include "fault.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const char before[] = "- key_name: a\n  token: " A "\n  allowed_clusters: [x, y]\n";
static const char after[] =
	"- key_name: b\n  token: " B "\n  verbs: [read]\n  expires: 2100-01-01\n";

static char dir[64], path[80], log_path[80];
static uint64_t number_a, number_b;

static int make_folder(void **state)
{
	number_a = token_number(A, strlen(A)); /* which also sets up OpenSSL before memory fails */
	number_b = token_number(B, strlen(B));
	snprintf(dir, sizeof(dir), "/tmp/test-alloc-tenant-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/acl", dir);
	snprintf(log_path, sizeof(log_path), "%s/audit", dir);
	return file_write_atomic(path, before, strlen(before), 0600);
}

static int remove_folder(void **state)
{
	unlink(path);
	unlink(log_path);
	return rmdir(dir);
}

/* Without hashing, for which there may be no memory. */
static bool holds(struct tenants *t, uint64_t number)
{
	size_t count;
	const struct token_hash *h = token_set_hashes(tenants_tokens(t), &count);

	for (size_t i = 0; i < count; i++)
		if (token_hash_number(&h[i]) == number)
			return true;
	return false;
}

static int read_file(void *arg)
{
	_cleanup_(tenants_freep) struct tenants *t = NULL;
	int r = tenants_read(path, &t, NULL);

	assert_int_equal(!t, r < 0);
	assert_true(r < 0 || holds(t, number_a));
	return r;
}

static void reading(void **state)
{
	assert_true(fault_torture(read_file, NULL) >= 10);
}

static int reload(void *arg)
{
	_cleanup_(tenants_freep) struct tenants *t = NULL;
	int r = file_write_atomic(path, before, strlen(before), 0600);

	if (r == 0)
		r = tenants_read(path, &t, NULL);
	if (r == 0)
		r = file_write_atomic(path, after, strlen(after), 0600);
	if (r < 0)
		return r;
	r = tenants_reload(t, mono_now().ns, NULL);
	assert_true(holds(t, number_a));
	assert_int_equal(!holds(t, number_b), r < 0);
	return r;
}

static void reloading(void **state)
{
	assert_true(fault_torture(reload, NULL) >= 10);
}

static int keep_audit(void *arg)
{
	_cleanup_(audit_freep) struct audit *a = NULL;
	struct audit_span s;
	int r;

	unlink(log_path);
	r = audit_open(log_path, &a, NULL);
	if (r == 0)
		r = audit_write(a, &(struct audit_entry){.action = "sql", .text = "SELECT 1"});
	if (r < 0)
		return r;
	r = audit_verify(log_path, NULL, &s, NULL);
	assert_true(r < 0 || s.last == 1);
	return r;
}

static void auditing(void **state)
{
	assert_true(fault_torture(keep_audit, NULL) >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading),
		cmocka_unit_test(reloading),
		cmocka_unit_test(auditing),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
