/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - the address space of one traced process: which file's code is where, and its Python.
 *
 * Read from /proc when the process is met, and again when a walk has met code that is in no known
 * mapping. The kernel half gets the mappings as a set that it searches by itself. */
#pragma once

#include "record/discover/maps.h"
#include "record/stack/file.h"
#include "base/clock.h"

struct space_mapping {
	uint64_t start, end, offset;
	struct stack_file *file; /* NULL: generated code */
};

enum space_python_state {
	SPACE_NO_PYTHON,
	SPACE_PYTHON_WAITS,
	SPACE_PYTHON_READY,
	SPACE_PYTHON_REFUSED
};

struct space_handle { /* of a kernel, as a variable of @file had it */
	uint64_t value, vaddr;
	struct stack_file *file;
};

struct stack_space {
	uint32_t pid;
	uid_t uid;            /* of its user */
	uint32_t main_tid;    /* as the process itself knows it */
	uint64_t start_ticks; /* with the pid it names the process */
	mono_time made;
	mono_time ended;                /* 0: it lives */
	uint32_t set;                   /* of mappings, in the kernel half; 0: none */
	struct space_mapping *mappings; /* executable, by address */
	size_t count;
	bool is_dirty;  /* the kernel half does not have what is known */
	mono_time told; /* when it was given it last */
	bool rescan;    /* a walk met unknown code */
	mono_time scanned;
	uint64_t patience_ns; /* between scans: grows while they bring nothing new */
	enum space_python_state python_state;
	bool python_is_guess;    /* its layout may yet turn out to be another */
	char python_reason[128]; /* why it was refused */
	struct stack_python python;
	uint64_t python_base; /* where the interpreter's file is loaded */
	struct stack_file *python_file;
	mono_time python_tried;
	uint64_t python_took_ns;       /* the last try */
	struct layout_job *python_job; /* under way; NULL: none */
	struct stack_file *generated;  /* names of a JIT's code; NULL: none yet */
	int64_t generated_size;
	mono_time generated_tried;
	struct space_handle *handles; /* by value */
	size_t handle_count, handle_room;
	mono_time handles_read; /* 0: never, or its mappings have changed since */
};

/* space_take_python - @f, mapped at @base, may hold the interpreter. Before its libraries are mapped a program that is only a
 * front of one looks like it: what was not found in there is looked for here. */
void space_take_python(struct stack_space *s, struct stack_file *f, uint64_t base);

/* space_scan - read the mappings of @s->pid; new files are opened and entered. Returns 1 if
 * anything changed, 0 if not; -ESRCH if the process is gone (or is another one), -EACCES. */
int space_scan(struct stack_space *s, struct stack_files *fs);

/* space_is_code - may a stack lead through this mapping? Not through [vsyscall], the page of x86-64
 * that lies in the kernel's half of the addresses: it calls nothing, and a process cannot have
 * anything else there. */
bool space_is_code(const struct maps_entry *e);

/* space_inherit - @s, of which nothing is known and which has ended, was as @parent is (NULL:
 * nothing happens). */
void space_inherit(struct stack_space *s, const struct stack_space *parent);

/* space_find - the mapping of @address; NULL: none. */
const struct space_mapping *space_find(const struct stack_space *s, uint64_t address);

/* space_is_known - nothing is asked about its files any more. */
bool space_is_known(const struct stack_space *s);

/* space_mappings - what the kernel half is given. */
void space_mappings(const struct stack_space *s, struct stack_mappings *ret);

/* space_python - once its file's symbols are known, find out how its Python is laid out. True if
 * the kernel half is to be told. */
bool space_python(struct stack_space *s, mono_time now);

/* space_tid - thread @tid of it, as the process itself knows it. Only where there is Python. */
uint32_t space_tid(const struct stack_space *s, uint32_t tid);

/* space_read - memory of the process, for record/python. */
int space_read(void *arg, uint64_t address, void *out, size_t len);

/* space_generated - where names of generated code are looked up; NULL: nowhere. Reads the JIT's
 * file again when it has grown. */
struct stack_file *space_generated(struct stack_space *s, struct stack_files *fs, mono_time now);

/* space_handle - which variable of which file holds @value, the handle of a kernel; NULL: none. The
 * variables are read again when a value is not among them, at most twice a second.
 * *ret_is_waiting: it is not known yet where some of its files have such variables; none is read. */
const struct space_handle *space_handle(struct stack_space *s, struct stack_files *fs,
	uint64_t value, mono_time now, bool *ret_is_waiting);

void space_done(struct stack_space *s);
