/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - our own declarations of the NVML functions in use, their loading, and one reading.
 *
 * Invariants:
 *  1. A function the library lacks is a NULL pointer and its values stay unknown; only
 * initialising, counting and getting a handle must be there.
 *  2. "Not supported" is an answer about the hardware; any other error of a reading is kept in
 *     nvml_error, the last one of the reading.
 *  3. Layouts below are those of the versioned functions they are used with. */
#include "record/gpu/nvml.h"

#include <dlfcn.h>
#include <limits.h>

enum {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
};
enum { CLOCK_SM = 1, CLOCK_MEM = 2 };
enum { SENSOR_GPU = 0 };
enum { ECC_CORRECTED = 0, ECC_UNCORRECTED = 1, ECC_SINCE_LOAD = 0 };
enum { PCIE_TX = 0, PCIE_RX = 1 };
#define EVENT_XID        0x8ULL
#define EVENTS_PER_ROUND 64
#define PROCESSES_MAX    64

typedef void *nvml_device;

struct nvml_utilization {
	unsigned gpu, memory;
};
struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_pci { /* of nvmlDeviceGetPciInfo_v3 */
	char legacy_id[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char id[32];
};
struct nvml_process { /* of nvmlDeviceGetComputeRunningProcesses_v2 and _v3 */
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};
struct nvml_event { /* of nvmlEventSetWait_v2 */
	nvml_device device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};
STATIC_ASSERT(sizeof(struct nvml_pci) == 68);
STATIC_ASSERT(sizeof(struct nvml_event) == 32);
STATIC_ASSERT(sizeof(struct nvml_process) == 24);

/* X(member, arguments, symbol, older symbol of the same shape or NULL) */
#define NVML_FUNCTIONS(X)                                                                          \
	X(init, (void), "nvmlInit_v2", NULL)                                                       \
	X(shutdown, (void), "nvmlShutdown", NULL)                                                  \
	X(driver, (char *, unsigned), "nvmlSystemGetDriverVersion", NULL)                          \
	X(cuda, (int *), "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion")    \
	X(count, (unsigned *), "nvmlDeviceGetCount_v2", NULL)                                      \
	X(device, (unsigned, nvml_device *), "nvmlDeviceGetHandleByIndex_v2", NULL)                \
	X(name, (nvml_device, char *, unsigned), "nvmlDeviceGetName", NULL)                        \
	X(uuid, (nvml_device, char *, unsigned), "nvmlDeviceGetUUID", NULL)                        \
	X(pci, (nvml_device, struct nvml_pci *), "nvmlDeviceGetPciInfo_v3", NULL)                  \
	X(utilization, (nvml_device, struct nvml_utilization *), "nvmlDeviceGetUtilizationRates",  \
		NULL)                                                                              \
	X(clock, (nvml_device, int, unsigned *), "nvmlDeviceGetClockInfo", NULL)                   \
	X(clock_max, (nvml_device, int, unsigned *), "nvmlDeviceGetMaxClockInfo", NULL)            \
	X(power_default, (nvml_device, unsigned *), "nvmlDeviceGetPowerManagementDefaultLimit",    \
		NULL)                                                                              \
	X(power, (nvml_device, unsigned *), "nvmlDeviceGetPowerUsage", NULL)                       \
	X(power_limit, (nvml_device, unsigned *), "nvmlDeviceGetEnforcedPowerLimit", NULL)         \
	X(temperature, (nvml_device, int, unsigned *), "nvmlDeviceGetTemperature", NULL)           \
	X(throttle, (nvml_device, unsigned long long *), "nvmlDeviceGetCurrentClocksEventReasons", \
		"nvmlDeviceGetCurrentClocksThrottleReasons")                                       \
	X(memory, (nvml_device, struct nvml_memory *), "nvmlDeviceGetMemoryInfo", NULL)            \
	X(ecc, (nvml_device, int, int, unsigned long long *), "nvmlDeviceGetTotalEccErrors", NULL) \
	X(pcie, (nvml_device, int, unsigned *), "nvmlDeviceGetPcieThroughput", NULL)               \
	X(pcie_gen, (nvml_device, unsigned *), "nvmlDeviceGetCurrPcieLinkGeneration", NULL)        \
	X(pcie_width, (nvml_device, unsigned *), "nvmlDeviceGetCurrPcieLinkWidth", NULL)           \
	X(processes, (nvml_device, unsigned *, void *), "nvmlDeviceGetComputeRunningProcesses_v3", \
		"nvmlDeviceGetComputeRunningProcesses_v2")                                         \
	X(event_create, (void **), "nvmlEventSetCreate", NULL)                                     \
	X(event_register, (nvml_device, unsigned long long, void *), "nvmlDeviceRegisterEvents",   \
		NULL)                                                                              \
	X(event_wait, (void *, struct nvml_event *, unsigned), "nvmlEventSetWait_v2", NULL)        \
	X(event_free, (void *), "nvmlEventSetFree", NULL)

struct nvml_gpu {
	nvml_device handle;
	int handle_error;
	int64_t xid, xid_ns;
};

struct nvml_library {
	void *library;
	bool initialised;
	const char *(*error_string)(int);
#define X(member, arguments, symbol, older) int(*member) arguments;
	NVML_FUNCTIONS(X)
#undef X
	void *events;
	unsigned gpu_count;
	struct nvml_gpu gpus[NVML_GPUS_MAX];
};

static const struct {
	const char *symbol, *older;
	size_t offset;
} functions[] = {
#define X(member, arguments, symbol, older) {symbol, older, offsetof(struct nvml_library, member)},
	NVML_FUNCTIONS(X)
#undef X
};

static int load_library(struct nvml_library *n, const char *path, struct errinfo *reterr)
{
	static const char *const folders[] = {"", "/usr/local/nvidia/lib64/",
		"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/usr/lib64/"};

	if (path)
		n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; !path && !n->library && i < ARRAY_SIZE(folders); i++) {
		n->library = dlopen(FORMATTED(PATH_MAX, "%slibnvidia-ml.so.1", folders[i]),
			RTLD_NOW | RTLD_LOCAL);
	}
	if (!n->library && path)
		return errinfo_set(reterr, -ENOENT, "%s", dlerror());
	if (!n->library)
		return errinfo_set(reterr, -ENOENT, "libnvidia-ml.so.1 not found");
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		void *f = dlsym(n->library, functions[i].symbol);

		if (!f && functions[i].older)
			f = dlsym(n->library, functions[i].older);
		memcpy((char *)n + functions[i].offset, &f, sizeof(f));
	}
	*(void **)&n->error_string = dlsym(n->library, "nvmlErrorString");
	if (!n->init || !n->count || !n->device)
		return errinfo_set(reterr, -ENOSYS,
			"libnvidia-ml.so.1 is too old: it lacks nvmlInit_v2, nvmlDeviceGetCount_v2 "
			"or nvmlDeviceGetHandleByIndex_v2");
	return 0;
}

