/* SPDX-License-Identifier: Apache-2.0 */
/* tool_rates.c - how much was done: collectives and their bandwidth, copies, kernel launches, calls that change
 * GPU memory. From stored calls (NCCL) and from counters of the agents (the rest). */

#include "base/text.h"
#include "cluster/answer/tool_private.h"

#define WORD_BYTES 64

static void say_first(struct buf *text, const json_t *list, const char *key, const char *unit)
{
	const json_t *o = json_array_get(list, 0);
	double value = member_real(o, key);

	if (!o)
		return;
	buf_puts(text, " Most: ");
	tool_say(text, json_string_value(json_object_get(o, "node_id")));
	if (value >= 1000)
		buf_printf(text, ", %s %s.", TEXT_COUNT((uint64_t)value), unit);
	else
		buf_printf(text, ", %.4g %s.", value, unit);
}

static void say_none(struct buf *text, const char *metric)
{
	buf_printf(text,
		"No data in this time range: no node has sent %s, or only one point of it.",
		metric);
}

/* ---- nccl_summary ---- */

/* How much each rank's links carry for a byte of the operation, of @n ranks. */
static double bus_factor(const char *op, double n)
{
	static const struct {
		const char *op;
		double times;
	} rows[] = {{"AllReduce", 2}, {"AllGather", 1}, {"ReduceScatter", 1}, {"AlltoAll", 1}};

	op = strncmp(op, "nccl", 4) ? op : op + 4;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(op, rows[i].op) && n > 0)
			return rows[i].times * (n - 1) / n;
	return 1;
}

/* The last to come does not wait: its time is that of the transfer, whatever the clocks say. A Send or Recv is
 * an operation of its own. */
static const struct tool_question operations = {
	.select = "SELECT cluster_id, op_type, ranks, count(*) AS operations, sum(n) AS calls, "
		  "sum(size) AS total, sum(took) AS busy, {quantile:0.5:took} AS mid, "
		  "{quantile:0.99:took} AS high, max(took) AS most, sum(waited) AS idle "
		  "FROM (SELECT cluster_id, comm_id_hash, op_seq, op_type, "
		  "CASE WHEN peer >= 0 THEN rank ELSE -1 END AS alone, "
		  "max(nranks) AS ranks, count(*) AS n, max(bytes) AS size, "
		  "min(leave_ns - enter_ns) AS took, sum(wait_ns) AS waited "
		  "FROM {collectives} WHERE leave_ns > 0 "
		  "GROUP BY cluster_id, comm_id_hash, op_seq, op_type, alone) "
		  "GROUP BY cluster_id, op_type, ranks ORDER BY busy DESC"};

int tool_nccl(struct tool_call *c)
{
	static const char *const keys[] = {"cluster_id", "op_type", "nranks", "operations", "calls",
		"bytes", "transfer_ns", "transfer_p50_ns", "transfer_p99_ns", "transfer_max_ns",
		"waited_ns", NULL};
	_cleanup_(sql_table_done) struct sql_table t = {0};
	json_t *list, *o;
	size_t i;
	int r = tool_ask(c, &operations, &t);

	if (r < 0)
		return r;
	list = tool_rows(&t, keys);
	json_array_foreach (list, i, o) {
		const char *op = json_string_value(json_object_get(o, "op_type"));
		double ns = member_real(o, "transfer_ns"), bytes = member_real(o, "bytes");
		double rate = ns > 0 ? bytes / ns * 1e9 : 0;

		json_object_set_new(
			o, "bandwidth_bytes_per_s", ns > 0 ? json_real(rate) : json_null());
		json_object_set_new(o, "bus_bandwidth_bytes_per_s",
			ns > 0 ? json_real(
					 rate * bus_factor(op ? op : "", member_real(o, "nranks")))
			       : json_null());
		if (i == 5)
			continue;
		buf_puts(c->text, i ? "; " : "");
		tool_say(c->text, tool_text(&t, i, 1));
		buf_printf(c->text, " of %.0f ranks: %.0f operations, %.3g GB/s",
			member_real(o, "nranks"), member_real(o, "operations"),
			member_real(o, "bandwidth_bytes_per_s") / 1e9);
	}
	buf_puts(c->text, t.row_count ? "." : "No collectives are stored in this time range.");
	return tool_put(c, "{s:o}", "operations", list);
}

/* ---- counters ---- */

/* What the rows of @t say of bytes, or of time in copies. @unit_s: seconds in one of the histogram's
 * units; 0: bytes. */
static const struct copy_metric {
	const char *name;
	double unit_s;
	bool is_fallback; /* only of nodes that send nothing better */
} copy_metrics[] = {
	{"gpu.memcpy.bytes_total", 0, false},
	{"ingero.node.cuda_memcpy_bytes_total", 0, true},
	{"gpu.memcpy.duration_ms", 1e-3, false},
	{"ingero.memcpy.duration", 1, true},
};

