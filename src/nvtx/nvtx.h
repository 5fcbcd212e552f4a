/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.h - functions of NVTX, with the types and values of its ABI. */
#pragma once

#include <stdint.h>
#include <wchar.h>

#define NVTX_VERSION            3
#define NVTX_MESSAGE_ASCII      1
#define NVTX_MESSAGE_WIDE       2
#define NVTX_MESSAGE_REGISTERED 3

struct nvtx_attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

int nvtxRangePushA(const char *message);
int nvtxRangePushW(const wchar_t *message);
int nvtxRangePushEx(const struct nvtx_attributes *a);
int nvtxRangePop(void);
uint64_t nvtxRangeStartA(const char *message);
uint64_t nvtxRangeStartW(const wchar_t *message);
uint64_t nvtxRangeStartEx(const struct nvtx_attributes *a);
void nvtxRangeEnd(uint64_t id);
void nvtxMarkA(const char *message);
void nvtxMarkW(const wchar_t *message);
void nvtxMarkEx(const struct nvtx_attributes *a);
void *nvtxDomainCreateA(const char *name);
void *nvtxDomainCreateW(const wchar_t *name);
void *nvtxDomainRegisterStringA(void *domain, const char *text);
void *nvtxDomainRegisterStringW(void *domain, const wchar_t *text);
int nvtxDomainRangePushEx(void *domain, const struct nvtx_attributes *a);
int nvtxDomainRangePop(void *domain);
uint64_t nvtxDomainRangeStartEx(void *domain, const struct nvtx_attributes *a);
void nvtxDomainRangeEnd(void *domain, uint64_t id);
void nvtxDomainMarkEx(void *domain, const struct nvtx_attributes *a);

/* What NVTX calls once in a library that it loads, with a function that gives tables by number. 1: the
 * library is ready. */
int InitializeInjectionNvtx2(const void *(*table)(uint32_t id));
