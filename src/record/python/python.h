/* SPDX-License-Identifier: Apache-2.0 */
/* python.h - the CPython in a traced process: where its structures keep what, and what its frames
 * mean.
 *
 * 3.13 and later say their offsets themselves (_Py_DebugOffsets at the start of _PyRuntime); for
 * 3.9 to 3.12 there is a table, checked against the headers by a test. Either way a walk of the
 * process's present frames from here, with every pointer checked, must succeed before the kernel
 * half is told: a distribution's patched build then either works or is refused with a reason, and
 * where a table's offset of the interpreter's thread list is wrong it is searched for.
 *
 * All memory is read through a callback and foreign: lengths, loops and depth have
 * ceilings. Pure. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "wire/stack.h"

#define PYTHON_MINOR_MIN 9
#define PYTHON_MINOR_MAX 15

/* Reads @len bytes at @address of the process; 0 or a negative errno. */
typedef int python_read(void *arg, uint64_t address, void *out, size_t len);

struct python_memory {
	python_read *read;
	void *arg;
};

/* Addresses in the process of the interpreter's own symbols; 0: not found. */
struct python_symbols {
	uint64_t runtime;      /* _PyRuntime */
	uint64_t code_type;    /* PyCode_Type */
	uint64_t unicode_type; /* PyUnicode_Type */
	uint32_t version;      /* content of Py_Version (since 3.11): 0x030b07f0; 0: not known */
	const char *path;      /* of the file, for the version: "…/libpython3.10.so.1.0" */
};

/* The names to ask the symbol process for, in the order of the fields above: _PyRuntime,
 * PyCode_Type, PyUnicode_Type, Py_Version. */
extern const char *const python_symbol_names[4];

/* python_is_file - whether a file of this base name may hold an interpreter: python3.11, python,
 * libpython3.11.so.1.0, and libpython3-419a3a08.11.so.1.0 as wheels rename their private copies. */
bool python_is_file(const char *basename);

/* python_layout - fill *ret for the process and check it by a walk. Returns 0; 1 if it serves for the
 * threads there are, but the list of threads was searched for and is only one of the places it may
 * be at: ask again when there are more. -EAGAIN: the interpreter has
 * not come up yet (no thread with a frame): try again. -EOPNOTSUPP: a version or build that is not
 * known (free-threaded ones too); the reason is in reterr and *ret is untouched. @tid is the
 * kernel's id of a thread in the process's own namespace (its main thread). */
int python_layout(const struct python_memory *m, const struct python_symbols *s, uint32_t tid,
	struct stack_python *ret, struct errinfo *reterr);

/* python_table - the row of the table for 3.@minor (9 to 12), without runtime; for the test against
 * the headers. NULL: there is none. */
const struct stack_python *python_table(unsigned minor);

/* python_walk - the frames of thread @tid now, innermost first, as the kernel half would give them.
 * Returns their number; -ENOENT if the thread runs no Python; -EFAULT, -ELOOP, -EBADMSG. */
int python_walk(const struct python_memory *m, const struct stack_python *p, uint32_t tid,
	struct stack_python_frame *out, size_t max);

/* ---- code objects ---- */

/* python_code_fetch - what the kernel half would send of the code object at @code; released with
 * free(). */
int python_code_fetch(const struct python_memory *m, const struct stack_python *p, uint64_t code,
	struct stack_record_code **ret);

/* A code object's line table. Formats: 3.9 co_lnotab, 3.10 co_linetable, 3.11 and later the location
 * table. */
struct python_lines {
	unsigned minor;
	uint32_t first_line;
	const uint8_t *table;
	size_t size;
	bool is_cut; /* these are its first bytes only */
};

/* python_line - the line of instruction @lasti (bytes); 0 if it is in none (artificial code, or the
 * table says nothing of it). -ENODATA if it lies behind what is there of a table that is cut: its
 * line is not known. */
int python_line(const struct python_lines *l, uint32_t lasti);

/* python_text - append a str's characters (kind 1, 2 or 4 bytes each) to @out as UTF-8; surrogates
 * and what is no character become U+FFFD. 0, or what @out says: -ENOBUFS, -ENOMEM. */
int python_text(const uint8_t *data, size_t bytes, unsigned kind, struct buf *out);
