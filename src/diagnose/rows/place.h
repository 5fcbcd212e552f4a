/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - what a call stack says about the time spent in it. */
#pragma once

#include "model/step_account.h"
#include "model/stack.h"

/* place_key - the same for stacks of one place of the program: its own innermost line, with the one that calls it from
 * another file, else the library's, else the function. 0: the stack says nothing. */
uint64_t place_key(const struct stack *s);

/* place_is_interpreter_lock - whether a thread that blocks there waits for Python's interpreter
 * lock. */
bool place_is_interpreter_lock(const struct stack *s);

/* place_has_file - whether a Python frame of it is in a file whose path has one of @parts, which end with NULL. */
bool place_has_file(const struct stack *s, const char *const *parts);

/* place_is_loader - whether it is in PyTorch's data loader; and whether a thread is a loader's by its name. */
bool place_is_loader(const struct stack *s);
bool place_is_loader_thread(const char *comm);

/* place_is_server - whether a server's event loop, or what hands requests to their handlers, calls it. */
bool place_is_server(const struct stack *s);

/* place_is_event_loop - whether an event loop's own wait is in it, which ends by a timer whenever somebody sleeps. */
bool place_is_event_loop(const struct stack *s);

/* place_is_driver_thread - a thread that the CUDA driver has started: it sleeps until the GPU has something to
 * tell. */
bool place_is_driver_thread(const char *comm);

/* place_is_output - whether a thread that blocks there wants to write; place_is_mutex, place_is_file_lock - whether it wants
 * the lock of another thread, of a file. */
bool place_is_output(const struct stack *s);
bool place_is_mutex(const struct stack *s);
bool place_is_file_lock(const struct stack *s);

/* place_database - the library of databases that the thread is in, called by the program's innermost line: "SQLite"; NULL:
 * none. A sleep there is no sleep of the program's: the library finds its lock taken, and tries again later. */
const char *place_database(const struct stack *s);

/* place_is_own - whether it goes through code of the program's own: of Python, or of the executable if there is none. */
bool place_is_own(const struct stack *s);

/* place_calls - whether @s goes through the function of the program's own that @caller ends in; place_is_outermost -
 * whether no other function of the program's calls that. */
bool place_calls(const struct stack *s, const struct stack *caller);
bool place_is_outermost(const struct stack *s);

/* place_blocks - the lines on which a thread blocks in the call that @s ends in: bits by enum account_line. */
uint32_t place_blocks(const struct stack *s);

/* place_is_start - whether processes are being started there, by Python. */
bool place_is_start(const struct stack *s);

struct place_weight { /* time, and the stack it was spent under */
	uint64_t hash, ns;
};

struct code_place { /* of the program's own; texts belong to the stacks */
	const char *file, *func;
	uint32_t line; /* of that function, the one with most of it; 0: not known */
	uint64_t hash; /* the stack with most of it */
	double share;  /* of all that goes through the program's own code, 0..1 */
	const char *via_file, *via_func; /* the helper through which it calls CUDA; NULL: none */
	uint32_t via_line;
};

/* place_cover - the deepest function of the program's own that most of the time in @w was spent in or below. Frames
 * of the interpreter, of the standard library and of installed packages never stand for it; of a program without
 * Python, functions of the executable itself do, and those with a source line. A function that only hands its caller's
 * data to CUDA, in a file of such helpers that is called from several lines of others, is not why: the line that calls it
 * is, if one has most of its time. False: there is none. */
bool place_cover(const struct stack_list *stacks, const struct place_weight *w, size_t n,
	struct code_place *ret);

/* place_format - "train.py:71 (step)", "train.py:71" outside of functions. Returns @out. */
const char *place_format(const struct code_place *p, char *out, size_t size);

/* place_at - "in step (train.py:71)", "at train.py:71" outside of functions, "in step (train.py:71) via to_device
 * (gpu.py:30)". Returns @out. */
const char *place_at(const struct code_place *p, char *out, size_t size);

/* place_script - the file in which the program of @s begins: "train.py"; NULL: not known. */
const char *place_script(const struct stack *s);

/* place_line - on which line time on a CPU with this stack belongs: HOST, unless it is the garbage
 * collector's or a CUDA library's that no probe covered just then. */
enum account_line place_line(const struct stack *s);
