/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - see serve_private.h.
 *
 * Invariants:
 *  1. finish() is called once: by the loop when a thread has run the job, or by whoever withdrew it
 *     from the queue before one could.
 *  2. Its timer and eventfd are there until then. */
#include "serve/serve_private.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "sql/sql_worker.h"

#define LOOK_AGAIN_NS (100 * NS_PER_MS)

static void job_done(struct job *j)
{
	if (j->timer)
		loop_timer_free(j->timer);
	if (j->gone >= 0)
		close(j->gone);
	j->timer = NULL;
	j->gone = -1;
}

static void end(struct job *j, int err)
{
	job_done(j);
	j->finish(j, err);
}

static void on_done(void *arg)
{
	struct job *j = arg;

	end(j, 0);
}

static bool on_thread(void *arg, bool brief)
{
	struct job *j = arg;
	bool done;

	sql_worker_watch(j->gone);
	done = j->run(j, brief);
	sql_worker_watch(-1);
	if (done)
		loop_post(j->loop, &j->task, on_done, j);
	return done;
}

static void on_gone(void *arg)
{
	struct job *j = arg;

	if (pool_withdraw(j->pool, &j->queued))
		end(j, -ECANCELED);
	else
		(void)eventfd_write(j->gone, 1); /* whoever waits for SQL sees it */
}

/* What runs knows its own deadline. But a brief try may end just now and be queued again. */
static void on_late(void *arg)
{
	struct job *j = arg;

	if (pool_withdraw(j->pool, &j->queued))
		end(j, -EBUSY);
	else
		loop_timer_set(j->timer, LOOK_AGAIN_NS);
}

static int set_timer(struct job *j, uint64_t deadline_ns)
{
	uint64_t now = mono_now().ns;
	int r = deadline_ns ? loop_timer_new(j->loop, on_late, j, &j->timer) : 0;

	if (r == 0 && deadline_ns)
		loop_timer_set(j->timer, deadline_ns > now ? deadline_ns - now : 1);
	return r;
}

int job_start(struct job *j, struct loop *l, struct pool *p, const struct http_request *q,
	uint64_t deadline_ns)
{
	int r;

	j->loop = l;
	j->pool = p;
	j->queued = (struct pool_job){.fn = on_thread, .arg = j, .asker = q->asker};
	/* Without a descriptor to spare the job runs to its end, as long as it takes. */
	j->gone = j->ends_with_asker ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	r = set_timer(j, deadline_ns);
	if (r == 0)
		r = pool_push(p, &j->queued);
	if (r < 0)
		job_done(j);
	else if (j->ends_with_asker)
		http_on_gone(j->x, on_gone, j);
	return r;
}
