/* SPDX-License-Identifier: Apache-2.0 */
/* journal_fixture.h - a journal in a scratch folder, on a loop that runs until a result is there, and files
 * that fail when they are told to. */
#pragma once

#include "store_fixture.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "cluster/journal/journal_private.h"
#include "net/loop.h"

struct journal_rig {
	struct scratch scratch;
	char folder[96];
	struct loop *loop;
	struct journal *journal;
	size_t waiting, well, failed;
	uint64_t position; /* of the last result */
	int err;
};

/* The n-th call from now on fails, once or from then on; 0: none. */
static struct {
	atomic_int write_in, sync_in, truncate_in;
	atomic_bool for_good, cut_short;
	atomic_int err;
} faults;

static bool is_due(atomic_int *in)
{
	int left = *in;

	if (left == 0)
		return false;
	if (left > 1) {
		*in = left - 1;
		return false;
	}
	if (!faults.for_good)
		*in = 0;
	errno = faults.err;
	return true;
}

static ssize_t faulty_writev(int fd, const struct iovec *v, int count, off_t at)
{
	if (is_due(&faults.write_in)) {
		if (faults.cut_short) /* as a disk that fills up in the middle of it */
			(void)!pwrite(fd, v[0].iov_base, v[0].iov_len / 2, at);
		errno = faults.err;
		return -1;
	}
	return pwritev(fd, v, count, at);
}

static int faulty_sync(int fd)
{
	return is_due(&faults.sync_in) ? -1 : 0; /* tests are not about power cuts */
}

static int faulty_truncate(int fd, off_t len)
{
	return is_due(&faults.truncate_in) ? -1 : ftruncate(fd, len);
}

static const struct journal_io faulty_io = {faulty_writev, faulty_sync, faulty_truncate};

static int journal_setup(void **state)
{
	struct journal_rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	snprintf(r->scratch.folder, sizeof(r->scratch.folder), "/tmp/ingero-test-XXXXXX");
	assert_non_null(mkdtemp(r->scratch.folder));
	snprintf(r->folder, sizeof(r->folder), "%s/journal", r->scratch.folder);
	assert_int_equal(loop_new(&r->loop), 0);
	memset(&faults, 0, sizeof(faults));
	faults.err = EIO;
	*state = r;
	return 0;
}

static int journal_teardown(void **state)
{
	struct journal_rig *r = *state;

	if (r->journal)
		journal_free(r->journal);
	loop_free(r->loop);
	scratch_files(r->scratch.folder, true);
	rmdir(r->scratch.folder);
	free(r);
	return 0;
}

static int open_journal(struct journal_rig *r, size_t segment_bytes, uint64_t first)
{
	const struct journal_settings s = {
		.folder = r->folder, .segment_bytes = segment_bytes, .first = first};
	struct errinfo e = {0};
	int err = journal_open_with(r->loop, &s, &faulty_io, &r->journal, &e);

	if (err < 0)
		assert_true(*e.text);
	return err;
}

static _unused_ void close_journal(struct journal_rig *r)
{
	journal_free(r->journal);
	r->journal = NULL;
}

static void on_result(void *arg, int err, uint64_t position)
{
	struct journal_rig *r = arg;

	r->err = err;
	if (err < 0) {
		r->failed++;
	} else {
		assert_true(position > r->position);
		r->position = position;
		r->well++;
	}
	if (--r->waiting == 0)
		loop_stop(r->loop);
}

static _unused_ void append(struct journal_rig *r, const void *data, size_t len)
{
	r->waiting++;
	assert_int_equal(journal_append(r->journal, data, len, on_result, r), 0);
}

static _unused_ int append_and_wait(struct journal_rig *r, const char *text)
{
	append(r, text, strlen(text));
	assert_int_equal(loop_run(r->loop), 0);
	return r->err;
}
