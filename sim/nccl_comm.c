// SPDX-License-Identifier: Apache-2.0
/* nccl_comm.c - the stand-in libnccl: making, asking and ending communicators.
 *
 * ncclCommUserRank(), ncclCommCount() and ncclCommCuDevice() are like the real ones small functions
 * that load a field of the communicator from a fixed offset: tracers that come late read the offset
 * from their code. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "nccl.h"

#define VERSION 23102

SIM_EXPORT ncclResult_t ncclGetVersion(int *version)
{
	NCCL_BEGIN(ncclGetVersion);
	if (!version)
		NCCL_END(ncclInvalidArgument, 0);
	*version = VERSION;
	NCCL_END(ncclSuccess, 0);
}

SIM_EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = {"no error", "unhandled cuda error",
		"unhandled system error", "internal error", "invalid argument", "invalid usage",
		"remote process exited or there was a network error", "NCCL operation in progress"};
	const char *text = "unknown result code";
	NCCL_BEGIN(ncclGetErrorString);

	if (result >= 0 && (size_t)result < sizeof(texts) / sizeof(texts[0]))
		text = texts[result];
	tally_end(&call_, false, 0);
	return text;
}

SIM_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	NCCL_BEGIN(ncclGetUniqueId);
	if (!uniqueId)
		NCCL_END(ncclInvalidArgument, 0);
	NCCL_END(getrandom(uniqueId, sizeof(*uniqueId), 0) == (ssize_t)sizeof(*uniqueId)
			 ? ncclSuccess
			 : ncclSystemError,
		0);
}

static ncclResult_t result_of(int r)
{
	return r == 0 ? ncclSuccess : r == -EINVAL ? ncclInvalidArgument : ncclSystemError;
}

static bool config_is_valid(const ncclConfig_t *config)
{
	return !config || config->magic == NCCL_CONFIG_MAGIC;
}

/* A communicator whose caller waits for the other ranks: now, at the end of the group, or, if it is
 * not blocking, through ncclCommGetAsyncError(). */
static ncclResult_t make(
	ncclComm_t *ret, uint64_t hash, int rank, int nranks, const ncclConfig_t *config)
{
	ncclComm_t made;
	ncclResult_t r;

	if (!ret || !config_is_valid(config))
		return ncclInvalidArgument;
	r = result_of(comm_new(hash, rank, nranks, config && config->blocking == 0, &made));
	if (r != ncclSuccess)
		return r;
	*ret = made;
	if (group_is_open())
		return group_add_comm(made);
	return made->nonblocking ? ncclInProgress : comm_wait_ready(made);
}

SIM_EXPORT ncclResult_t ncclCommInitRank(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	NCCL_BEGIN(ncclCommInitRank);
	NCCL_END(make(comm, comm_hash(&commId, sizeof(commId)), rank, nranks, NULL), 0);
}

SIM_EXPORT ncclResult_t ncclCommInitRankConfig(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config)
{
	NCCL_BEGIN(ncclCommInitRankConfig);
	NCCL_END(make(comm, comm_hash(&commId, sizeof(commId)), rank, nranks, config), 0);
}

/* All ranks get the same ids, so the first names the communicator. */
SIM_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
	int nId, ncclUniqueId *commIds, ncclConfig_t *config)
{
	NCCL_BEGIN(ncclCommInitRankScalable);
	if (!commIds || nId < 1)
		NCCL_END(ncclInvalidArgument, 0);
	NCCL_END(make(newcomm, comm_hash(commIds, sizeof(*commIds)), myrank, nranks, config), 0);
}

static ncclResult_t make_all(ncclComm_t *comms, int count, const int *devices)
{
	ncclResult_t r = ncclSuccess;
	uint64_t name[2];

	if (!comms || count < 1 || getrandom(name, sizeof(name), 0) != (ssize_t)sizeof(name))
		return ncclInvalidArgument;
	for (int i = 0; i < count; i++) {
		r = result_of(comm_new(comm_hash(name, sizeof(name)), i, count, false, &comms[i]));
		if (r != ncclSuccess) {
			for (int k = 0; k < i; k++)
				comm_free(comms[k], true);
			return r;
		}
		comms[i]->device = devices ? devices[i] : i;
	}
	for (int i = 0; i < count && r == ncclSuccess; i++)
		r = comm_wait_ready(comms[i]);
	return r;
}

SIM_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
	NCCL_BEGIN(ncclCommInitAll);
	NCCL_END(make_all(comm, ndev, devlist), 0);
}

/* Ranks of the new communicator are ordered by key, then by rank in the old one. */
static ncclResult_t split(
	ncclComm_t c, int color, int key, ncclComm_t *ret, const ncclConfig_t *config)
{
	uint64_t name[3] = {c->hash, ++c->splits, (uint64_t)color};
	int rank = 0, nranks = 0;

	meet_choose(&c->meet, c->splits, (struct meet_choice){color, key});
	if (!meet_all_chose(&c->meet, c->splits))
		return ncclSystemError;
	for (int r = 0; r < c->nranks; r++) {
		struct meet_choice other = meet_choice_of(&c->meet, r, c->splits);

		if (other.color != color)
			continue;
		nranks++;
		rank += other.key < key || (other.key == key && r < c->rank);
	}
	if (color == NCCL_SPLIT_NOCOLOR) {
		*ret = NULL;
		return ncclSuccess;
	}
	return make(ret, comm_hash(name, sizeof(name)), rank, nranks, config);
}

