/* SPDX-License-Identifier: Apache-2.0 */
/* compiler.h - whether code is being made: by a compiler for kernels or for the host, or by a library that makes its
 * kernels when they are first asked for. The names live as long as the program. */
#pragma once

#include "model/event.h"
#include "model/stack.h"

/* How long it lasts: a compiler that the program asked for works as often as it is asked; a library makes a plan for
 * each new shape, and the driver loads each kernel, once. Models are built before steps, and again where a program trains
 * several one after the other. */
enum code_making { MAKING_NONE, MAKING_PLANS, MAKING_CODE, MAKING_MODEL, MAKINGS };

enum code_making compiler_making(const char *name); /* NULL: MAKING_NONE */

/* compiler_of_stack - which one is at work there; NULL: none. */
const char *compiler_of_stack(const struct stack *s);

/* compiler_builds_model - whether the layers of a model are constructed there, or given their first weights. */
bool compiler_builds_model(const struct stack *s);

/* compiler_of_process - likewise of a process, by its name. */
const char *compiler_of_process(const char *comm);

/* compiler_of_part - likewise of a part of an account: by its stack, by where it was waited for, by the name of the process
 * that it is of (NULL: the job's own). */
const char *compiler_of_part(
	const struct stack_list *stacks, uint64_t wait_hash, uint64_t stack_hash, const char *comm);
