/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - the stand-in libnvidia-ml.so.1: every answer is a line of the state file (NVML.md), so a
 * test changes the GPU under a running reader.
 *
 * Every exported call first looks at the file: `hang 1` blocks it for ever (also after the line is
 * taken back: a stuck driver does not come round), `crash 1` aborts, `error N` or `gpuI.error N`
 * is its answer. Then the usual checks of handle and initialisation. One lock, never held while
 * hanging. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export.h"
#include "nvml_sim.h"
#include "nvml_state.h"
#include "share.h"

#define DEVICES_MAX 16
#define SYSTEM      (-1)
#define EVENT_LOOK  10000000 /* ns between looks for an event */

struct nvml_sim_device {
	unsigned char unused;
};

struct nvml_sim_event_set {
	unsigned registered;            /* bit per device */
	uint64_t seen_xid[DEVICES_MAX]; /* count of events already told */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvml_sim_device devices[DEVICES_MAX];
static int uses; /* nvmlInit_v2() less nvmlShutdown() */

static unsigned device_count(void)
{
	uint64_t n = nvml_state_number(SYSTEM, "gpus", 1);

	return n > DEVICES_MAX ? DEVICES_MAX : (unsigned)n;
}

static int device_index(nvmlDevice_t device)
{
	for (int i = 0; i < DEVICES_MAX; i++)
		if (device == &devices[i])
			return (unsigned)i < device_count() ? i : DEVICES_MAX;
	return DEVICES_MAX;
}

/* What every call does first. On success the lock is held. */
static nvmlReturn_t call_enter(int gpu)
{
	uint64_t error;

	pthread_mutex_lock(&lock);
	nvml_state_refresh();
	if (nvml_state_number(SYSTEM, "hang", 0)) {
		pthread_mutex_unlock(&lock);
		for (;;)
			pause();
	}
	if (nvml_state_number(SYSTEM, "crash", 0))
		abort();
	error = nvml_state_number(SYSTEM, "error", 0);
	if (!error && gpu >= 0 && gpu < DEVICES_MAX)
		error = nvml_state_number(gpu, "error", 0);
	if (error) {
		pthread_mutex_unlock(&lock);
		return (nvmlReturn_t)error;
	}
	return NVML_SUCCESS;
}

static nvmlReturn_t call_leave(nvmlReturn_t r)
{
	pthread_mutex_unlock(&lock);
	return r;
}

static nvmlReturn_t system_enter(void)
{
	nvmlReturn_t r = call_enter(SYSTEM);

	if (r == NVML_SUCCESS && !uses)
		return call_leave(NVML_ERROR_UNINITIALIZED);
	return r;
}

static nvmlReturn_t device_enter(nvmlDevice_t device, const void *out, int *ret_gpu)
{
	nvmlReturn_t r;

	for (*ret_gpu = 0; *ret_gpu < DEVICES_MAX && device != &devices[*ret_gpu];)
		++*ret_gpu;
	r = call_enter(*ret_gpu);
	if (r != NVML_SUCCESS)
		return r;
	if (!uses)
		return call_leave(NVML_ERROR_UNINITIALIZED);
	if (!out || device_index(device) == DEVICES_MAX)
		return call_leave(NVML_ERROR_INVALID_ARGUMENT);
	return NVML_SUCCESS;
}

/* ---- what the device really does, where processes share one (share.h) ---- */

#define PERIOD_NS  100000000 /* a reading stands for at least so long, as the driver's do */
#define POWER_IDLE 75000
#define POWER_FULL 600000

static struct {
	struct share_use at;
	unsigned percent;
} readings[DEVICES_MAX];

static unsigned busy_percent(int gpu)
{
	struct share_use use, *last = &readings[gpu].at;
	uint64_t ns, percent;

	if (!share_use_of(gpu, &use)) {
		*last = use; /* nobody has used it until now */
		return 0;
	}
	ns = use.now_ns - last->now_ns;
	if (last->now_ns && ns < PERIOD_NS)
		return readings[gpu].percent;
	percent = last->now_ns && use.busy_ns > last->busy_ns
			  ? (use.busy_ns - last->busy_ns) * 100 / ns
			  : 0;
	*last = use;
	readings[gpu].percent = percent > 100 ? 100 : (unsigned)percent;
	return readings[gpu].percent;
}

/* What stands for @key where the state does not say: @otherwise, unless it follows from how busy the device is. */
static uint64_t real_value(int gpu, const char *key, uint64_t otherwise)
{
	if (!strcmp(key, "util_gpu"))
		return busy_percent(gpu);
	if (!strcmp(key, "power"))
		return POWER_IDLE + busy_percent(gpu) * (POWER_FULL - POWER_IDLE) / 100;
	if (!strcmp(key, "throttle"))
		return busy_percent(gpu) ? 0 : otherwise;
	return otherwise;
}

/* The value of @key, or "not supported" where the state says `none`. */
static nvmlReturn_t number_get(
	nvmlDevice_t device, const char *key, uint64_t otherwise, void *out, size_t size)
{
	char word[8];
	uint64_t v;
	int gpu;
	nvmlReturn_t r = device_enter(device, out, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	nvml_state_text(gpu, key, "", word, sizeof(word));
	if (!strcmp(word, "none"))
		return call_leave(NVML_ERROR_NOT_SUPPORTED);
	v = nvml_state_number(gpu, key, real_value(gpu, key, otherwise));
	if (size == sizeof(unsigned int))
		*(unsigned int *)out = (unsigned int)v;
	else
		*(unsigned long long *)out = v;
	return call_leave(NVML_SUCCESS);
}

static nvmlReturn_t text_get(
	int gpu, const char *key, const char *otherwise, char *out, unsigned int length)
{
	char value[256];

	nvml_state_text(gpu, key, otherwise, value, sizeof(value));
	if (!out || strlen(value) + 1 > length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, value, strlen(value) + 1);
	return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
	nvmlReturn_t r = call_enter(SYSTEM);

	if (r != NVML_SUCCESS)
		return r;
	uses++;
	return call_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t r = system_enter();

	if (r != NVML_SUCCESS)
		return r;
	uses--;
	return call_leave(NVML_SUCCESS);
}

SIM_EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
	static const struct {
		nvmlReturn_t code;
		const char *text;
	} rows[] = {
		{NVML_SUCCESS, "Success"},
		{NVML_ERROR_UNINITIALIZED, "Uninitialized"},
		{NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
		{NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
		{NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
		{9, "Driver Not Loaded"},
		{NVML_ERROR_TIMEOUT, "Timeout"},
		{NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
		{18, "Driver/library version mismatch"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].code == result)
			return rows[i].text;
	return "Unknown Error";
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	nvmlReturn_t r = system_enter();

	if (r != NVML_SUCCESS)
		return r;
	return call_leave(text_get(SYSTEM, "driver", "580.65.06", version, length));
}

SIM_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	nvmlReturn_t r = system_enter();

	if (r != NVML_SUCCESS)
		return r;
	if (!version)
		return call_leave(NVML_ERROR_INVALID_ARGUMENT);
	*version = (int)nvml_state_number(SYSTEM, "cuda", 13000);
	return call_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	nvmlReturn_t r = system_enter();

	if (r != NVML_SUCCESS)
		return r;
	if (!count)
		return call_leave(NVML_ERROR_INVALID_ARGUMENT);
	*count = device_count();
	return call_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	nvmlReturn_t r = system_enter();

	if (r != NVML_SUCCESS)
		return r;
	if (!device || index >= device_count())
		return call_leave(NVML_ERROR_INVALID_ARGUMENT);
	*device = &devices[index];
	return call_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	int gpu;
	nvmlReturn_t r = device_enter(device, name, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	return call_leave(text_get(gpu, "name", "NVIDIA H200", name, length));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char otherwise[64];
	int gpu;
	nvmlReturn_t r = device_enter(device, uuid, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	snprintf(otherwise, sizeof(otherwise), "GPU-51d00000-0000-0000-0000-%012d", gpu);
	return call_leave(text_get(gpu, "uuid", otherwise, uuid, length));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	int gpu;
	nvmlReturn_t r = device_enter(device, pci, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	*pci = (nvmlPciInfo_t){.bus = 1 + (unsigned)gpu, .pciDeviceId = 0x233510de};
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus);
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
	return call_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *u)
{
	nvmlReturn_t r = number_get(device, "util_gpu", 0, u ? &u->gpu : NULL, sizeof(u->gpu));

	if (r != NVML_SUCCESS)
		return r;
	return number_get(device, "util_mem", 0, &u->memory, sizeof(u->memory));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *clock)
{
	if (type == NVML_CLOCK_MEM)
		return number_get(device, "mem_clock", 3201, clock, sizeof(*clock));
	return number_get(device, "sm_clock", 1980, clock, sizeof(*clock));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(
	nvmlDevice_t device, int type, unsigned int *clock)
{
	if (type == NVML_CLOCK_MEM)
		return number_get(device, "mem_clock_max", 3201, clock, sizeof(*clock));
	return number_get(device, "sm_clock_max", 1980, clock, sizeof(*clock));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(
	nvmlDevice_t device, unsigned int *limit)
{
	return number_get(device, "power_default", 700000, limit, sizeof(*limit));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
	return number_get(device, "power", 75000, power, sizeof(*power));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit)
{
	return number_get(device, "power_limit", 700000, limit, sizeof(*limit));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(
	nvmlDevice_t device, int sensor, unsigned int *temp)
{
	return number_get(device, "temperature", 30, temp, sizeof(*temp));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(
	nvmlDevice_t device, unsigned long long *reasons)
{
	return number_get(device, "throttle", 1, reasons, sizeof(*reasons));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(
	nvmlDevice_t device, unsigned long long *reasons)
{
	return number_get(device, "throttle", 1, reasons, sizeof(*reasons));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	int gpu;
	nvmlReturn_t r = device_enter(device, memory, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	memory->total = nvml_state_number(gpu, "mem_total", 150754820096);
	memory->used = nvml_state_number(gpu, "mem_used", 0);
	memory->free = memory->used < memory->total ? memory->total - memory->used : 0;
	return call_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(
	nvmlDevice_t device, int type, int counter, unsigned long long *count)
{
	return number_get(device,
		type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? "ecc_corrected" : "ecc_uncorrected", 0,
		count, sizeof(*count));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(
	nvmlDevice_t device, int counter, unsigned int *value)
{
	return number_get(device, counter == NVML_PCIE_UTIL_TX_BYTES ? "pcie_tx" : "pcie_rx", 0,
		value, sizeof(*value));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(
	nvmlDevice_t device, unsigned int *generation)
{
	return number_get(device, "pcie_gen", 5, generation, sizeof(*generation));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width)
{
	return number_get(device, "pcie_width", 16, width, sizeof(*width));
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
	struct share_use use = {0};
	unsigned int room, n;
	int gpu;
	nvmlReturn_t r = device_enter(device, count, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	room = *count;
	share_use_of(gpu, &use);
	n = (unsigned)nvml_state_number(gpu, "processes", (uint64_t)use.processes);
	*count = n;
	if (n > room || (n && !infos))
		return call_leave(NVML_ERROR_INSUFFICIENT_SIZE);
	for (unsigned i = 0; i < n; i++)
		infos[i] = (nvmlProcessInfo_t){
			.pid = i < (unsigned)use.processes ? use.pids[i] : 1000 + i,
			.usedGpuMemory = 1 << 20};
	return call_leave(NVML_SUCCESS);
}

SIM_EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	nvmlReturn_t r = system_enter();

	if (r != NVML_SUCCESS)
		return r;
	if (!set)
		return call_leave(NVML_ERROR_INVALID_ARGUMENT);
	*set = calloc(1, sizeof(**set));
	return call_leave(*set ? NVML_SUCCESS : NVML_ERROR_UNKNOWN);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	int gpu;
	nvmlReturn_t r = device_enter(device, set, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	if (types & ~nvmlEventTypeXidCriticalError)
		return call_leave(NVML_ERROR_NOT_SUPPORTED);
	set->registered |= 1u << gpu;
	set->seen_xid[gpu] = nvml_state_number(gpu, "xid_count", 0);
	return call_leave(NVML_SUCCESS);
}

/* An event is due when a registered device's xid_count has grown. */
static int event_take(nvmlEventSet_t set, nvmlEventData_t *data)
{
	for (int gpu = 0; gpu < (int)device_count(); gpu++) {
		uint64_t count = nvml_state_number(gpu, "xid_count", 0);

		if (!(set->registered & 1u << gpu) || count <= set->seen_xid[gpu])
			continue;
		set->seen_xid[gpu]++;
		*data = (nvmlEventData_t){
			.device = &devices[gpu],
			.eventType = nvmlEventTypeXidCriticalError,
			.eventData = nvml_state_number(gpu, "xid", 0),
		};
		return 1;
	}
	return 0;
}

SIM_EXPORT nvmlReturn_t nvmlEventSetWait_v2(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout)
{
	const struct timespec nap = {.tv_nsec = EVENT_LOOK};

	for (uint64_t waited = 0;; waited += EVENT_LOOK) {
		nvmlReturn_t r = system_enter();

		if (r != NVML_SUCCESS)
			return r;
		if (!set || !data)
			return call_leave(NVML_ERROR_INVALID_ARGUMENT);
		if (event_take(set, data))
			return call_leave(NVML_SUCCESS);
		call_leave(NVML_SUCCESS);
		if (waited >= timeout * 1000000ULL)
			return NVML_ERROR_TIMEOUT;
		nanosleep(&nap, NULL);
	}
}

SIM_EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	nvmlReturn_t r = system_enter();

	if (r != NVML_SUCCESS)
		return r;
	free(set);
	return call_leave(NVML_SUCCESS);
}
