/* SPDX-License-Identifier: Apache-2.0 */
/* test_disks.c - block requests get the name of their device, which is read once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/trace/neighbours.h"
#include "tree.h"

static const char *name_of(struct disks *d, const char *root, uint32_t dev)
{
	static struct event e;

	e = (struct event){.source = SOURCE_IO, .op = IO_READ, .dev = dev};
	disks_name(d, root, &e);
	return e.peer_comm;
}

static void test_names(void **state)
{
	struct event other = {.source = SOURCE_HOST, .peer_comm = "xz"};
	struct disks d = {0};
	char root[TREE_MAX];

	tree_init(root);
	tree_link(root, "/sys/dev/block/259:3", "../../devices/pci0/nvme/nvme0/nvme0n1");
	assert_string_equal(name_of(&d, root, 259 << 20 | 3), "nvme0n1");
	assert_string_equal(name_of(&d, root, 8 << 20), "");
	tree_link(root, "/sys/dev/block/8:0", "../../devices/sda");
	assert_string_equal(name_of(&d, root, 8 << 20), ""); /* it was looked for */
	disks_name(&d, root, &other);
	assert_string_equal(other.peer_comm, "xz");
	for (uint32_t i = 0; i < 2 * DISKS_MAX; i++)
		name_of(&d, root, i);
	assert_int_equal(d.count, DISKS_MAX);
	assert_string_equal(name_of(&d, root, 259 << 20 | 3), "nvme0n1");
	tree_done(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
