/* SPDX-License-Identifier: Apache-2.0 */
/* view_metric_gpu.c - the points of the GPUs' state. Told only while the driver answers: an old
 * reading is not a present one. */
#include "record/trace/metrics/metric_table.h"
#include "record/trace/metrics/view_metric.h"

#define ROW(id) (&metric_table[id])

/* Values of a sample that are reported as they are, times a factor. */
static const struct {
	enum metric_id id;
	size_t offset;
	double factor;
} values[] = {
#define VALUE(id, field, factor)                                                                   \
	{                                                                                          \
		id, offsetof(struct gpu_sample, field), factor                                     \
	}
	VALUE(M_GPU_MEM_USED, mem_used_bytes, 1),
	VALUE(M_GPU_MEM_FREE, mem_free_bytes, 1),
	VALUE(M_GPU_MEM_TOTAL, mem_total_bytes, 1),
	VALUE(M_GPU_UTIL, util_gpu_pct, 0.01),
	VALUE(M_GPU_MEM_UTIL, util_mem_pct, 0.01),
	VALUE(M_GPU_SM_CLOCK, sm_clock_mhz, 1e6),
	VALUE(M_GPU_MEM_CLOCK, mem_clock_mhz, 1e6),
	VALUE(M_GPU_POWER, power_mw, 1e-3),
	VALUE(M_GPU_POWER_LIMIT, power_limit_mw, 1e-3),
	VALUE(M_GPU_TEMPERATURE, temperature_c, 1),
	VALUE(M_GPU_XID, last_xid, 1),
	VALUE(M_GPU_XID_TIME, last_xid_ns, 1e-9),
	VALUE(M_GPU_PCIE_TX, pcie_tx_kb_s, 1e3),
	VALUE(M_GPU_PCIE_RX, pcie_rx_kb_s, 1e3),
	VALUE(M_GPU_PCIE_GEN, pcie_gen, 1),
	VALUE(M_GPU_PCIE_WIDTH, pcie_width, 1),
	VALUE(M_GPU_PROCESSES, processes, 1),
#undef VALUE
};

static void put_values(const struct gpu_sample *g, struct metric_set *s)
{
	const struct metric_attribute gpu[] = {METRIC_TEXT(g->uuid)};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const struct metric_desc *d = ROW(values[i].id);
		int64_t v = *(const int64_t *)((const char *)g + values[i].offset);

		if (v == GPU_UNKNOWN)
			continue;
		if (d->is_double)
			metric_put_double(s, d, (wall_time){0}, (double)v * values[i].factor, gpu);
		else
			metric_put_int(s, d, (wall_time){0}, v * (int64_t)values[i].factor, gpu);
	}
}

/* The driver counts since it was loaded, at a time that it does not tell. */
static void put_ecc(const struct gpu_sample *g, struct metric_set *s)
{
	const wall_time unknown = {0};

	if (g->ecc_corrected != GPU_UNKNOWN)
		metric_put_int(s, ROW(M_GPU_ECC), unknown, g->ecc_corrected,
			METRIC_OF(METRIC_TEXT(g->uuid), METRIC_TEXT("corrected")));
	if (g->ecc_uncorrected != GPU_UNKNOWN)
		metric_put_int(s, ROW(M_GPU_ECC), unknown, g->ecc_uncorrected,
			METRIC_OF(METRIC_TEXT(g->uuid), METRIC_TEXT("uncorrected")));
}

static void put_throttle(const struct gpu_sample *g, struct metric_set *s)
{
	uint64_t now = (uint64_t)g->throttle_reasons;

	if (g->throttle_reasons == GPU_UNKNOWN)
		return;
	for (const struct gpu_throttle *t = gpu_throttles; t->bit; t++)
		metric_put_int(s, ROW(M_GPU_THROTTLE), (wall_time){0}, !!(now & t->bit),
			METRIC_OF(METRIC_TEXT(g->uuid), METRIC_TEXT(t->name)));
	for (int i = 0; i < THROTTLE_COUNT; i++)
		metric_put_int(s, ROW(M_GPU_THROTTLE_ACTIVE + i), (wall_time){0},
			!!(now & metric_state_throttle_bits[i]), METRIC_OF(METRIC_TEXT(g->uuid)));
}

static void put_info(const struct gpu_sample *g, struct metric_set *s)
{
	metric_put_int(s, ROW(M_GPU_INFO), (wall_time){0}, 1,
		METRIC_OF(METRIC_TEXT(g->uuid), METRIC_NUMBER(g->index), METRIC_TEXT(g->name),
			METRIC_TEXT(g->pci)));
}

void view_metric_gpu(const struct reading *r, struct metric_set *s)
{
	const struct tracer_view *v = r->view;
	const struct metric_state *f = r->metric_state;

	if (v->gpu_state == GPU_KNOWN || v->gpu_state == GPU_NO_ANSWER)
		metric_put_int(
			s, ROW(M_GPU_ANSWERS), (wall_time){0}, v->gpu_state == GPU_KNOWN, NULL);
	for (size_t i = 0; v->gpu_state == GPU_KNOWN && i < v->gpu_count; i++) {
		put_info(&v->gpus[i].sample, s);
		put_values(&v->gpus[i].sample, s);
		put_ecc(&v->gpus[i].sample, s);
		put_throttle(&v->gpus[i].sample, s);
	}
	for (size_t i = 0; i < f->gpu_count; i++) /* counters do not go away */
		for (int k = 0; k < THROTTLE_COUNT; k++)
			metric_put_int(s, ROW(M_GPU_THROTTLE_EDGES + k), v->started,
				(int64_t)f->gpus[i].edges[k],
				METRIC_OF(METRIC_TEXT(f->gpus[i].uuid)));
}
