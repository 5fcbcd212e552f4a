/* SPDX-License-Identifier: Apache-2.0 */
/* stacks_private.h - what the files of stacks.h share: stacks.c (life, asking, finding),
 * stacks_space.c (the processes and what the kernel half knows of them), stacks_take.c (records
 * from the kernel), stacks.c (names, and handing on). Nobody else includes it. */
#pragma once

#include "record/probe/ring.h"
#include "record/probe/stack/stack.h"
#include "record/stack/code.h"
#include "record/stack/space.h"
#include "record/stack/stacks.h"

struct native_frame { /* an address, placed */
	uint64_t ip, offset;
	struct stack_file *file;
	const struct stack_name *name; /* NULL: nobody to ask */
	bool is_return;
	bool is_mapped;
};

struct waiting { /* a stack without all its names */
	struct stack_record_stack record;
	mono_time since, placed; /* when it came; when its addresses were last looked for */
	bool python_is_late;     /* its frames were read after the event */
	bool is_function;        /* asked for by stacks_ask(): it may be a kernel's handle */
	bool handles_wait;       /* whose variables are not all known yet */
	unsigned python_count;
	struct merge_python *python; /* behind the native frames */
	struct native_frame native[];
};

struct kept {
	struct stack stack;
	struct stack_record_stack record;
	uint64_t *words; /* of the native frames; only where Python's are read from outside */
	struct stack_frame frames[];
};

struct stacks {
	struct probe *probe;
	struct ring *ring;
	bool with_python;
	stacks_sink *sink;
	void *arg;
	struct intern texts;
	struct stack_files *files;
	struct stack_codes *codes;
	struct idmap spaces;    /* pid -> struct stack_space */
	struct idmap inherited; /* pid of a child -> its set + 1 as a pointer */
	uint16_t set_users[PROBE_SETS_MAX];
	uint32_t next_set;
	uint32_t generation; /* of all mappings told so far */
	struct waiting *waiting[STACKS_WAITING_MAX];
	size_t waiting_count;
	mono_time finishing; /* since when; 0: it goes on */
	uint64_t answers;    /* names seen so far */
	struct idmap kept;   /* hash -> struct kept */
	uint64_t kept_hashes[STACKS_KEPT_MAX];
	size_t kept_next;
	struct stacks_report report;
};

/* stacks_space.c */
struct stack_space *stacks_space_of(struct stacks *s, const struct stack_record_stack *r);

/* stacks_space_of_set - the process whose mappings @set is; NULL: none that is known. */
struct stack_space *stacks_space_of_set(struct stacks *s, uint32_t set);
void stacks_file_changed(void *arg, struct stack_file *f);
void stacks_rescan(struct stacks *s, struct stack_space *p, mono_time now);
void stacks_make_room(struct stacks *s);
void stacks_look_after(struct stacks *s, mono_time now);

/* stacks_take.c: one record of the ring; and Python's frames read from outside. */
void stacks_take_record(void *arg, const void *data, size_t len);

/* stacks_place - tries again to find the files of @w's addresses, which may be younger than the
 * last look at its process @p (NULL: gone). */
void stacks_place(struct stacks *s, struct stack_space *p, struct waiting *w, mono_time now);
