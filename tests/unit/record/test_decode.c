/* SPDX-License-Identifier: Apache-2.0 */
/* test_decode.c - every record kind field by field, and records that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "record/capture/reader.h"
#include "wire/ledger.h"

static const struct clock_map clock_map = {.offset_ns = 1000000};
static struct collective nccl;

static struct wire_header header(uint16_t size, uint8_t source, uint16_t op)
{
	struct wire_header h = {.size = size,
		.version = WIRE_VERSION,
		.source = source,
		.op = op,
		.flags = WIRE_NESTED | WIRE_SLOW,
		.start_ns = 5000,
		.dur_ns = 77,
		.pid = 10,
		.tid = 11,
		.cgroup_id = 12,
		.cpu = 3,
		.weight = 1};

	memset(h.comm, 'x', sizeof(h.comm)); /* not terminated, as a hostile name could be */
	return h;
}

static void test_call(void **state)
{
	struct wire_call r = {.h = header(sizeof(r), SOURCE_CUDA, CUDA_MEMCPY),
		.arg0 = UINT64_MAX,
		.arg1 = 2,
		.stream = 0xabc,
		.ret = -3,
		.device = 1};
	struct event e;

	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.start.ns, 1005000);
	assert_int_equal(e.dur_ns, 77);
	assert_int_equal(e.pid, 10);
	assert_int_equal(e.tid, 11);
	assert_int_equal(e.flags, WIRE_NESTED | WIRE_SLOW);
	assert_true(e.arg0 == UINT64_MAX);
	assert_int_equal(e.arg1, 2);
	assert_int_equal(e.stream, 0xabc);
	assert_int_equal(e.ret, -3);
	assert_int_equal(e.device, 1);
	assert_string_equal(e.comm, "xxxxxxxxxxxxxxx");
}

static void test_peer_copy_is_device_to_device(void **state)
{
	struct wire_call r = {.h = header(sizeof(r), SOURCE_CUDA, CUDA_MEMCPY_PEER), .arg0 = 5};
	struct event e;

	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.arg1, 3);
}

static void test_sample(void **state)
{
	struct wire_call r = {.h = header(sizeof(r), SOURCE_HOST, HOST_CPU_SAMPLE),
		.arg0 = LEDGER_LAUNCH,
		.stack = 77};
	struct event e;

	r.h.weight = 3;
	r.h.dur_ns = 30;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.arg0, LEDGER_LAUNCH);
	assert_int_equal(e.stack_hash, 77);
	assert_int_equal(e.weight, 3);
	assert_int_equal(e.dur_ns, 30);
	r.h.size--;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), -EBADMSG);
}

static void test_short_stays(void **state)
{
	struct wire_stays r = {.h = header(sizeof(r), SOURCE_HOST, HOST_SHORT_STAYS),
		.ns = 7000000,
		.span_ns = 1000000000,
		.stack = 77,
		.line = LEDGER_PIPE,
		.by_pid = 99,
		.by_tid = 100,
		.by_comm = "loader"};
	struct event e;

	r.h.weight = 40;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.arg0, LEDGER_PIPE);
	assert_int_equal(e.arg1, 7000000);
	assert_int_equal(e.wait_ns, 1000000000);
	assert_int_equal(e.weight, 40);
	assert_int_equal(e.stack_hash, 77);
	assert_int_equal(e.peer_pid, 99);
	assert_int_equal(e.stream, 100);
	assert_string_equal(e.peer_comm, "loader");
	r.h.size--;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), -EBADMSG);
}

static void test_sched(void **state)
{
	struct wire_sched r = {.h = header(sizeof(r), SOURCE_HOST, HOST_SCHED_SWITCH),
		.wait_ns = 50,
		.by_pid = 99,
		.by_comm = "hog"};
	struct event e;

	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.wait_ns, 50);
	assert_int_equal(e.arg0, 50);
	assert_int_equal(e.peer_pid, 99);
	assert_int_equal(e.arg1, 99);
	assert_string_equal(e.peer_comm, "hog");
}

static void test_block(void **state)
{
	struct wire_block r = {.h = header(sizeof(r), SOURCE_IO, IO_WRITE),
		.sector = 2048,
		.bytes = 8192,
		.dev = 254 << 20 | 1,
		.error = 10};
	struct event e;

	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.arg0, 16); /* sectors */
	assert_int_equal(e.arg1, 2048);
	assert_int_equal(e.dev, 254 << 20 | 1);
	assert_int_equal(e.ret, 10);
}

static void test_process(void **state)
{
	struct wire_process r = {
		.h = header(sizeof(r), SOURCE_HOST, HOST_PROCESS_FORK), .peer_pid = 1234};
	struct event e;

	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.peer_pid, 1234);
	assert_int_equal(e.arg1, 1234);
	r.h.op = HOST_PROCESS_EXIT;
	r.exit_code = 9;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.arg0, 9);
	r.h.op = HOST_TARGET_FOUND;
	r.born_ns = 123456789;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.arg0, 123456789);
}

