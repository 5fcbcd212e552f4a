/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.c - functions of NVTX, wherever a library has them: exported (libnvToolsExt, libnvtx3interop, and
 * the library that NVTX_INJECTION64_PATH may name), or inside libtorch_python, which compiles NVTX into
 * itself and calls it through functions that keep their names. */
#include "record/probe/mark/mark.h"

#include <stddef.h>

#define TEXT(argument)    HOOK_NVTX_DETAIL(NVTX_FORM_TEXT, argument, 0)
#define WIDE(argument)    HOOK_NVTX_DETAIL(NVTX_FORM_WIDE, argument, 0)
#define ATTRIBUTES        HOOK_NVTX_DETAIL(NVTX_FORM_ATTRIBUTES, 1, 0)
#define DOMAIN_ATTRIBUTES HOOK_NVTX_DETAIL(NVTX_FORM_ATTRIBUTES, 2, 1)
#define ARGUMENT(n)       HOOK_NVTX_DETAIL(NVTX_FORM_NONE, n, 0)
#define DOMAIN            HOOK_NVTX_DETAIL(NVTX_FORM_NONE, 0, 1)
#define AT(hook_, detail_, fun)                                                                    \
	{                                                                                          \
		.hook = (hook_), .detail = (detail_), .symbol = (fun)                              \
	}
#define RETURN(hook_, fun)                                                                         \
	{                                                                                          \
		.hook = (hook_), .symbol = (fun), .at_return = true                                \
	}

static const struct mark_place places[] = {
	AT(HOOK_NVTX_PUSH, TEXT(1), "nvtxRangePushA"),
	AT(HOOK_NVTX_PUSH, WIDE(1), "nvtxRangePushW"),
	AT(HOOK_NVTX_PUSH, ATTRIBUTES, "nvtxRangePushEx"),
	AT(HOOK_NVTX_PUSH, DOMAIN_ATTRIBUTES, "nvtxDomainRangePushEx"),
	AT(HOOK_NVTX_POP, 0, "nvtxRangePop"),
	AT(HOOK_NVTX_POP, DOMAIN, "nvtxDomainRangePop"),
	AT(HOOK_NVTX_END, ARGUMENT(1), "nvtxRangeEnd"),
	AT(HOOK_NVTX_END, ARGUMENT(2), "nvtxDomainRangeEnd"),
	AT(HOOK_NVTX_MARK, TEXT(1), "nvtxMarkA"),
	AT(HOOK_NVTX_MARK, WIDE(1), "nvtxMarkW"),
	AT(HOOK_NVTX_MARK, ATTRIBUTES, "nvtxMarkEx"),
	AT(HOOK_NVTX_MARK, DOMAIN_ATTRIBUTES, "nvtxDomainMarkEx"),
	AT(HOOK_NVTX_START, TEXT(1), "nvtxRangeStartA"),
	AT(HOOK_NVTX_START, WIDE(1), "nvtxRangeStartW"),
	AT(HOOK_NVTX_START, ATTRIBUTES, "nvtxRangeStartEx"),
	AT(HOOK_NVTX_START, DOMAIN_ATTRIBUTES, "nvtxDomainRangeStartEx"),
	AT(HOOK_NVTX_NAME, TEXT(2), "nvtxDomainRegisterStringA"),
	AT(HOOK_NVTX_NAME, WIDE(2), "nvtxDomainRegisterStringW"),
	AT(HOOK_NVTX_NAME, TEXT(1), "nvtxDomainCreateA"),
	AT(HOOK_NVTX_NAME, WIDE(1), "nvtxDomainCreateW"),
	RETURN(HOOK_NVTX_STARTED, "nvtxRangeStartA"),
	RETURN(HOOK_NVTX_STARTED, "nvtxRangeStartW"),
	RETURN(HOOK_NVTX_STARTED, "nvtxRangeStartEx"),
	RETURN(HOOK_NVTX_STARTED, "nvtxDomainRangeStartEx"),
	RETURN(HOOK_NVTX_NAMED, "nvtxDomainRegisterStringA"),
	RETURN(HOOK_NVTX_NAMED, "nvtxDomainRegisterStringW"),
	RETURN(HOOK_NVTX_NAMED, "nvtxDomainCreateA"),
	RETURN(HOOK_NVTX_NAMED, "nvtxDomainCreateW"),
	{.hook = HOOK_NONE},
};

const struct mark_library mark_nvtx = {
	"NVTX", NULL, places, "has no functions of NVTX that can be seen"};
