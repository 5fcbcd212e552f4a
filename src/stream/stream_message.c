/* SPDX-License-Identifier: Apache-2.0 */
/* stream_message.c - see stream_message.h. A key is written by put_X() where it must be there and by
 * its own condition where it is optional, in the order in which the keys are published. */
#include "stream/stream_message.h"

#include <math.h>

#include "json/writer.h"

static const char *const ids[] = {
#define X(NAME, id) id,
	STREAM_TYPES(X)
#undef X
};

const char *stream_type_id(enum stream_type t)
{
	return ids[t];
}

/* ---- values ---- */

static void put_text(struct json_writer *w, const char *key, const char *v)
{
	if (!v && !w->err)
		w->err = -EINVAL;
	json_string_member(w, key, v);
}

static void put_number(struct json_writer *w, const char *key, double v)
{
	if (!isfinite(v) && !w->err)
		w->err = -EINVAL;
	json_double_member(w, key, v);
}

static void put_time(struct json_writer *w, const char *key, wall_time t)
{
	char text[WHEN_UTC_MAX];

	json_string_member(w, key, when_utc(text, t));
}

static void put_text_if(struct json_writer *w, const char *key, const char *v)
{
	if (v)
		json_string_member(w, key, v);
}

static void put_uint_if(struct json_writer *w, const char *key, uint64_t v)
{
	if (v)
		json_uint_member(w, key, v);
}

static void put_rank_if(struct json_writer *w, int32_t rank, uint32_t world_size)
{
	if (rank >= 0) /* rank 0 is one */
		json_int_member(w, "rank", rank);
	put_uint_if(w, "world_size", world_size);
}

static void put_node(struct json_writer *w, const struct stream_node *n)
{
	put_text(w, "node_id", n->node_id);
	put_text(w, "cluster_id", n->cluster_id);
	put_time(w, "timestamp", n->time);
}

static void put_node_if(struct json_writer *w, const struct stream_node *n)
{
	put_text_if(w, "event_id", n->event_id);
	put_rank_if(w, n->rank, n->world_size);
}

static void put_inference_if(struct json_writer *w, const struct stream_inference *i)
{
	put_text_if(w, "cgroup_path_hash", i->cgroup_path_hash);
	put_uint_if(w, "stream_handle", i->stream_handle);
	put_text_if(w, "phase", i->phase);
}

/* ---- messages ---- */

static void put_memory(struct json_writer *w, const struct stream_memory *m)
{
	JSON_PUT(w, JSON_U("pid", m->pid), JSON_U("gpu_id", m->gpu_id),
		JSON_U("allocated_bytes", m->allocated_bytes), JSON_U("total_vram", m->total_vram));
	put_number(w, "utilization_pct", m->utilization_pct);
	JSON_PUT(w, JSON_U("last_alloc_size", m->last_alloc_size),
		JSON_U("timestamp_ns", m->timestamp_ns));
	put_text_if(w, "comm", m->comm);
}

static void put_straggle(struct json_writer *w, const struct stream_straggle *s)
{
	json_uint_member(w, "pid", s->pid);
	put_number(w, "throughput_drop_pct", s->throughput_drop_pct);
	json_uint_member(w, "sched_switch_count", s->sched_switch_count);
	json_begin_array_member(w, "preempting_pids");
	for (size_t i = 0; i < s->preempting_count && i < STREAM_PREEMPTORS; i++)
		json_put_uint(w, s->preempting_pids[i]);
	json_end_array(w);
	JSON_PUT(w, JSON_U("timestamp_ns", s->timestamp_ns), JSON_B("sustained", s->sustained));
	put_text_if(w, "comm", s->comm);
	put_text_if(w, "event_id", s->event_id);
	put_rank_if(w, s->rank, s->world_size);
}

static void put_state(struct json_writer *w, const struct stream_straggler_state *s)
{
	put_node(w, &s->node);
	put_number(w, "score", s->score);
	put_number(w, "threshold", s->threshold);
	put_text(w, "detection_mode", s->detection_mode);
	put_text(w, "dominant_signal", s->dominant_signal);
	put_node_if(w, &s->node);
	put_text_if(w, "problem", s->problem);
	put_text_if(w, "summary", s->summary);
	put_text_if(w, "cause", s->cause);
	put_text_if(w, "fix", s->fix);
	put_text_if(w, "place", s->place);
	put_uint_if(w, "lag_ns", s->lag_ns);
	put_uint_if(w, "period_steps", s->period_steps);
	put_uint_if(w, "waiting_ranks", s->waiting_ranks);
	put_uint_if(w, "waited_ns", s->waited_ns);
}

static void put_outlier(struct json_writer *w, const struct stream_inference_outlier *o)
{
	put_node(w, &o->node);
	JSON_PUT(w, JSON_U("pid", o->of.pid), JSON_U("step_duration_ns", o->step_duration_ns),
		JSON_U("baseline_p95_ns", o->baseline_p95_ns));
	put_text(w, "bucket", o->of.bucket);
	put_node_if(w, &o->node);
	put_inference_if(w, &o->of);
	put_uint_if(w, "baseline_mean_ns", o->baseline_mean_ns);
	put_uint_if(w, "memfrag_events_in_step", o->memfrag_events_in_step);
	put_uint_if(w, "min_sm_clock_mhz", o->min_sm_clock_mhz);
	if (o->throttle_count) {
		json_begin_array_member(w, "throttle_reasons");
		for (size_t i = 0; i < o->throttle_count && i < STREAM_THROTTLES; i++)
			json_put_string(w, o->throttle_reasons[i]);
		json_end_array(w);
	}
	if (o->alloc_count) {
		json_begin_array_member(w, "kv_cache_top_alloc_ages_ms");
		for (size_t i = 0; i < o->alloc_count && i < STREAM_ALLOCS; i++)
			json_put_uint(w, o->kv_cache_top_alloc_ages_ms[i]);
		json_end_array(w);
	}
}

static void put_degraded(struct json_writer *w, const struct stream_inference_sampler_degraded *d)
{
	put_node(w, &d->node);
	json_uint_member(w, "pid", d->of.pid);
	put_text(w, "bucket", d->of.bucket);
	put_text(w, "cause", d->cause);
	put_time(w, "cooldown_end", d->cooldown_end);
	put_inference_if(w, &d->of);
	put_rank_if(w, d->node.rank, d->node.world_size);
}

int stream_message_line(struct buf *b, const struct stream_message *m)
{
	_cleanup_buf_ struct buf line = BUF_INIT(STREAM_LINE_MAX);
	struct json_writer w = json_writer_to_buf(&line);
	int r;

	json_begin_object(&w);
	json_string_member(&w, "type", ids[m->type]);
	switch (m->type) {
	case STREAM_MEMORY: put_memory(&w, &m->memory); break;
	case STREAM_STRAGGLE: put_straggle(&w, &m->straggle); break;
	case STREAM_STRAGGLER_STATE: put_state(&w, &m->state); break;
	case STREAM_STRAGGLER_RESOLVED:
		put_node(&w, &m->resolved.node);
		put_node_if(&w, &m->resolved.node);
		break;
	case STREAM_INFERENCE_OUTLIER: put_outlier(&w, &m->outlier); break;
	case STREAM_INFERENCE_SAMPLER_DEGRADED: put_degraded(&w, &m->degraded); break;
	case STREAM_TYPE_COUNT: return -EINVAL;
	}
	json_int_member(&w, "contract_version", STREAM_CONTRACT);
	json_end_object(&w);
	r = json_finish(&w);
	if (r < 0)
		return r;
	buf_append(b, line.data, line.len);
	return b->err;
}
