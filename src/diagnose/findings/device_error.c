/* SPDX-License-Identifier: Apache-2.0 */
/* device_error.c - see device_error.h. The numbers are those of the CUDA 10.1 and later runtime,
 * which are the driver's; where the two differ in what they call it, the runtime's name stands.
 * NCCL counts on its own. */
#include "diagnose/findings/device_error.h"

#include <stddef.h>

#include "base/macros.h"
#include "wire/ids.h"

static const struct error_row cuda_errors[] = {
	{1, "invalid value", ERROR_REFUSED, false, "an argument is out of range"},
	{2, "out of memory", ERROR_MEMORY, false, "no free block of that size"},
	{3, "initialization error", ERROR_DEVICE, false,
		"CUDA could not be initialised, or was used after a fork"},
	/* At the end of a process, destructors call into a library that is gone: harmless. */
	{4, "driver shutting down", ERROR_EXPECTED, false, "the process is ending"},
	{9, "invalid configuration", ERROR_LAUNCH, false, "grid or block too large, or zero"},
	{21, "invalid memcpy direction", ERROR_REFUSED, false, "unknown copy direction"},
	{35, "insufficient driver", ERROR_VERSION, false,
		"the driver is older than this CUDA needs"},
	{36, "call requires newer driver", ERROR_VERSION, false,
		"the driver is older than this call needs"},
	{46, "devices unavailable", ERROR_DEVICE, false,
		"another process uses the GPU exclusively"},
	{98, "invalid device function", ERROR_LAUNCH, false,
		"no such kernel in the code that is loaded for this GPU"},
	{100, "no device", ERROR_VERSION, false, "no usable GPU is visible to CUDA"},
	{101, "invalid device", ERROR_REFUSED, false, "no GPU with that number"},
	{200, "invalid kernel image", ERROR_LAUNCH, false, "the kernel's code cannot be loaded"},
	{209, "no kernel image for device", ERROR_VERSION, false,
		"the program has no code for this GPU's generation"},
	{214, "uncorrectable ECC error", ERROR_DEVICE, true, "data in GPU memory is corrupted"},
	{218, "invalid PTX", ERROR_LAUNCH, false, "the driver's compiler rejected the kernel"},
	{220, "NVLink uncorrectable", ERROR_DEVICE, true, "the link to another GPU failed"},
	{221, "JIT compiler not found", ERROR_LAUNCH, false,
		"the driver's compiler library is missing"},
	{222, "unsupported PTX version", ERROR_VERSION, false,
		"the kernel was built by a newer toolkit than the driver knows"},
	{226, "contained error", ERROR_DEVICE, true,
		"data in GPU memory is corrupted, in this process only"},
	{304, "operating system call failed", ERROR_DEVICE, false,
		"the operating system rejected a request"},
	{400, "invalid resource handle", ERROR_REFUSED, false,
		"the stream or event does not exist"},
	{401, "illegal state", ERROR_CAPTURE, false, "not allowed in this state"},
	/* Queries answer so as long as the work is not done. */
	{600, "not ready", ERROR_EXPECTED, false, "work is still running"},
	{700, "illegal address", ERROR_DEVICE, true, "a kernel accessed an invalid address"},
	{701, "launch out of resources", ERROR_LAUNCH, false,
		"too many registers or too much shared memory for a block"},
	{702, "launch timeout", ERROR_DEVICE, true, "a kernel ran longer than the display's limit"},
	/* Frameworks enable peer access without asking whether it is enabled. */
	{704, "peer access already enabled", ERROR_EXPECTED, false, "it is enabled"},
	{705, "peer access not enabled", ERROR_EXPECTED, false, "it was not enabled"},
	{709, "context is destroyed", ERROR_DEVICE, true, "an earlier error ended it"},
	{710, "device-side assert", ERROR_DEVICE, true, "an assertion in a kernel failed"},
	/* Memory registered twice by two libraries stays registered. */
	{712, "host memory already registered", ERROR_EXPECTED, false, "it is registered"},
	{713, "host memory not registered", ERROR_EXPECTED, false, "it was not registered"},
	{714, "hardware stack error", ERROR_DEVICE, true, "a kernel's stack overflowed"},
	{715, "illegal instruction", ERROR_DEVICE, true, "a kernel's code is invalid"},
	{716, "misaligned address", ERROR_DEVICE, true,
		"a kernel used an address that is not aligned"},
	{717, "invalid address space", ERROR_DEVICE, true,
		"a kernel used an address of the wrong kind"},
	{718, "invalid program counter", ERROR_DEVICE, true,
		"a kernel jumped to an invalid address"},
	{719, "launch failure", ERROR_DEVICE, true, "a kernel failed while it ran"},
	{720, "cooperative launch too large", ERROR_LAUNCH, false,
		"more blocks than can run at the same time"},
	{800, "not permitted", ERROR_REFUSED, false, "not allowed here"},
	{801, "not supported", ERROR_REFUSED, false, "not supported here"},
	{802, "system not ready", ERROR_DEVICE, false, "the fabric manager is not running"},
	{803, "system driver mismatch", ERROR_VERSION, false,
		"kernel module and libcuda have different versions"},
	{804, "compat not supported on device", ERROR_VERSION, false,
		"the compatibility package does not work on this GPU"},
	{900, "stream capture unsupported", ERROR_CAPTURE, false,
		"not allowed while a stream is captured"},
	{901, "stream capture invalidated", ERROR_CAPTURE, false,
		"an earlier call invalidated the capture"},
	{902, "stream capture merge", ERROR_CAPTURE, false, "two captures were merged"},
	{903, "stream capture unmatched", ERROR_CAPTURE, false, "another stream began it"},
	{904, "stream capture unjoined", ERROR_CAPTURE, false, "a stream was not joined"},
	{905, "stream capture isolation", ERROR_CAPTURE, false,
		"it depends on work outside the capture"},
	{906, "stream capture implicit", ERROR_CAPTURE, false, "the default stream was used"},
	{907, "captured event", ERROR_CAPTURE, false, "an event of a capture was used outside"},
	{908, "stream capture wrong thread", ERROR_CAPTURE, false, "another thread began it"},
	/* The answer to "does it fit?": the program instantiates instead. */
	{910, "graph update failure", ERROR_EXPECTED, false, "the graph has another shape"},
	{999, "unknown", ERROR_DEVICE, false, "the driver gives no reason"},
};

