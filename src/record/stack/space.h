/* SPDX-License-Identifier: Apache-2.0 */
/* space.h - the address space of one traced process: which file's code is where, and its Python.
 *
 * Read from /proc when the process is met, and again when a walk has met code that is in no known
 * mapping. The kernel half gets the mappings as a set that it searches by itself. */
#pragma once

#include "base/clock.h"
#include "base/idmap.h"
#include "model/stack.h"
#include "record/discover/maps.h"
#include "record/probe/stack/stack.h"
#include "record/symbol/symbol.h"

/* The files that code comes from: each opened once, with its identity, unwind table, and
 * the names that were asked of it.
 *
 * Everything that must read a file is asked of the symbol process and comes later; here is what is
 * known so far. A file stays, as does what is known of it, until there is no room for another and
 * nobody maps it: the ceilings are on files and names. Files of the same build id share a table and
 * the symbol process's work. */

/* Unwind tables in the kernel: rules shared by all files, rows in chunks, a ceiling. */

#define STACK_TABLES_BYTES (64u << 20)

struct stack_tables;

int stack_tables_new(struct probe *p, struct stack_tables **ret);
DECLARE_FREE(struct stack_tables, stack_tables_free)

struct stack_table {
	uint16_t pool; /* 0: none */
	uint32_t base; /* its first chunk there */
	uint32_t chunks;
	uint32_t indexes; /* see struct stack_mapping */
};

/* stack_tables_add - hand a table to the kernel. -ENOSPC: it would exceed the ceiling of bytes or
 * tables; -ENODATA: it is empty; or of the kernel. */
int stack_tables_add(
	struct stack_tables *t, const struct symbol_unwind *u, struct stack_table *ret);

/* stack_tables_drop - no mapping that the kernel knows refers to it any more. */
void stack_tables_drop(struct stack_tables *t, const struct stack_table *table);

uint64_t stack_tables_bytes(const struct stack_tables *t);

/* stack_chunks - @u as chunks, with rules[u->rule[i]] in place of its own; for the test too. *ret
 * is the caller's (free()). Returns their number. */
int stack_chunks(const struct symbol_unwind *u, const uint16_t *rules, struct unwind_chunk **ret,
	uint32_t *ret_indexes);

#define STACK_FILES_MAX   2000      /* that the symbol process is given */
#define STACK_NAMES_MAX   200000    /* addresses whose names are kept */
#define STACK_HANDLES_MAX (1 << 19) /* variables with handles, of all files; 8 bytes each */

enum stack_handles_state { HANDLES_NOT_ASKED, HANDLES_ASKED, HANDLES_KNOWN };
enum stack_table_state { TABLE_NOT_ASKED, TABLE_ASKED, TABLE_READY, TABLE_FAILED };

struct stack_name { /* what is known of one address */
	bool is_known;
	uint8_t count; /* 0: there is no name */
	struct stack_frame *frames;
};

struct stack_file {
	char name[128]; /* base name */
	char root[32];  /* of the file system it came from: "/proc/PID/root", or "" */
	uint64_t key;   /* of its inode */
	bool is_marked;
	uint32_t number; /* in the symbol process; 0: it could not be opened */
	bool is_identified;
	bool is_generated; /* code of a JIT: offsets are addresses */
	int err;           /* why it cannot be read; 0 */
	uint64_t identity; /* see struct stack_mapping */
	uint64_t load_base;
	bool has_load_base;
	uint64_t eh_frame_bytes;
	uint8_t build_id[IMAGE_BUILD_ID_MAX];
	unsigned build_id_len;
	enum stack_table_state table_state;
	struct stack_table table;
	bool table_wanted; /* a walk ended for want of it */
	enum stack_handles_state handles_state;
	uint64_t *handles; /* variables that hold kernels' handles (symbol/handles.h), ascending */
	size_t handle_count;
	uint64_t text_offset, text_vaddr; /* of its first code; where there are handles */
	/* Python */
	bool may_be_python, places_asked, places_known;
	struct symbol_place places[4];    /* of python_symbol_names */
	struct idmap names;               /* 2 * offset + is_return -> struct stack_name */
	uint64_t ask[SYMBOL_OFFSETS_MAX]; /* keys not yet asked for */
	size_t ask_count;
};

struct stack_files;

/* stack_files_new - @changed is called when a table has come, or what Python needs. */
typedef void stack_file_changed(void *arg, struct stack_file *f);
int stack_files_new(struct probe *p, stack_file_changed *changed, void *arg, struct intern *texts,
	struct stack_files **ret);
DECLARE_FREE(struct stack_files, stack_files_free)

/* stack_files_find - the file (dev, inode) if it is known. */
struct stack_file *stack_files_find(struct stack_files *fs, uint64_t dev, uint64_t inode);

/* stack_files_add - a new file, open as @fd, which becomes the symbol process's. @fd < 0: it cannot
 * be opened, and its addresses have no names. NULL: no room. */
struct stack_file *stack_files_add(struct stack_files *fs, uint64_t dev, uint64_t inode,
	const char *root, const char *path, int fd);

/* stack_files_generated - a JIT's map of names. NULL: no room. */
struct stack_file *stack_files_generated(struct stack_files *fs, int fd);

/* stack_file_renew - the map of @f has grown and is open as @fd, which becomes the symbol
 * process's: what had no name is asked for again. */
void stack_file_renew(struct stack_files *fs, struct stack_file *f, int fd);

/* stack_file_want_table - a walk needs it. */
void stack_file_want_table(struct stack_files *fs, struct stack_file *f);

/* stack_file_want_handles - where @f keeps handles of kernels; asked for once. */
void stack_file_want_handles(struct stack_files *fs, struct stack_file *f);

/* stack_file_name - what is known of @offset (which may have SYMBOL_HANDLE); asked for if that is nothing. NULL: no room. */
const struct stack_name *stack_file_name(
	struct stack_files *fs, struct stack_file *f, uint64_t offset, bool is_return);

/* stack_files_is_full - a file or a table found no room: those that nobody maps may go. To make
 * room: stack_file_mark() each that is in use, then stack_files_sweep() the others, when no stack
 * waits for names. */
bool stack_files_is_full(const struct stack_files *fs);
void stack_file_mark(struct stack_file *f);
void stack_files_sweep(struct stack_files *fs);

/* stack_files_poll - send questions, take answers. Returns how many names have come in all. */
uint64_t stack_files_poll(struct stack_files *fs);

uint64_t stack_files_table_bytes(const struct stack_files *fs);
void stack_files_health(const struct stack_files *fs, struct symbol_health *ret);

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