static const struct copy_metric *copy_metric(const char *name)
{
	return FIND(x, copy_metrics, ARRAY_SIZE(copy_metrics), !strcmp(x->name, name));
}

/* One node's bytes and times may be told twice, by different names: the better name counts. */
static void add_copy(json_t *copies, const struct sql_table *t, size_t row)
{
	const struct copy_metric *m = copy_metric(tool_text(t, row, GROWTH_NAME));
	char direction[WORD_BYTES], node[512];
	json_t *o;

	growth_attribute(t, row, "ingero.memcpy.direction", direction, WORD_BYTES);
	if (!direction[0])
		growth_attribute(t, row, "direction", direction, WORD_BYTES);
	if (!direction[0])
		snprintf(direction, WORD_BYTES, "unknown");
	snprintf(node, sizeof(node), "%s\n%s", tool_text(t, row, GROWTH_NODE), direction);
	o = member_node(copies, tool_text(t, row, GROWTH_CLUSTER), node);
	json_object_set_new(o, "node_id", tool_json_text(tool_text(t, row, GROWTH_NODE)));
	json_object_set_new(o, "direction", tool_json_text(direction));
	if (m && m->unit_s > 0) {
		member_add(o, m->is_fallback ? "seconds_too" : "seconds",
			m->unit_s * tool_real(t, row, GROWTH_VALUE));
		member_add_int(o, m->is_fallback ? "copies_too" : "copies",
			tool_int(t, row, GROWTH_COUNT));
	} else if (m) {
		member_add(
			o, m->is_fallback ? "bytes_too" : "bytes", tool_real(t, row, GROWTH_VALUE));
	}
	if (growth_seconds(t, row) > member_real(o, "observed_s"))
		json_object_set_new(o, "observed_s", json_real(growth_seconds(t, row)));
}

static void choose(json_t *o, const char *key, const char *otherwise)
{
	json_t *v = json_object_get(o, otherwise);

	if (v && !json_object_get(o, key))
		json_object_set(o, key, v);
	json_object_del(o, otherwise);
}

static void settle_copy(json_t *o)
{
	double bytes, seconds;

	choose(o, "bytes", "bytes_too");
	choose(o, "seconds", "seconds_too");
	choose(o, "copies", "copies_too");
	bytes = member_real(o, "bytes");
	seconds = member_real(o, "seconds");
	json_object_set_new(o, "bytes", json_real(bytes));
	json_object_set_new(
		o, "bandwidth_bytes_per_s", seconds > 0 ? json_real(bytes / seconds) : json_null());
	json_object_set_new(o, "bytes_per_s",
		member_real(o, "observed_s") > 0 ? json_real(bytes / member_real(o, "observed_s"))
						 : json_null());
}

static json_t *directions(json_t *copies)
{
	_cleanup_(json_decrefp) json_t *by = json_object();
	const char *key;
	json_t *o;

	json_object_foreach (copies, key, o) {
		const char *name = json_string_value(json_object_get(o, "direction"));
		json_t *d = member_object(by, name);

		json_object_set_new(d, "direction", tool_json_text(name));
		member_add(d, "bytes", member_real(o, "bytes"));
		member_add(d, "seconds", member_real(o, "seconds"));
		member_add_int(d, "nodes", 1);
	}
	json_object_foreach (by, key, o) {
		double s = member_real(o, "seconds");

		json_object_set_new(o, "bandwidth_bytes_per_s",
			s > 0 ? json_real(member_real(o, "bytes") / s) : json_null());
	}
	return member_values(by, "bytes", SIZE_MAX);
}

int tool_memcpy(struct tool_call *c)
{
	const char *const metrics[] = {copy_metrics[0].name, copy_metrics[1].name,
		copy_metrics[2].name, copy_metrics[3].name, NULL};
	_cleanup_(json_decrefp) json_t *copies = json_object();
	_cleanup_(sql_table_done) struct sql_table t = {0};
	const char *key;
	json_t *o, *list;
	int r = growth_ask(c, metrics, &t);

	if (r < 0)
		return r;
	for (size_t i = 0; i < t.row_count; i++)
		add_copy(copies, &t, i);
	json_object_foreach (copies, key, o)
		settle_copy(o);
	list = member_values(copies, "bytes", tool_limit(c, TOOL_LIMIT));
	if (json_array_size(list)) {
		buf_printf(
			c->text, "%zu nodes and directions with copies.", json_object_size(copies));
		say_first(c->text, list, "bytes", "bytes");
	} else {
		say_none(c->text, metrics[0]);
	}
	return tool_put(c, "{s:o, s:o}", "directions", directions(copies), "nodes", list);
}

/* ---- memfrag_hotspots ---- */

