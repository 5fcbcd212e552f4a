/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.h - NVIDIA's management library, loaded at run time: no header or library of NVIDIA's is
 * needed to build, and a driver that lacks a function leaves that value unknown.
 *
 * Its calls may block for ever or end the process: only the sampling child (child.h) uses this. */
#pragma once

#include "base/errinfo.h"
#include "model/sample.h"

#define NVML_GPUS_MAX 64

struct nvml_library;

/* nvml_open - load the library and initialise it. @path: this file; NULL: where drivers put it.
 * On success *ret is the caller's, released with nvml_close().
 * -ENOENT: there is no such library; -ENODEV: the driver is not loaded or there is no GPU;
 * -ENOSYS: the library lacks what is needed; -EIO: NVML gave another error. */
int nvml_open(const char *path, struct nvml_library **ret, struct errinfo *reterr);
DECLARE_FREE(struct nvml_library, nvml_close)

unsigned nvml_count(const struct nvml_library *n);                      /* at most NVML_GPUS_MAX */
void nvml_driver(const struct nvml_library *n, char *out, size_t size); /* "580.65.06" or "" */
void nvml_cuda(const struct nvml_library *n, char *out, size_t size);   /* "13.0" or "" */

/* nvml_read - all values of GPU @index, unknown where the driver does not tell. */
void nvml_read(struct nvml_library *n, unsigned index, struct gpu_sample *ret);

/* nvml_take_errors - note XID errors that came since the last call; nvml_read() shows the last of
 * each GPU. Does not wait. */
void nvml_take_errors(struct nvml_library *n, wall_time now);

const char *nvml_error_text(const struct nvml_library *n, int64_t code);