static void test_nccl(void **state)
{
	struct wire_nccl r = {.h = header(sizeof(r), SOURCE_NCCL, NCCL_BROADCAST),
		.comm = 0x1000,
		.comm_hash = UINT64_MAX,
		.seq = 7,
		.stream = 9,
		.bytes = 4096,
		.count = 1024,
		.rank = 0,
		.nranks = 8,
		.datatype = 7,
		.reduce_op = -1,
		.root = 0,
		.peer = -1,
		.device = 3};
	struct event e;

	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.arg0, 4096);
	assert_int_equal(e.arg1, 7);
	assert_int_equal(e.stream, 9);
	assert_int_equal(e.device, 3);
	assert_true(nccl.comm_hash == UINT64_MAX);
	assert_int_equal(nccl.rank, 0);  /* a value */
	assert_int_equal(nccl.root, 0);  /* a value */
	assert_int_equal(nccl.peer, -1); /* absent */
	assert_int_equal(nccl.nranks, 8);
	assert_int_equal(nccl.wait_ns, -1);
}

static void test_tcp(void **state)
{
	struct wire_tcp r = {.h = header(sizeof(r), SOURCE_TCP, TCP_RETRANSMIT),
		.saddr = {10, 0, 0, 1},
		.daddr = {10, 0, 0, 200},
		.sport = 4000,
		.dport = 443,
		.family = AF_INET};
	char peer[EVENT_PEER_MAX];
	struct event e;

	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_string_equal(event_peer(&e, peer), "10.0.0.200:443");
	assert_int_equal(e.arg1, 4000 << 16 | 443);
	r.family = AF_INET6;
	memset(r.daddr, 0, sizeof(r.daddr));
	r.daddr[15] = 1;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_string_equal(event_peer(&e, peer), "[::1]:443");
	r.family = 99;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_string_equal(event_peer(&e, peer), "family 99:443");
}

static void test_net(void **state)
{
	struct wire_net r = {
		.h = header(sizeof(r), SOURCE_NET, NET_RECV), .wait_ns = 60, .bytes = -11, .fd = 5};
	char peer[EVENT_PEER_MAX];
	struct event e;

	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_int_equal(e.ret, -11);
	assert_int_equal(e.arg0, 5);
	assert_int_equal(e.arg1, 0);
	assert_int_equal(e.wait_ns, 60);
	assert_string_equal(event_peer(&e, peer), "");
	r.family = AF_INET;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_string_equal(event_peer(&e, peer), ""); /* not connected */
	r.port = 443;
	memcpy(r.addr, (uint8_t[]){10, 1, 2, 3}, 4);
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_string_equal(event_peer(&e, peer), "10.1.2.3:443");
	assert_false(event_peer_is_here(&e));
	r.addr[0] = 127;
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), 0);
	assert_true(event_peer_is_here(&e));
}

static void test_a_peer_is_read_again(void **state)
{
	static const char *const texts[] = {
		"10.1.2.3:443", "[2001:db8::5]:80", "[::1]:6379", "[::ffff:127.0.0.1]:1"};
	struct event e = {.source = SOURCE_NET};
	char peer[EVENT_PEER_MAX];

	for (size_t i = 0; i < 4; i++) {
		event_peer_set(&e, texts[i]);
		e.dev = i == 0 ? 443 : i == 1 ? 80 : i == 2 ? 6379 : 1;
		assert_string_equal(event_peer(&e, peer), texts[i]);
		assert_int_equal(event_peer_is_here(&e), i > 1);
	}
	e = (struct event){.source = SOURCE_NET};
	event_peer_set(&e, "");
	event_peer_set(&e, "family 99:443");
	event_peer_set(&e, "[::1:80");
	assert_int_equal(e.family, 0);
}

static void test_refused(void **state)
{
	struct wire_call good = {.h = header(sizeof(good), SOURCE_CUDA, CUDA_MALLOC)}, bad;
	struct event e = {.pid = 42};

	assert_int_equal(decode_event(&good, sizeof(good.h) - 1, &clock_map, &e, &nccl), -EBADMSG);
	assert_int_equal(decode_event(&good, sizeof(good) - 1, &clock_map, &e, &nccl), -EBADMSG);
	bad = good;
	bad.h.version++;
	assert_int_equal(decode_event(&bad, sizeof(bad), &clock_map, &e, &nccl), -EBADMSG);
	bad = good;
	bad.h.size = sizeof(struct wire_block);
	assert_int_equal(decode_event(&bad, sizeof(bad), &clock_map, &e, &nccl), -EBADMSG);
	bad = good;
	bad.h.source = 200;
	assert_int_equal(decode_event(&bad, sizeof(bad), &clock_map, &e, &nccl), -EBADMSG);
	assert_int_equal(e.pid, 42); /* untouched */
	assert_int_equal(
		decode_event(&good, sizeof(good), &clock_map, &e, &nccl), 0); /* the control */
	assert_int_equal(e.pid, 10);
}