int tool_memfrag(struct tool_call *c)
{
	static const char *const metrics[] = {
		"gpu.memfrag.ioctl_event_total", "gpu.memfrag.ratio", NULL};
	_cleanup_(json_decrefp) json_t *nodes = json_object();
	_cleanup_(sql_table_done) struct sql_table t = {0};
	json_t *list;
	int r = growth_ask(c, metrics, &t);

	if (r < 0)
		return r;
	for (size_t i = 0; i < t.row_count; i++) {
		json_t *o = member_node(
			nodes, tool_text(&t, i, GROWTH_CLUSTER), tool_text(&t, i, GROWTH_NODE));
		char cmd[WORD_BYTES];

		if (!tool_same(&t, i, GROWTH_NAME, metrics[0])) {
			json_object_set_new(
				o, "ratio_max", json_real(tool_real(&t, i, GROWTH_GREATEST)));
			continue;
		}
		growth_attribute(&t, i, "cmd", cmd, sizeof(cmd));
		member_add(o, "calls", tool_real(&t, i, GROWTH_VALUE));
		member_add(member_object(o, "by_cmd"), cmd[0] ? cmd : "unknown",
			tool_real(&t, i, GROWTH_VALUE));
	}
	list = member_values(nodes, "calls", tool_limit(c, TOOL_LIMIT));
	if (json_array_size(list)) {
		buf_printf(c->text, "%zu nodes have reported calls.", json_object_size(nodes));
		say_first(c->text, list, "calls", "calls that change GPU memory");
	} else {
		say_none(c->text, metrics[0]);
	}
	return tool_put(c, "{s:o}", "nodes", list);
}

/* ---- kernel_launch_summary ---- */

static void add_launches(json_t *nodes, const struct sql_table *t, size_t row)
{
	static const struct {
		const char *name, *key;
	} rows[] = {{"gpu.kernel.launch.count", "launches"},
		{"ingero.node.cuda_kernel_launch_total", "launches_too"}};
	static const struct {
		const char *name, *sum, *count;
	} shapes[] = {{"gpu.kernel.launch.threads_per_block", "threads", "blocks_seen"},
		{"gpu.kernel.launch.grid_blocks", "blocks", "grids_seen"}};
	json_t *o = member_node(
		nodes, tool_text(t, row, GROWTH_CLUSTER), tool_text(t, row, GROWTH_NODE));

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (tool_same(t, row, GROWTH_NAME, rows[i].name))
			member_add(o, rows[i].key, tool_real(t, row, GROWTH_VALUE));
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (tool_same(t, row, GROWTH_NAME, shapes[i].name)) {
			member_add(o, shapes[i].sum, tool_real(t, row, GROWTH_VALUE));
			member_add(o, shapes[i].count, tool_real(t, row, GROWTH_COUNT));
		}
	if (growth_seconds(t, row) > member_real(o, "observed_s"))
		json_object_set_new(o, "observed_s", json_real(growth_seconds(t, row)));
}

/* The mean of a histogram, which then goes. */
static void settle_mean(json_t *o, const char *key, const char *sum, const char *count)
{
	double n = member_real(o, count);

	if (n > 0)
		json_object_set_new(o, key, json_real(member_real(o, sum) / n));
	json_object_del(o, sum);
	json_object_del(o, count);
}

int tool_launches(struct tool_call *c)
{
	static const char *const metrics[] = {"gpu.kernel.launch.count",
		"ingero.node.cuda_kernel_launch_total", "gpu.kernel.launch.threads_per_block",
		"gpu.kernel.launch.grid_blocks", NULL};
	_cleanup_(json_decrefp) json_t *nodes = json_object();
	_cleanup_(sql_table_done) struct sql_table t = {0};
	double total = 0;
	const char *key;
	json_t *o, *list;
	int r = growth_ask(c, metrics, &t);

	if (r < 0)
		return r;
	for (size_t i = 0; i < t.row_count; i++)
		add_launches(nodes, &t, i);
	json_object_foreach (nodes, key, o) {
		double seconds = member_real(o, "observed_s");

		choose(o, "launches", "launches_too");
		settle_mean(o, "threads_per_block_mean", "threads", "blocks_seen");
		settle_mean(o, "grid_blocks_mean", "blocks", "grids_seen");
		json_object_set_new(o, "launches", json_real(member_real(o, "launches")));
		json_object_set_new(o, "launches_per_s",
			seconds > 0 ? json_real(member_real(o, "launches") / seconds)
				    : json_null());
		total += member_real(o, "launches");
	}
	list = member_values(nodes, "launches", tool_limit(c, TOOL_LIMIT));
	if (json_array_size(list)) {
		buf_printf(c->text, "%s on %s.", TEXT_PLURAL((uint64_t)total, "kernel launches"),
			TEXT_PLURAL(json_object_size(nodes), "nodes"));
		say_first(c->text, list, "launches", "launches");
	} else {
		say_none(c->text, metrics[0]);
	}
	return tool_put(c, "{s:f, s:o}", "launches", total, "nodes", list);
}
