// SPDX-License-Identifier: Apache-2.0
/* meet.c - the shared file. Layout: a page with the bell, then the ranks, then the pairs; pages
 * that nobody touches are never there. Every change rings the bell (a futex), every wait looks,
 * then sleeps until it rings. Invariants:
 * 1. only rank r writes ranks[r], only the sender and the receiver write their sides of a pair;
 * 2. what a counter names is written before the counter;
 * 3. a rank arrives at n + 1 only after all have arrived at n, so MEET_RING >= 2 suffices. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "meet.h"

#define PAGE 4096

struct meet_place {
	_Atomic uint32_t bell;
	_Atomic uint32_t joined;
};

static size_t ranks_bytes(int nranks)
{
	return ((size_t)nranks * sizeof(struct meet_rank) + PAGE - 1) / PAGE * PAGE;
}

static size_t place_bytes(int nranks)
{
	return PAGE + ranks_bytes(nranks) +
	       (size_t)nranks * (size_t)nranks * sizeof(struct meet_pair);
}

static const char *folder(void)
{
	const char *dir = getenv("SIM_NCCL_DIR");

	return dir && *dir ? dir : "/dev/shm";
}

static int place_map(struct meet *m)
{
	int fd = open(m->path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)place_bytes(m->nranks)) == 0)
		p = mmap(NULL, place_bytes(m->nranks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		int r = -errno;

		close(fd);
		return r;
	}
	close(fd);
	m->place = p;
	m->ranks = (struct meet_rank *)((char *)p + PAGE);
	m->pairs = (struct meet_pair *)((char *)p + PAGE + ranks_bytes(m->nranks));
	return 0;
}

static void bell_ring(struct meet *m)
{
	atomic_fetch_add(&m->place->bell, 1);
	syscall(SYS_futex, &m->place->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int meet_open(struct meet *m, uint64_t name, int rank, int nranks)
{
	int n;

	if (nranks < 1 || nranks > MEET_MAX_RANKS || rank < 0 || rank >= nranks)
		return -EINVAL;
	*m = (struct meet){.rank = rank, .nranks = nranks};
	n = snprintf(m->path, sizeof(m->path), "%s/sim-nccl-%016llx", folder(),
		(unsigned long long)name);
	if (n < 0 || (size_t)n >= sizeof(m->path))
		return -ENAMETOOLONG;
	n = place_map(m);
	if (n < 0)
		return n;
	m->ranks[rank].joined = 1;
	if (atomic_fetch_add(&m->place->joined, 1) + 1 == (uint32_t)nranks)
		unlink(m->path);
	bell_ring(m);
	return 0;
}

void meet_close(struct meet *m)
{
	if (m->place)
		munmap(m->place, place_bytes(m->nranks));
	m->place = NULL;
}

void meet_give_up(struct meet *m)
{
	atomic_store(&m->given_up, true);
	bell_ring(m);
}

/* A number of each rank that this wait is about; all must reach @number. */
static bool all_reach(struct meet *m, size_t counter, uint64_t number)
{
	int r = 0;

	while (!atomic_load(&m->given_up)) {
		uint32_t seen = atomic_load(&m->place->bell);

		while (r < m->nranks &&
			atomic_load((_Atomic uint64_t *)((char *)&m->ranks[r] + counter)) >= number)
			r++;
		if (r == m->nranks)
			return true;
		if (!atomic_load(&m->given_up))
			syscall(SYS_futex, &m->place->bell, FUTEX_WAIT, seen, NULL, NULL, 0);
	}
	return false;
}

bool meet_join(struct meet *m)
{
	return all_reach(m, offsetof(struct meet_rank, joined), 1);
}

void meet_arrive(struct meet *m, uint64_t number, uint64_t at_ns, const struct meet_call *call)
{
	struct meet_rank *own = &m->ranks[m->rank];

	own->ring[number % MEET_RING] = (struct meet_arrival){at_ns, *call};
	atomic_store(&own->arrived, number);
	bell_ring(m);
}

bool meet_all_arrived(struct meet *m, uint64_t number, uint64_t *ret_last_ns)
{
	uint64_t last = 0;

	if (!all_reach(m, offsetof(struct meet_rank, arrived), number))
		return false;
	for (int r = 0; r < m->nranks; r++) {
		uint64_t at = m->ranks[r].ring[number % MEET_RING].at_ns;

		last = at > last ? at : last;
	}
	*ret_last_ns = last;
	return true;
}

const struct meet_arrival *meet_arrival_of(const struct meet *m, int rank, uint64_t number)
{
	return &m->ranks[rank].ring[number % MEET_RING];
}

void meet_choose(struct meet *m, uint64_t number, struct meet_choice choice)
{
	m->ranks[m->rank].choices[number % MEET_RING] = choice;
	atomic_store(&m->ranks[m->rank].chosen, number);
	bell_ring(m);
}

bool meet_all_chose(struct meet *m, uint64_t number)
{
	return all_reach(m, offsetof(struct meet_rank, chosen), number);
}

struct meet_choice meet_choice_of(const struct meet *m, int rank, uint64_t number)
{
	return m->ranks[rank].choices[number % MEET_RING];
}

static struct meet_pair *pair_of(struct meet *m, int from, int to)
{
	return &m->pairs[(size_t)from * (size_t)m->nranks + (size_t)to];
}

static bool pair_wait(struct meet *m, struct meet_pair *p, _Atomic uint64_t *other, uint64_t number,
	uint64_t *ret_later_ns)
{
	unsigned at = number % MEET_PAIR_RING;

	for (;;) {
		uint32_t seen = atomic_load(&m->place->bell);

		if (atomic_load(other) >= number)
			break;
		if (atomic_load(&m->given_up))
			return false;
		syscall(SYS_futex, &m->place->bell, FUTEX_WAIT, seen, NULL, NULL, 0);
	}
	*ret_later_ns = p->sent_ns[at] > p->received_ns[at] ? p->sent_ns[at] : p->received_ns[at];
	return true;
}

void meet_send(struct meet *m, int peer, uint64_t number, uint64_t at_ns)
{
	struct meet_pair *p = pair_of(m, m->rank, peer);

	p->sent_ns[number % MEET_PAIR_RING] = at_ns;
	atomic_store(&p->sent, number);
	bell_ring(m);
}

bool meet_sent(struct meet *m, int peer, uint64_t number, uint64_t *ret_later_ns)
{
	struct meet_pair *p = pair_of(m, m->rank, peer);

	return pair_wait(m, p, &p->received, number, ret_later_ns);
}

void meet_receive(struct meet *m, int peer, uint64_t number, uint64_t at_ns)
{
	struct meet_pair *p = pair_of(m, peer, m->rank);

	p->received_ns[number % MEET_PAIR_RING] = at_ns;
	atomic_store(&p->received, number);
	bell_ring(m);
}

bool meet_received(struct meet *m, int peer, uint64_t number, uint64_t *ret_later_ns)
{
	struct meet_pair *p = pair_of(m, peer, m->rank);

	return pair_wait(m, p, &p->sent, number, ret_later_ns);
}

static int64_t offset_ns;

static void offset_read(void)
{
	FILE *f = fopen("/proc/self/timens_offsets", "re");
	long long sec, nsec;

	if (!f)
		return;
	if (fscanf(f, "monotonic %lld %lld", &sec, &nsec) == 2)
		offset_ns = sec * 1000000000 + nsec;
	fclose(f);
}

int64_t meet_clock_offset_ns(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, offset_read);
	return offset_ns;
}
