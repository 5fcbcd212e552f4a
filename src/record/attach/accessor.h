/* SPDX-License-Identifier: Apache-2.0 */
/* accessor.h - where a structure keeps a field, read from the machine code of a function that
 * returns it: int f(struct s *s, int *ret) { …checks…; *ret = s->field; return 0; }
 *
 * That is how rank and size of an NCCL communicator are found that was made before the agent
 * looked: ncclCommUserRank() and ncclCommCount() are such functions in every version. And which constant a function
 * gives: int f(int *ret) { …; *ret = CONSTANT; …}, as ncclGetVersion(). And which counter of a structure a function
 * advances: void f(struct s *s, …) { …; s->counter += n; …}. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/discover/elfsym.h"
#include "record/probe/probe.h"

/* How much code to look at: what comes before the access, checks and logging, is 1,072 bytes long in
 * the longest of the builds of NCCL that were seen. */
#define ACCESSOR_BYTES 2048

/* accessor_field - the offset of the field that the @len bytes of code at @code load (32 bits) and
 * store through another pointer, the first such pair of instructions. @machine is EM_X86_64 or
 * EM_AARCH64. -ENOENT if there is none. A guess: whoever uses it checks that it makes sense. */
int accessor_field(unsigned machine, const uint8_t *code, size_t len, uint32_t *ret);

/* accessor_constant - the first constant from @min to @max that the code stores (32 bits) through a pointer. -ENOENT if
 * there is none. */
int accessor_constant(unsigned machine, const uint8_t *code, size_t len, uint32_t min, uint32_t max,
	uint32_t *ret);

/* accessor_counter - the offset, from @min to @max, of the one 64-bit word of a structure that the code adds to.
 * -ENOENT if there is none, or more than one. */
int accessor_counter(unsigned machine, const uint8_t *code, size_t len, uint32_t min, uint32_t max,
	uint32_t *ret);

/* Where a communicator of this libnccl keeps its rank, size, device, identity and number of collectives,
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

/* nccl_layout_read - of what cannot be told the place is 0. @ret is valid if rank and size are known. */
void nccl_layout_read(struct elfsym *elf, struct wire_nccl_layout *ret);
