/* SPDX-License-Identifier: Apache-2.0 */
/* export_metric.c - see export_metric.h. Everything is reported from the beginning, as 0. */
#include "notify/telemetry/export_metric.h"

#define RESULT                                                                                     \
	{                                                                                          \
		{                                                                                  \
			"ingero.result", "result"                                                  \
		}                                                                                  \
	}

const struct metric_desc export_metric_table[EXPORT_METRIC_COUNT] = {
	[E_BATCHES] = {"ingero.otlp.batches", "ingero_otlp_batches_total", "{batch}",
		METRIC_COUNTER, false, 0,
		"OTLP batches: sent, dropped (queue full), rejected by the receiver", RESULT},
	[E_POINTS] = {"ingero.otlp.points", "ingero_otlp_points_total", "{point}", METRIC_COUNTER,
		false, 0,
		"Data points in OTLP batches; rejected: the receiver accepted the rest of the batch",
		RESULT},
	[E_RETRIES] = {"ingero.otlp.retries", "ingero_otlp_retries_total", "{attempt}",
		METRIC_COUNTER, false, 0, "OTLP attempts that failed and are retried", {{0}}},
	[E_QUEUE] = {"ingero.otlp.queue", "ingero_otlp_queue_batches", "{batch}", METRIC_GAUGE,
		false, 0, "Queued OTLP batches", {{0}}},
	[E_QUEUE_BYTES] = {"ingero.otlp.queue.size", "ingero_otlp_queue_bytes", "By", METRIC_GAUGE,
		false, 0, "Bytes of the queued OTLP batches", {{0}}},
	[E_SCRAPES] = {"ingero.scrapes", "ingero_scrapes_total", "{scrape}", METRIC_COUNTER, false,
		0, "Scrapes answered with metrics, before this one", {{0}}},
};

static void put_result(struct metric_set *s, enum export_metric_id id, wall_time start,
	const char *result, uint64_t v)
{
	metric_put_int(
		s, &export_metric_table[id], start, (int64_t)v, METRIC_OF(METRIC_TEXT(result)));
}

void export_metric_push(struct metric_set *s, wall_time start, const struct push_stats *f)
{
	const struct backlog_stats *b = &f->backlog;

	put_result(s, E_BATCHES, start, "sent", b->sent_batches);
	put_result(s, E_BATCHES, start, "dropped", b->dropped_batches);
	put_result(s, E_BATCHES, start, "refused", b->refused_batches);
	put_result(s, E_POINTS, start, "sent",
		b->sent_points - MIN(f->rejected_points, b->sent_points));
	put_result(s, E_POINTS, start, "dropped", b->dropped_points);
	put_result(s, E_POINTS, start, "refused", b->refused_points);
	put_result(s, E_POINTS, start, "rejected", f->rejected_points);
	metric_put_int(s, &export_metric_table[E_RETRIES], start, (int64_t)b->retries, NULL);
	metric_put_int(s, &export_metric_table[E_QUEUE], start, (int64_t)f->queued_batches, NULL);
	metric_put_int(
		s, &export_metric_table[E_QUEUE_BYTES], start, (int64_t)f->queued_bytes, NULL);
}

void export_metric_scrapes(struct metric_set *s, wall_time start, uint64_t scrapes)
{
	metric_put_int(s, &export_metric_table[E_SCRAPES], start, (int64_t)scrapes, NULL);
}