SIM_EXPORT ncclResult_t ncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
	NCCL_BEGIN(ncclCommSplit);
	if (!comm_is_valid(comm) || !newcomm || color < NCCL_SPLIT_NOCOLOR)
		NCCL_END(ncclInvalidArgument, 0);
	NCCL_END(split(comm, color, key, newcomm, config), 0);
}

/* Called by the ranks that stay only; they agree because they pass the same list. */
static ncclResult_t shrink(
	ncclComm_t c, const int *excluded, int count, ncclComm_t *ret, const ncclConfig_t *config)
{
	uint64_t name[3] = {c->hash, ++c->splits, UINT64_MAX};
	int rank = c->rank, nranks = c->nranks - count;

	for (int i = 0; i < count; i++) {
		if (excluded[i] < 0 || excluded[i] >= c->nranks || excluded[i] == c->rank)
			return ncclInvalidArgument;
		rank -= excluded[i] < c->rank;
		name[2] = comm_hash((uint64_t[2]){name[2], (uint64_t)excluded[i]}, 16);
	}
	return make(ret, comm_hash(name, sizeof(name)), rank, nranks, config);
}

SIM_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList,
	int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
	NCCL_BEGIN(ncclCommShrink);
	if (!comm_is_valid(comm) || !newcomm || !excludeRanksList || excludeRanksCount < 1)
		NCCL_END(ncclInvalidArgument, 0);
	NCCL_END(shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config), 0);
}

/* What names the communicator that grows out of @c: ranks that join are given it. */
static ncclUniqueId grown_id(ncclComm_t c, uint64_t number)
{
	uint64_t name[3] = {c->hash, number, UINT64_MAX - 1};
	ncclUniqueId id = {{0}};

	name[0] = comm_hash(name, sizeof(name));
	memcpy(id.internal, name, sizeof(name[0]));
	return id;
}

SIM_EXPORT ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId)
{
	NCCL_BEGIN(ncclCommGetUniqueId);
	if (!comm_is_valid(comm) || !uniqueId)
		NCCL_END(ncclInvalidArgument, 0);
	*uniqueId = grown_id(comm, comm->splits + 1);
	NCCL_END(ncclSuccess, 0);
}

/* Ranks that were there pass their communicator and no rank; those that join the id and their rank. */
SIM_EXPORT ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
	int rank, ncclComm_t *newcomm, ncclConfig_t *config)
{
	ncclUniqueId id;
	NCCL_BEGIN(ncclCommGrow);

	if (comm ? !comm_is_valid(comm) || rank != -1 || nRanks <= comm->nranks : !uniqueId)
		NCCL_END(ncclInvalidArgument, 0);
	id = comm ? grown_id(comm, ++comm->splits) : *uniqueId;
	NCCL_END(
		make(newcomm, comm_hash(&id, sizeof(id)), comm ? comm->rank : rank, nRanks, config),
		0);
}

static ncclResult_t valid(ncclComm_t c)
{
	return comm_is_valid(c) ? ncclSuccess : ncclInvalidArgument;
}

/* Nothing is under way when the programs here call these. */
SIM_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
	NCCL_BEGIN(ncclCommRevoke);
	NCCL_END(valid(comm), 0);
}

SIM_EXPORT ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
	NCCL_BEGIN(ncclCommSuspend);
	NCCL_END(valid(comm), 0);
}

SIM_EXPORT ncclResult_t ncclCommResume(ncclComm_t comm)
{
	NCCL_BEGIN(ncclCommResume);
	NCCL_END(valid(comm), 0);
}

SIM_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	NCCL_BEGIN(ncclCommFinalize);
	if (!comm_is_valid(comm))
		NCCL_END(ncclInvalidArgument, 0);
	comm_flush(comm);
	NCCL_END(ncclSuccess, 0);
}

static ncclResult_t end(ncclComm_t c, bool aborts)
{
	if (!c) /* allowed */
		return ncclSuccess;
	if (!comm_is_valid(c))
		return ncclInvalidArgument;
	comm_free(c, aborts);
	return ncclSuccess;
}

SIM_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	NCCL_BEGIN(ncclCommDestroy);
	NCCL_END(end(comm, false), 0);
}

SIM_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	NCCL_BEGIN(ncclCommAbort);
	NCCL_END(end(comm, true), 0);
}

SIM_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
	NCCL_BEGIN(ncclCommGetAsyncError);
	if (!comm_is_valid(comm) || !asyncError)
		NCCL_END(ncclInvalidArgument, 0);
	*asyncError = comm_state(comm);
	NCCL_END(ncclSuccess, 0);
}

/* What the accessors do besides their load; out of line, as the real ones' checks are. */
static __attribute__((noinline)) ncclResult_t accessor_check(
	enum nccl_symbol symbol, ncclComm_t comm, const int *ret)
{
	struct tally_call call = tally_begin(symbol, false);
	bool good = comm_is_valid(comm) && ret;

	tally_end(&call, !good, 0);
	return good ? ncclSuccess : ncclInvalidArgument;
}

SIM_EXPORT ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	ncclResult_t r = accessor_check(TALLY_ncclCommCount, comm, count);

	if (r != ncclSuccess)
		return r;
	*count = comm->nranks;
	return ncclSuccess;
}

SIM_EXPORT ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	ncclResult_t r = accessor_check(TALLY_ncclCommCuDevice, comm, device);

	if (r != ncclSuccess)
		return r;
	*device = comm->device;
	return ncclSuccess;
}

SIM_EXPORT ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	ncclResult_t r = accessor_check(TALLY_ncclCommUserRank, comm, rank);

	if (r != ncclSuccess)
		return r;
	*rank = comm->rank;
	return ncclSuccess;
}
