// SPDX-License-Identifier: Apache-2.0
/* nvtx.c - libingero-nvtx.so: functions of NVTX that do next to nothing, so that a tracer can see them
 * being called.
 *
 * NVTX 3 lives in headers: without a tool its calls end inside the program, where nothing can be
 * probed. A program that is started with NVTX_INJECTION64_PATH=…/libingero-nvtx.so loads this library
 * at its first call of NVTX and calls the functions below instead. They are exported under NVTX's own
 * names, which is where the probes sit. No file is opened, no thread started, nothing sent; names
 * that get a handle are copied and kept, as NVTX asks.
 *
 * The ABI (numbers of modules and functions, the tables) is NVTX's. */
#include "nvtx/nvtx.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#define EXPORT __attribute__((visibility("default"), noinline))
#else
#define EXPORT __attribute__((visibility("default"), noipa))
#endif

#define TABLE_CALLBACKS 1
#define MODULE_CORE     1
#define MODULE_CORE2    5
#define LEVEL_NONE      (-1) /* a pop without a push */

typedef void function(void);

struct callbacks { /* of the program that loads us */
	size_t size;
	int (*functions)(int module, function ***ret_table, unsigned *ret_count);
};

static _Atomic uint64_t last_range;
static _Thread_local int level;

EXPORT int nvtxRangePushA(const char *message)
{
	return level++;
}

EXPORT int nvtxRangePushW(const wchar_t *message)
{
	return level++;
}

EXPORT int nvtxRangePushEx(const struct nvtx_attributes *a)
{
	return level++;
}

EXPORT int nvtxDomainRangePushEx(void *domain, const struct nvtx_attributes *a)
{
	return level++;
}

EXPORT int nvtxRangePop(void)
{
	return level > 0 ? --level : LEVEL_NONE;
}

EXPORT int nvtxDomainRangePop(void *domain)
{
	return level > 0 ? --level : LEVEL_NONE;
}

EXPORT uint64_t nvtxRangeStartA(const char *message)
{
	return atomic_fetch_add(&last_range, 1) + 1;
}

EXPORT uint64_t nvtxRangeStartW(const wchar_t *message)
{
	return atomic_fetch_add(&last_range, 1) + 1;
}

EXPORT uint64_t nvtxRangeStartEx(const struct nvtx_attributes *a)
{
	return atomic_fetch_add(&last_range, 1) + 1;
}

EXPORT uint64_t nvtxDomainRangeStartEx(void *domain, const struct nvtx_attributes *a)
{
	return atomic_fetch_add(&last_range, 1) + 1;
}

EXPORT void nvtxRangeEnd(uint64_t id)
{
}

EXPORT void nvtxDomainRangeEnd(void *domain, uint64_t id)
{
}

EXPORT void nvtxMarkA(const char *message)
{
}

EXPORT void nvtxMarkW(const wchar_t *message)
{
}

EXPORT void nvtxMarkEx(const struct nvtx_attributes *a)
{
}

EXPORT void nvtxDomainMarkEx(void *domain, const struct nvtx_attributes *a)
{
}

EXPORT void *nvtxDomainRegisterStringA(void *domain, const char *text)
{
	return text ? strdup(text) : NULL;
}

EXPORT void *nvtxDomainRegisterStringW(void *domain, const wchar_t *text)
{
	return text ? wcsdup(text) : NULL;
}

EXPORT void *nvtxDomainCreateA(const char *name)
{
	return name ? strdup(name) : NULL;
}

EXPORT void *nvtxDomainCreateW(const wchar_t *name)
{
	return name ? wcsdup(name) : NULL;
}

/* By NVTX's numbers; what is not here stays without effect, as it is without a tool. */
static function *const core[] = {
	[1] = (function *)nvtxMarkEx,
	[2] = (function *)nvtxMarkA,
	[3] = (function *)nvtxMarkW,
	[4] = (function *)nvtxRangeStartEx,
	[5] = (function *)nvtxRangeStartA,
	[6] = (function *)nvtxRangeStartW,
	[7] = (function *)nvtxRangeEnd,
	[8] = (function *)nvtxRangePushEx,
	[9] = (function *)nvtxRangePushA,
	[10] = (function *)nvtxRangePushW,
	[11] = (function *)nvtxRangePop,
};

static function *const core2[] = {
	[1] = (function *)nvtxDomainMarkEx,
	[2] = (function *)nvtxDomainRangeStartEx,
	[3] = (function *)nvtxDomainRangeEnd,
	[4] = (function *)nvtxDomainRangePushEx,
	[5] = (function *)nvtxDomainRangePop,
	[10] = (function *)nvtxDomainRegisterStringA,
	[11] = (function *)nvtxDomainRegisterStringW,
	[12] = (function *)nvtxDomainCreateA,
	[13] = (function *)nvtxDomainCreateW,
};

static void fill(const struct callbacks *c, int module, function *const *ours, unsigned count)
{
	function ***table = NULL;
	unsigned size = 0;

	/* the table is an array of addresses of the program's function pointers */
	if (!c->functions(module, (function ***)&table, &size) || !table)
		return;
	for (unsigned i = 1; i < count && i < size; i++)
		if (ours[i] && table[i])
			*table[i] = ours[i];
}

EXPORT int InitializeInjectionNvtx2(const void *(*table)(uint32_t id))
{
	const struct callbacks *c = table ? table(TABLE_CALLBACKS) : NULL;

	if (!c || c->size < sizeof(*c) || !c->functions)
		return 0;
	fill(c, MODULE_CORE, core, sizeof(core) / sizeof(core[0]));
	fill(c, MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
	return 1;
}