const char *nvml_error_text(const struct nvml_library *n, int64_t code)
{
	const char *text = n->error_string ? n->error_string((int)code) : NULL;

	return text ? text : "unknown error";
}

static int fail(const struct nvml_library *n, int code, struct errinfo *reterr)
{
	return errinfo_set(reterr, code == NVML_DRIVER_NOT_LOADED ? -ENODEV : -EIO, "NVML: %s",
		nvml_error_text(n, code));
}

static void register_errors(struct nvml_library *n)
{
	if (!n->event_create || !n->event_register || !n->event_wait)
		return;
	if (n->event_create(&n->events) != NVML_OK) {
		n->events = NULL;
		return;
	}
	for (unsigned i = 0; i < n->gpu_count;
		i++) /* one that cannot tell of errors is no failure */
		if (n->gpus[i].handle)
			(void)n->event_register(n->gpus[i].handle, EVENT_XID, n->events);
}

int nvml_open(const char *path, struct nvml_library **ret, struct errinfo *reterr)
{
	_cleanup_(nvml_closep) struct nvml_library *n = calloc(1, sizeof(*n));
	unsigned count = 0;
	int r;

	if (!n)
		return -ENOMEM;
	r = load_library(n, path, reterr);
	if (r < 0)
		return r;
	r = n->init();
	if (r != NVML_OK)
		return fail(n, r, reterr);
	n->initialised = true;
	r = n->count(&count);
	if (r != NVML_OK)
		return fail(n, r, reterr);
	if (!count)
		return errinfo_set(reterr, -ENODEV, "NVML finds no GPU");
	n->gpu_count = MIN(count, (unsigned)NVML_GPUS_MAX);
	for (unsigned i = 0; i < n->gpu_count; i++) {
		struct nvml_gpu *g = &n->gpus[i];

		g->xid = g->xid_ns = GPU_UNKNOWN;
		g->handle_error = n->device(i, &g->handle);
		if (g->handle_error != NVML_OK)
			g->handle = NULL; /* lost, or not ours to open: its row says so */
	}
	register_errors(n);
	*ret = TAKE(n);
	return 0;
}

void nvml_close(struct nvml_library *n)
{
	if (n->events && n->event_free)
		n->event_free(n->events);
	if (n->initialised && n->shutdown)
		n->shutdown();
	if (n->library)
		dlclose(n->library);
	free(n);
}

unsigned nvml_count(const struct nvml_library *n)
{
	return n->gpu_count;
}

void nvml_driver(const struct nvml_library *n, char *out, size_t size)
{
	if (!n->driver || n->driver(out, (unsigned)size) != NVML_OK)
		out[0] = 0;
	out[size - 1] = 0;
}

void nvml_cuda(const struct nvml_library *n, char *out, size_t size)
{
	int v = 0;

	out[0] = 0;
	if (n->cuda && n->cuda(&v) == NVML_OK && v > 0)
		snprintf(out, size, "%d.%d", v / 1000, v % 1000 / 10);
}

/* ---- one reading ---- */

struct reading {
	struct nvml_library *n;
	nvml_device device;
	struct gpu_sample *sample;
};