static const struct error_row nccl_errors[] = {
	{1, "unhandled CUDA error", ERROR_DEVICE, false, "a CUDA call inside NCCL failed"},
	{2, "system error", ERROR_DEVICE, false, "a socket or a system call failed"},
	{3, "internal error", ERROR_DEVICE, false, "NCCL internal state is invalid"},
	{4, "invalid argument", ERROR_REFUSED, false, "an argument is invalid"},
	{5, "invalid usage", ERROR_REFUSED, false, "calls in an order that is not allowed"},
	{6, "remote error", ERROR_DEVICE, false, "another rank failed or exited"},
	/* Non-blocking communicators answer so until they are ready. */
	{7, "in progress", ERROR_EXPECTED, false, "it is in progress"},
};

/* What is in question here is whose fault it is: of the program (its kernels), or of the GPU. */
static const struct xid_row xids[] = {
	{13, PROBLEM_DEVICE_ASSERT, SEVERITY_MEDIUM,
		"an exception in a kernel; usually a bug in the program"},
	{31, PROBLEM_DEVICE_ASSERT, SEVERITY_MEDIUM,
		"a kernel accessed an unmapped address; usually a bug in the program"},
	{43, PROBLEM_DEVICE_ASSERT, SEVERITY_MEDIUM,
		"the program's work was stopped after an error in the program"},
	{45, PROBLEM_DEVICE_ASSERT, SEVERITY_LOW,
		"the program's work was cleaned up after another error, or it was killed"},
	{48, PROBLEM_CORRUPTION, SEVERITY_HIGH,
		"data in GPU memory is corrupted (double-bit error)"},
	{63, PROBLEM_HARDWARE_DRIFT, SEVERITY_MEDIUM,
		"a row of memory was replaced by a spare one"},
	{64, PROBLEM_HARDWARE_DRIFT, SEVERITY_HIGH, "a row of memory could not be replaced"},
	{74, PROBLEM_HARDWARE_DRIFT, SEVERITY_HIGH, "an NVLink failed"},
	{79, PROBLEM_HARDWARE_DRIFT, SEVERITY_HIGH, "the GPU fell off the bus"},
	{92, PROBLEM_HARDWARE_DRIFT, SEVERITY_MEDIUM, "too many corrected memory errors"},
	{94, PROBLEM_CORRUPTION, SEVERITY_HIGH,
		"data in GPU memory is corrupted; contained to the programs that used it"},
	{95, PROBLEM_CORRUPTION, SEVERITY_CRITICAL,
		"data in GPU memory is corrupted; not contained, all data on the GPU is suspect"},
	{119, PROBLEM_HARDWARE_DRIFT, SEVERITY_HIGH,
		"the GPU's system processor (GSP) did not respond to the driver"},
};

