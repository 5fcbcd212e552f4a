/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_scrub.c - a thread that reads every part again, slowly, and compares its sum: what a disk has
 * changed is found before somebody asks for it.
 *
 * Each part soon after the start and then once a day, at most scrub_bytes_s. What does not fit its sum is a
 * suspect: upkeep looks again and sets it aside. Parts that are read are not removed meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/store/store_duck_private.h"

#define EVERY_NS (24 * 3600 * NS_PER_S)
#define IDLE_NS  NS_PER_S /* between two looks for a part that is due */

struct scrub {
	struct store_duck *store;
	pthread_mutex_t mutex;
	pthread_cond_t ends;
	pthread_t thread;
	bool started, end;
	/* of the part that is read: */
	int fd;
	off_t at;
};

/* True: it is time to end. */
static bool scrub_wait(struct scrub *x, uint64_t ns)
{
	uint64_t until = mono_now().ns + ns;
	struct timespec t = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};
	bool end;
	int r = 0;

	pthread_mutex_lock(&x->mutex);
	while (!x->end && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&x->ends, &x->mutex, &t);
	end = x->end;
	pthread_mutex_unlock(&x->mutex);
	return end;
}

/* The one that was read longest ago, if that is long enough. */
static struct part *part_begin(struct store_duck *s)
{
	uint64_t now = mono_now().ns;
	struct part *found = NULL;

	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; i < s->parts.count; i++) {
		struct part *p = s->parts.items[i];
		bool is_due = !p->scrubbed.ns || now - p->scrubbed.ns >= EVERY_NS;

		if (!p->gone && !p->suspect && is_due &&
			(!found || p->scrubbed.ns < found->scrubbed.ns))
			found = p;
	}
	if (found)
		found->users++;
	pthread_mutex_unlock(&s->set_mutex);
	return found;
}

static void part_end(struct store_duck *s, struct part *p, int r, const char *sum)
{
	pthread_mutex_lock(&s->set_mutex);
	if (r == 0 && strcmp(sum, p->sha256) == 0)
		p->scrubbed = mono_now();
	else if (r != -ECANCELED)
		p->suspect = true;
	p->users--;
	pthread_mutex_unlock(&s->set_mutex);
}

/* What was read is not left in the page cache: the next time it comes from the disk again, and questions keep
 * what they have there. */
static int pace(void *arg, size_t bytes)
{
	struct scrub *x = arg;
	struct store_duck *s = x->store;

	posix_fadvise(x->fd, x->at, (off_t)bytes, POSIX_FADV_DONTNEED);
	x->at += (off_t)bytes;
	pthread_mutex_lock(&s->set_mutex);
	s->checked_bytes += bytes;
	pthread_mutex_unlock(&s->set_mutex);
	return scrub_wait(x, bytes * NS_PER_S / s->settings.scrub_bytes_s) ? -ECANCELED : 0;
}

static void check_part(struct scrub *x, struct part *p)
{
	char path[STORE_PATH_MAX], sum[DIGEST_HEX] = "";
	int r = part_path(x->store, p, "", path, NULL);

	if (r == 0) {
		x->at = 0;
		x->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		r = x->fd < 0 ? -errno : digest_sha256_fd(x->fd, pace, x, sum);
		if (x->fd >= 0)
			close(x->fd);
	}
	part_end(x->store, p, r, sum);
}

static void *scrub_run(void *arg)
{
	struct scrub *x = arg;

	while (!scrub_wait(x, 0)) {
		struct part *p = part_begin(x->store);

		if (p)
			check_part(x, p);
		else
			scrub_wait(x, IDLE_NS);
	}
	return NULL;
}

int scrub_new(struct store_duck *s)
{
	struct scrub *x = calloc(1, sizeof(*x));
	pthread_condattr_t monotonic;

	if (!x)
		return -ENOMEM;
	x->store = s;
	pthread_mutex_init(&x->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&x->ends, &monotonic);
	pthread_condattr_destroy(&monotonic);
	s->scrub = x;
	x->started = pthread_create(&x->thread, NULL, scrub_run, x) == 0;
	return x->started ? 0 : -EAGAIN;
}

void scrub_free(struct scrub *x)
{
	pthread_mutex_lock(&x->mutex);
	x->end = true;
	pthread_cond_signal(&x->ends);
	pthread_mutex_unlock(&x->mutex);
	if (x->started)
		pthread_join(x->thread, NULL);
	pthread_cond_destroy(&x->ends);
	pthread_mutex_destroy(&x->mutex);
	free(x);
}
