/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_layout.h - where a communicator of this libnccl keeps its rank, size, device, identity and number of collectives,
 * read from the library's own machine code, of either architecture. There is no table of versions: patches of one minor
 * version differ.
 *
 *   rank, nRanks, cudaDev  what ncclCommUserRank(), ncclCommCount() and ncclCommCuDevice() load
 *   commHash               the eight bytes before rank, from 2.18 on, which ncclGetVersion() tells; before that the place
 *                          holds a number or an address that is no identity. The same on all ranks: a hash of the unique
 *                          id; of a split, of its parent's and the colour
 *   collOpCount            the one counter behind rank that uploadProxyOps() or hostStreamPlanTask() adds to when a plan
 *                          of collectives is launched (from 2.24 on). The names are local ones: in a library that was
 *                          stripped of .symtab the counter is not found
 *   startMagic             whether the first word is a constant that shows a communicator (from 2.21.5 on) */
#pragma once

#include "record/discover/elfsym.h"
#include "record/probe/probe.h"

/* nccl_layout_read - of what cannot be told the place is 0. @ret is valid if rank and size are known. */
void nccl_layout_read(struct elfsym *elf, struct wire_nccl_layout *ret);
