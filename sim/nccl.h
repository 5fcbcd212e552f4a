/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.h - what the files of the stand-in libnccl share: how an exported function begins and ends,
 * and groups. */
#pragma once

#include "comm.h"
#include "export.h"
#include "tally.h"
#include "tally_symbols.h"

enum nccl_symbol {
#define X(name) TALLY_##name,
	NCCL_SYMBOLS(X)
#undef X
};

#define NCCL_BEGIN(name) struct tally_call call_ = tally_begin(TALLY_##name, false)

/* ncclInProgress is no error. */
static inline ncclResult_t nccl_end(const struct tally_call *c, ncclResult_t r, uint64_t bytes)
{
	tally_end(c, r != ncclSuccess && r != ncclInProgress, bytes);
	return r;
}
#define NCCL_END(result, bytes) return nccl_end(&call_, (result), (bytes))

/* nccl_bytes - of @count elements. nccl_submit - check a call and hand it on. */
uint64_t nccl_bytes(uint64_t count, int datatype);
ncclResult_t nccl_submit(struct comm_call call);

/* group_is_open - the calling thread is between ncclGroupStart() and ncclGroupEnd(). */
bool group_is_open(void);

/* group_add_comm - the group's end waits for the other ranks of @c. */
ncclResult_t group_add_comm(ncclComm_t c);

/* group_call - submit @call now, or at the end of the group. */
ncclResult_t group_call(const struct comm_call *call);

/* group_start and group_end nest; the outermost end does the work. */
void group_start(void);
ncclResult_t group_end(void);
