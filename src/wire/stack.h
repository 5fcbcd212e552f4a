/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* stack.h - stacks as the kernel half takes them, and the tables it walks them with.
 *
 * Freestanding, like record.h. An address inside a file is always an offset in that file: it needs
 * no ELF header to be made from a mapping, and it is the same in every process that maps the file.
 * Functions that a walk does not know by a table are walked by frame pointers. */
#pragma once

#include <linux/types.h>

#define STACK_NATIVE_MAX 127
#define STACK_PYTHON_MAX 128

/* ---- unwinding ----
 *
 * A table is a sorted list of (address, rule): the rule holds from its address to the next one.
 * It is valid at calls, which is where walks pass: rows without a call are left out. Rows of one
 * file are kept in chunks; the first chunk lists where the others begin (two levels), or lists
 * chunks that do (three levels). Rules are few and shared by all files. */

#define UNWIND_CHUNK_ROWS 512
#define UNWIND_RULES_MAX  16384      /* rule 0 is UNWIND_CFA_NONE */
#define UNWIND_POOLS_MAX  64         /* arrays of chunks; pool 0 is none */
#define UNWIND_END        0xffffffff /* address of rows that are not used */

enum unwind_cfa {             /* where the caller's stack pointer is */
	UNWIND_CFA_NONE,      /* not known: walk by the frame pointer */
	UNWIND_CFA_SP,        /* sp + cfa_offset */
	UNWIND_CFA_FP,        /* fp + cfa_offset */
	UNWIND_CFA_FP_DEREF,  /* the word at fp + cfa_offset (realigned stacks) */
	UNWIND_CFA_PLT,       /* x86-64 procedure linkage: sp + 8, +16 from the 11th byte of 16 */
	UNWIND_CFA_OUTERMOST, /* there is no caller */
	UNWIND_CFA_SIGNAL     /* a signal's return: the code it interrupted did not call */
};

enum unwind_register { /* where a register of the caller is */
	UNWIND_SAME,   /* it still holds it (the return address: in the link register) */
	UNWIND_AT_CFA, /* saved at cfa + offset */
	UNWIND_AT_FP,  /* saved at fp + offset */
};

struct unwind_rule {
	__s32 cfa_offset;
	__s32 fp_offset;
	__s32 ra_offset; /* x86-64: always AT_CFA, -8 */
	__u8 cfa;        /* enum unwind_cfa */
	__u8 fp, ra;     /* enum unwind_register */
	__u8 pad;
};

struct unwind_chunk {
	__u32 address[UNWIND_CHUNK_ROWS]; /* ascending; UNWIND_END behind the last */
	__u16 rule[UNWIND_CHUNK_ROWS];
};

/* ---- processes ---- */

#define STACK_MAPPINGS_MAX 1024 /* executable mappings of a process; a power of two */

struct stack_mapping {
	__u64 end;
	__u64 offset;   /* in the file, of the mapping's start */
	__u64 identity; /* of the file's content, the same on every node; 0: made from addresses */
	__u16 pool;     /* that its table is in; 0: it has none */
	__u16 indexes;  /* chunks of the table's second level; 0: it has two levels */
	__u32 base;     /* the table's first chunk in the pool */
};

/* Every byte of the starts that are not used: beyond all addresses, and positive when signed. */
#define STACK_UNUSED_BYTE 0x3f

struct stack_mappings { /* of one process and its children until they differ */
	__u32 count;
	__u32 pad;
	__u64 start[STACK_MAPPINGS_MAX]; /* ascending */
	struct stack_mapping at[STACK_MAPPINGS_MAX];
};

/* What the walker must know of a CPython: offsets in its structures. */
#define PYTHON_NONE          0xffffffff /* there is no such field */
#define PYTHON_LASTI_POINTER (1 << 0)   /* the last instruction is a pointer, not an index */
#define PYTHON_LASTI_UNITS   (1 << 1)   /* the index counts units of two bytes (3.10) */
#define PYTHON_TAGGED        (1 << 2)   /* the code pointer's lowest bits are a tag (3.14) */
#define PYTHON_ENTRY_IS_OWNER                                                                      \
	(1 << 3) /* frame_entry holds the owner: frames owned by the C stack                       \
		  * are no functions, but mark an entry (3.12) */

struct stack_python {
	__u64 runtime; /* address of _PyRuntime; 0: no Python */
	__u32 minor;   /* 9: Python 3.9 */
	__u32 flags;
	__u32 runtime_interpreters; /* first interpreter */
	__u32 interpreter_next, interpreter_threads;
	__u32 thread_next;
	__u32 thread_interpreter;
	__u32 thread_id;     /* pthread_self() */
	__u32 thread_native; /* the kernel's id in the process's namespace; PYTHON_NONE before 3.11
			      */
	__u32 pthread_tid;  /* where the C library keeps it behind pthread_self(); or PYTHON_NONE */
	__u32 thread_frame; /* the frame, or the cframe */
	__u32 cframe_frame; /* PYTHON_NONE: thread_frame is the frame */
	__u32 frame_code, frame_back, frame_lasti;
	__u32 frame_entry;   /* one byte: an entry from C, or the owner; PYTHON_NONE: every frame is
			      */
	__u32 owner_c_stack; /* lowest value of the owner that is no function */
	__u32 code_file, code_name, code_first_line, code_lines, code_bytes;
	__u32 text_length, text_state, text_ascii, text_compact; /* of str objects */
	__u32 text_kind_shift; /* of the three bits of the kind in the state; ascii is 4 bits above
				* it, compact 3 */
	__u32 bytes_length, bytes_data;
	__u32 pad;
};