static struct wire_ledger ledger(void)
{
	struct wire_ledger r = {.h = header(sizeof(r), SOURCE_HOST, HOST_LEDGER),
		.copy_bytes = 4096,
		.launches = 1,
		.waits = 2,
		.copies = 3,
		.allocs = 4,
		.stays = 5,
		.mark = MARK_STAY,
		.waker = WAKER_TASK,
		.stay_line = LEDGER_PIPE,
		.launches_off = 1,
		.stay_ns = 40,
		.stay_wait_ns = 10,
		.waker_pid = 20,
		.waker_tid = 21,
		.stack = 0xabc};

	r.ns[LEDGER_RUN] = 37;
	r.ns[LEDGER_PIPE] = 30;
	r.ns[LEDGER_CPU_WAIT] = 10;
	memset(r.waker_comm, 'w', sizeof(r.waker_comm));
	return r;
}

static void test_ledger(void **state)
{
	struct wire_ledger r = ledger();
	struct ledger_row row;
	struct event e;

	assert_true(decode_is_ledger(&r, sizeof(r)));
	assert_int_equal(decode_ledger(&r, sizeof(r), &clock_map, &row), 0);
	assert_int_equal(row.start.ns, 1005000);
	assert_int_equal(row.dur_ns, 77);
	assert_int_equal(row.pid, 10);
	assert_int_equal(row.tid, 11);
	assert_int_equal(row.ns[LEDGER_RUN], 37);
	assert_int_equal(row.ns[LEDGER_PIPE], 30);
	assert_int_equal(row.ns[LEDGER_CPU_WAIT], 10);
	assert_int_equal(row.ns[LEDGER_BLOCKED], 0);
	assert_int_equal(row.copy_bytes, 4096);
	assert_int_equal(row.launches, 1);
	assert_int_equal(row.waits, 2);
	assert_int_equal(row.copies, 3);
	assert_int_equal(row.allocs, 4);
	assert_int_equal(row.stays, 5);
	assert_int_equal(row.mark, MARK_STAY);
	assert_int_equal(row.waker, WAKER_TASK);
	assert_int_equal(row.stay_line, LEDGER_PIPE);
	assert_int_equal(row.launches_off, 1);
	assert_int_equal(row.stay_ns, 40);
	assert_int_equal(row.stay_wait_ns, 10);
	assert_int_equal(row.waker_pid, 20);
	assert_int_equal(row.waker_tid, 21);
	assert_int_equal(row.stack_hash, 0xabc);
	assert_string_equal(row.waker_comm, "wwwwwwwwwwwwwww");
	assert_string_equal(row.comm, "xxxxxxxxxxxxxxx");
	assert_int_equal(decode_event(&r, sizeof(r), &clock_map, &e, &nccl), -EBADMSG);
}

static void refused(struct wire_ledger r)
{
	struct ledger_row row = {.pid = 42};

	assert_int_equal(decode_ledger(&r, sizeof(r), &clock_map, &row), -EBADMSG);
	assert_int_equal(row.pid, 42);
}

static void test_ledger_refused(void **state)
{
	struct wire_ledger r = ledger();
	struct ledger_row row;

	assert_int_equal(decode_ledger(&r, sizeof(r) - 1, &clock_map, &row), -EBADMSG);
	r.ns[LEDGER_RUN]++;
	refused(r); /* a nanosecond too many */
	r = ledger();
	r.ns[LEDGER_RUN] -= 2;
	r.ns[LEDGER_LOCK] = 1;
	refused(r);
	r = ledger();
	r.ns[LEDGER_RUN] = UINT64_MAX; /* which would come out right in 64 bits */
	r.ns[LEDGER_LOCK] = 38;
	refused(r);
	r = ledger();
	r.mark = MARK_READ + 1;
	refused(r);
	r = ledger();
	r.waker = WAKER_INTERRUPT + 1;
	refused(r);
	r = ledger();
	r.stay_line = LEDGER_LINES;
	refused(r);
	r = ledger();
	r.stay_ns = 78;
	refused(r);
	r = ledger();
	r.stay_wait_ns = 41;
	refused(r);
	r = ledger();
	r.h.version++;
	refused(r);
	r = ledger(); /* the control: the last of each is taken */
	r.mark = MARK_READ;
	r.waker = WAKER_INTERRUPT;
	r.stay_line = LEDGER_LINES - 1;
	assert_int_equal(decode_ledger(&r, sizeof(r), &clock_map, &row), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_peer_copy_is_device_to_device),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_short_stays),
		cmocka_unit_test(test_sched),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_nccl),
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_net),
		cmocka_unit_test(test_a_peer_is_read_again),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_ledger_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
