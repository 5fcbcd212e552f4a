/* SPDX-License-Identifier: Apache-2.0 */
/* demo_scenario.c - the published six. Each does on the stand-in GPU what its title says; how
 * strong the effect is depends on the machine and is measured, not promised. */
#include "cli/demo_scenario.h"

#include <string.h>

#include "cli/recording.h"

#define TRAIN "--steps", "1000000"
#define END                                                                                        \
	{                                                                                          \
		NULL, 0, NULL, {NULL}, false, false                                                \
	}

static const struct act incident_acts[] = {
	{"a training process on the stand-in GPU, undisturbed", 8, "sim-train",
		{TRAIN, "--launches", "2", "--kernel-us", "200", "--cpu-us", "200", "--batch-bytes",
			"1048576", "--data", "%w/dataset", "--cold", NULL},
		true, true},
	{"a CPU hog starts beside it", 8, "sim-cpu-hog",
		{"--threads", "4", "--duration", "60", NULL}, false, false},
	{"the CPU hog is gone; a disk hog starts", 8, "sim-disk-hog",
		{"--file", "%w/hog", "--duration", "60", "--depth", "16", NULL}, false, false},
	{"undisturbed again", 3, NULL, {NULL}, false, false},
	END,
};

static const struct act cold_start_acts[] = {
	{"a process makes its first CUDA calls and goes on", 5, "sim-train",
		{"SIM_INIT_NS=40e6", "SIM_MALLOC_NS=100000", TRAIN, "--launches", "8",
			"--kernel-us", "400", "--malloc-every", "5", NULL},
		true, true},
	END,
};

static const struct act memcpy_acts[] = {
	{"batches of 32 MiB over a link that moves 4 GB/s", 6, "sim-train",
		{"SIM_PCIE_BYTES_PER_S=4e9", "SIM_COPY_BYTES=65536", TRAIN, "--launches", "20",
			"--kernel-us", "650", "--batch-bytes", "33554432", NULL},
		true, true},
	END,
};

static const struct act spike_acts[] = {
	{"an allocation in every step; the driver needs longer for every 200th", 8, "sim-train",
		{"SIM_MALLOC_NS=50000", "SIM_MALLOC_SLOW_EVERY=200", "SIM_MALLOC_SLOW_NS=2500000",
			TRAIN, "--launches", "2", "--kernel-us", "400", "--malloc-every", "1",
			NULL},
		true, true},
	END,
};

static const struct act cpu_acts[] = {
	{"a training process, undisturbed", 5, "sim-train.py",
		{TRAIN, "--launches", "8", "--kernel-us", "400", "--cpu-us", "300", NULL}, true,
		true},
	{"more busy threads than CPUs beside it", 5, "sim-cpu-hog",
		{"--threads", "16", "--duration", "60", NULL}, false, false},
	{"undisturbed again", 2, NULL, {NULL}, false, false},
	END,
};

static const struct act steal_acts[] = {
	{"a training process has the GPU to itself", 5, "sim-train",
		{"SIM_GPU_SHARE=%w/gpu", TRAIN, "--launches", "10", "--kernel-us", "1000", NULL},
		true, true},
	{"a second process uses the same GPU", 5, "sim-train",
		{"SIM_GPU_SHARE=%w/gpu", TRAIN, "--launches", "10", "--kernel-us", "1000", NULL},
		true, false},
	{"it has ended", 2, NULL, {NULL}, false, false},
	END,
};

const struct demo_scenario demo_scenarios[] = {
	{"incident", {NULL}, "CPU and disk contention slow CUDA calls down", incident_acts, true,
		MEASURE_SLOWDOWN, &recording_incident},
	{"cold-start", {NULL}, "first calls pay for initialisation", cold_start_acts, false,
		MEASURE_FIRST_CALLS, &recording_cold_start},
	{"memcpy-bottleneck", {NULL}, "copies take the time that kernels should have", memcpy_acts,
		false, MEASURE_COPIES, &recording_memcpy_bottleneck},
	{"periodic-spike", {NULL}, "an allocation that is slow now and then", spike_acts, false,
		MEASURE_PERIOD, &recording_periodic_spike},
	{"cpu-contention", {NULL}, "others take the CPU that feeds the GPU", cpu_acts, false,
		MEASURE_SLOWDOWN, &recording_cpu_contention},
	{"gpu-steal", {"gpu-contention", "contention", NULL}, "another process uses the same GPU",
		steal_acts, false, MEASURE_SLOWDOWN, &recording_gpu_steal},
	{NULL, {NULL}, NULL, NULL, false, MEASURE_SLOWDOWN, NULL},
};

const struct demo_scenario *demo_scenario_find(const char *name)
{
	for (const struct demo_scenario *s = demo_scenarios; s->name; s++) {
		if (strcmp(s->name, name) == 0)
			return s;
		for (int i = 0; s->aliases[i]; i++)
			if (strcmp(s->aliases[i], name) == 0)
				return s;
	}
	return NULL;
}