/* ---- records ---- */

enum stack_record { STACK_RECORD_STACK = 1, STACK_RECORD_CODE };

/* X(NAME, text): why a walk ended. */
#define STACK_STOPS(X)                                                                             \
	X(OUTERMOST, "")                                                                           \
	X(DEPTH, "deeper than can be walked")                                                      \
	X(NO_MAPPINGS, "the process was still unknown")                                            \
	X(NO_TABLE, "no unwind table of the file yet")                                             \
	X(UNKNOWN_CODE, "code outside any file")                                                   \
	X(NO_RULE, "its unwind rule cannot be expressed")                                          \
	X(UNREADABLE, "the stack's memory could not be read")                                      \
	X(NOT_RISING, "frames do not lead outwards")                                               \
	X(NO_POINTER, "the frame pointer leads past its caller")                                   \
	X(GUESSED, "frame pointers were followed, functions may be missing")                       \
	X(SIGNAL, "a signal interrupted the outer frames")

enum stack_stop {
#define X(NAME, text) STACK_STOP_##NAME,
	STACK_STOPS(X)
#undef X
};

/* X(NAME, text): how a walk of Python's frames ended. */
#define STACK_PYTHON_STOPS(X)                                                                      \
	X(COMPLETE, "")                                                                            \
	X(NONE, "no Python in the process")                                                        \
	X(NO_THREAD, "the thread runs no Python")                                                  \
	X(DEPTH, "more Python frames than can be walked")                                          \
	X(UNREADABLE, "Python's memory could not be read")

enum stack_python_stop {
#define X(NAME, text) STACK_PYTHON_##NAME,
	STACK_PYTHON_STOPS(X)
#undef X
};

struct stack_header {
	__u32 size; /* of the whole record */
	__u16 kind; /* enum stack_record */
	__u16 pad;
	__u32 pid, tid;
	__u64 time_ns; /* CLOCK_MONOTONIC */
};

struct stack_python_frame {
	__u64 code;  /* address of the code object */
	__u32 lasti; /* last instruction, in bytes */
	__u32 entry; /* 1: called from C, so the next outer frame is in another interpreter loop */
	__u64 lines; /* address of its line table; with code and pid it names a code record */
};

#define STACK_GUESSED 0xff /* guessed_from: no frame was */

/* Sent once per distinct stack; events refer to it by its hash. Behind it: native_count addresses
 * (innermost first, the called function's own entry at the head), python_count frames. */
struct stack_record_stack {
	struct stack_header h;
	__u64 hash; /* never 0; the same for the same code in every process */
	__u8 native_count, python_count;
	__u8 stop, python_stop;
	__u8 guessed_from; /* first frame found by a frame pointer instead of a table */
	__u8 pad[3];
	__u32 set; /* of mappings that it was walked by, the parent's in a young child; 0: none */
	__u32 pad2;
};

/* Sent once per code object, before the stacks that need it. Texts are as Python keeps them: 1, 2
 * or 4 bytes a character (kind); kind 1 is Latin-1. */
#define STACK_TEXT_BYTES   256
#define STACK_LINES_BYTES  4096
#define STACK_LINES_UNREAD 0xffffffff

struct stack_record_code {
	struct stack_header h;
	__u64 code, lines;
	__u32 first_line;
	__u32 lines_size;  /* of the whole line table; what is beyond lines_bytes was left out;
			    * STACK_LINES_UNREAD: it could not be read */
	__u16 lines_bytes; /* at the end of this record */
	__u16 file_bytes, name_bytes;
	__u8 file_kind, name_kind;
	__u8 file_cut, name_cut; /* 1: it was longer */
	__u8 minor;    /* of the Python, which says how the line table is written: 9: 3.9 */
	__u8 lines_at; /* where it begins behind @lines */
	__u8 pad[4];
	__u8 file[STACK_TEXT_BYTES], name[STACK_TEXT_BYTES];
	__u8 line_table[];
};

/* The books of stacks: taken = repeated + sent + sum(lost). */
#define STACK_LOSSES(X)                                                                            \
	X(NO_STORAGE, "no memory for the walk")                                                    \
	X(RING_FULL, "the ring of stacks was full")

enum stack_loss {
#define X(NAME, text) STACK_LOSS_##NAME,
	STACK_LOSSES(X)
#undef X
		STACK_LOSS_COUNT
};

struct stack_tally {
	__u64 taken;    /* walks */
	__u64 taken_ns; /* that they took */
	__u64 complete; /* of these, to the outermost frame */
	__u64 repeated; /* of a stack that was sent before */
	__u64 sent;
	__u64 lost[STACK_LOSS_COUNT];
};

_Static_assert(sizeof(struct unwind_rule) == 16, "unwind_rule");
_Static_assert(sizeof(struct unwind_chunk) == 3072, "unwind_chunk");
_Static_assert(sizeof(struct stack_mapping) == 32, "stack_mapping");
_Static_assert(sizeof(struct stack_python) == 128, "stack_python");
_Static_assert(sizeof(struct stack_header) == 24, "stack_header");
_Static_assert(sizeof(struct stack_python_frame) == 24, "stack_python_frame");
_Static_assert(sizeof(struct stack_record_stack) == 48, "stack_record_stack");