static bool is_known(struct reading *r, int code)
{
	if (code == NVML_OK)
		return true;
	if (code != NVML_NOT_SUPPORTED)
		r->sample->nvml_error = code;
	return false;
}

/* GET(field, function, arguments before the output …) - one value, if the function is there. */
#define GET(type, field, function, ...)                                                            \
	do {                                                                                       \
		type value_ = 0;                                                                   \
		if (r->n->function && is_known(r, r->n->function(__VA_ARGS__, &value_)))           \
			r->sample->field = (int64_t)(value_ & INT64_MAX);                          \
	} while (0)

static void read_load(struct reading *r)
{
	struct nvml_utilization u = {0};
	struct nvml_memory m = {0};

	if (r->n->utilization && is_known(r, r->n->utilization(r->device, &u))) {
		r->sample->util_gpu_pct = u.gpu;
		r->sample->util_mem_pct = u.memory;
	}
	if (r->n->memory && is_known(r, r->n->memory(r->device, &m))) {
		r->sample->mem_used_bytes = (int64_t)(m.used & INT64_MAX);
		r->sample->mem_free_bytes = (int64_t)(m.free & INT64_MAX);
		r->sample->mem_total_bytes = (int64_t)(m.total & INT64_MAX);
	}
}

static void read_processes(struct reading *r)
{
	struct nvml_process list[PROCESSES_MAX] = {0};
	int64_t *const named[] = {&r->sample->process_1, &r->sample->process_2,
		&r->sample->process_3, &r->sample->process_4};
	unsigned count = PROCESSES_MAX;
	int code;

	if (!r->n->processes)
		return;
	code = r->n->processes(r->device, &count, list);
	if (code == NVML_INSUFFICIENT_SIZE || is_known(r, code))
		r->sample->processes =
			count; /* of too many for the list it says how many they are */
	for (size_t i = 0; code == NVML_OK && i < MIN((size_t)count, ARRAY_SIZE(named)); i++)
		*named[i] = list[i].pid;
}

void nvml_read(struct nvml_library *n, unsigned index, struct gpu_sample *ret)
{
	struct nvml_gpu *g = &n->gpus[index];
	struct reading reading = {.n = n, .device = g->handle, .sample = ret}, *r = &reading;
	struct gpu_sample *s;
	struct nvml_pci pci;

	gpu_sample_init(ret);
	ret->index = index;
	ret->nvml_error = g->handle_error;
	ret->last_xid = g->xid;
	ret->last_xid_ns = g->xid_ns;
	if (!g->handle)
		return;
	s = r->sample;
	memset(&pci, 0, sizeof(pci));
	if (!r->n->name || !is_known(r, r->n->name(r->device, s->name, sizeof(s->name))))
		s->name[0] = 0;
	if (!r->n->uuid || !is_known(r, r->n->uuid(r->device, s->uuid, sizeof(s->uuid))))
		s->uuid[0] = 0;
	if (r->n->pci && is_known(r, r->n->pci(r->device, &pci)))
		snprintf(s->pci, sizeof(s->pci), "%.*s", (int)sizeof(pci.id) - 1, pci.id);
	read_load(r);
	GET(unsigned, sm_clock_mhz, clock, r->device, CLOCK_SM);
	GET(unsigned, mem_clock_mhz, clock, r->device, CLOCK_MEM);
	GET(unsigned, power_mw, power, r->device);
	GET(unsigned, power_limit_mw, power_limit, r->device);
	GET(unsigned, sm_clock_max_mhz, clock_max, r->device, CLOCK_SM);
	GET(unsigned, power_default_mw, power_default, r->device);
	GET(unsigned, temperature_c, temperature, r->device, SENSOR_GPU);
	GET(unsigned long long, throttle_reasons, throttle, r->device);
	GET(unsigned long long, ecc_corrected, ecc, r->device, ECC_CORRECTED, ECC_SINCE_LOAD);
	GET(unsigned long long, ecc_uncorrected, ecc, r->device, ECC_UNCORRECTED, ECC_SINCE_LOAD);
	GET(unsigned, pcie_tx_kb_s, pcie, r->device, PCIE_TX);
	GET(unsigned, pcie_rx_kb_s, pcie, r->device, PCIE_RX);
	GET(unsigned, pcie_gen, pcie_gen, r->device);
	GET(unsigned, pcie_width, pcie_width, r->device);
	read_processes(r);
}

void nvml_take_errors(struct nvml_library *n, wall_time now)
{
	struct nvml_event e;

	for (int i = 0; n->events && i < EVENTS_PER_ROUND; i++) {
		e = (struct nvml_event){0};
		if (n->event_wait(n->events, &e, 0) != NVML_OK)
			return;
		for (unsigned k = 0; k < n->gpu_count; k++)
			if (e.type == EVENT_XID && e.device == n->gpus[k].handle) {
				n->gpus[k].xid = (int64_t)(e.data & INT64_MAX);
				n->gpus[k].xid_ns = now.ns;
			}
	}
}