const struct error_row *error_find(unsigned source, int code)
{
	static const struct error_row unknown = {
		0, "error", ERROR_REFUSED, false, "not in the table of known errors"};
	bool nccl = source == SOURCE_NCCL;
	const struct error_row *rows = nccl ? nccl_errors : cuda_errors;
	size_t n = nccl ? ARRAY_SIZE(nccl_errors) : ARRAY_SIZE(cuda_errors);

	for (size_t i = 0; i < n; i++)
		if (rows[i].code == code)
			return &rows[i];
	return &unknown;
}

/* clang-format off: a sentence a line */
static const struct advice_row {
	int code;
	bool nccl;
	const char *text;
} advice[] = {
	{3, false,
		"Check that CUDA works for this user: `nvidia-smi`, and access to /dev/nvidia*. If the process is a forked child, use the spawn start method"},
	{46, false,
		"See who has the GPU and its compute mode: `nvidia-smi -q -d COMPUTE`; `nvidia-smi -c DEFAULT` lets several processes use it"},
	{100, false,
		"Make a GPU visible to the process: CUDA_VISIBLE_DEVICES, `--gpus` of the container, access to /dev/nvidia*"},
	{101, false,
		"Compare the number with `nvidia-smi -L` and CUDA_VISIBLE_DEVICES, which renumbers GPUs"},
	{209, false,
		"Build for this GPU's generation (TORCH_CUDA_ARCH_LIST, `nvcc -gencode`), or use a newer build of the framework"},
	{214, false,
		"Look at the GPU's memory errors: `nvidia-smi -q -d ECC,ROW_REMAPPER`; drain the node if they continue"},
	{220, false,
		"Look at the links: `nvidia-smi nvlink -e`; drain the node if errors continue"},
	{226, false,
		"Look at the GPU's memory errors: `nvidia-smi -q -d ECC,ROW_REMAPPER`; drain the node if they continue"},
	{304, false,
		"Look at the kernel's log (`dmesg`) and at limits of the process: open files, locked memory (`ulimit -a`)"},
	{802, false, "Start the fabric manager: `systemctl start nvidia-fabricmanager`"},
	{803, false, "Reboot, or reload the kernel module, after an update of the driver"},
	{999, false, "Look for XID errors in the kernel's log: `dmesg | grep -i xid`"},
	{1, true, "Find the call inside NCCL: run once with NCCL_DEBUG=WARN"},
	{2, true,
		"Run once with NCCL_DEBUG=WARN, and check network interfaces (NCCL_SOCKET_IFNAME) and shared memory (/dev/shm)"},
	{3, true,
		"Run once with NCCL_DEBUG=WARN, and check that all ranks have the same version of NCCL"},
	{6, true, "Look at the other ranks: one of them failed or ended first"},
};
/* clang-format on */

const char *error_advice(unsigned source, int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++)
		if (advice[i].code == code && advice[i].nccl == (source == SOURCE_NCCL))
			return advice[i].text;
	return NULL;
}

const struct xid_row *xid_find(int64_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(xids); i++)
		if (xids[i].number == number)
			return &xids[i];
	return NULL;
}
