/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_thread.c - what a thread is for: one that gives the GPU its work, or one that a runtime keeps for
 * later and that mostly waits to be asked.
 *
 * The latter are known by name, because a worker of a data loader that the job waits for may be on a CPU as
 * little. Busy ones are not idle, whatever their name: a pool that compiles is what a job waits for. Threads of the
 * driver and of XLA are not among them: through them the end of work on the GPU comes to who waits for it. */
#include <string.h>

#include "diagnose/rows/timeline.h"
#include "base/macros.h"

#define IDLE_BUSY 0.2 /* of its time at most does an idle thread do anything */

/* Names begin so; a thread's name has 15 characters. */
static const char *const runtime_threads[] = {
	"pt_nccl_watchdg", /* PyTorch's: looks whether collectives have ended */
	"pt_nccl_heartbt",
	"pt_tcpstore",
	"NCCL ",
	"grpc", /* gRPC's, of TensorFlow, JAX's coordinator, servers */
	"event_engine",
	"resolver-exec",
	"default-exec",
	"timer_manager",
	"tokio-",
	"jemalloc_bg",
	"llvm-worker",
	"ZMQbg",
	"iou-wrk",
};

/* A call by which the GPU gets something to do; a wait is none: watchdogs wait too. */
static bool row_feeds(const struct ledger_row *r)
{
	return r->launches || r->copies || r->ns[LEDGER_LAUNCH] || r->ns[LEDGER_COPY] ||
	       r->ns[LEDGER_GRAPH] || r->ns[LEDGER_COLLECTIVE] || r->mark == MARK_GRAPH ||
	       r->mark == MARK_COLLECTIVE || r->mark == MARK_EXECUTE || r->mark == MARK_OPTIMIZER ||
	       r->mark == MARK_BACKWARD;
}

static bool is_runtime_name(const char *comm)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtime_threads); i++)
		if (!strncmp(comm, runtime_threads[i], strlen(runtime_threads[i])))
			return true;
	return false;
}

static uint64_t busy_ns(const struct ledger_row *r)
{
	uint64_t ns = 0;

	for (int i = LEDGER_RUN; i <= LEDGER_CPU_WAIT_GPU; i++)
		ns += r->ns[i];
	return ns;
}

void timeline_judge_thread(const struct timeline *t, struct timeline_thread *th)
{
	uint64_t all = 0, busy = 0;

	for (size_t k = th->first; k < th->first + th->count; k++) {
		const struct ledger_row *r = t->rows[k];

		all += r->dur_ns;
		busy += busy_ns(r);
		th->feeds |= row_feeds(r);
	}
	th->is_idle = !t->is_derived && !th->feeds && (double)busy < IDLE_BUSY * (double)all &&
		      is_runtime_name(t->rows[th->first + th->count - 1]->comm);
}
