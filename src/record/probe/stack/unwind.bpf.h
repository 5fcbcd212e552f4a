/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* unwind.bpf.h - from a return address outwards, one native frame at a time.
 *
 * A walk starts behind a call, so every address it meets is one that a call returns to: the tables
 * (wire/stack.h) are asked for address - 1. The return address of a probed call further out is the
 * kernel's trampoline; what stood there is remembered with the pending call.
 *
 * unwind_step() is a global function, which the verifier checks once and not once a frame. So it
 * is given nothing but the walk, and looks its maps up itself: pools are an array of maps, whose
 * look-up is a few instructions. */
#pragma once

#include "record/probe/stack/search.bpf.h"
#include "record/probe/target.bpf.h"
#include "wire/stack.h"

#define STACK_WORDS    512 /* native addresses, then three words for each Python frame */
#define STACK_SETS_MAX 4096
#define UNWIND_CACHED  8192 /* a power of two */
#define NAME_MASK      0xffffffffffff0000ULL
#define FRAME_REACH    (16ULL << 20) /* a frame larger than this is taken for nonsense */
#define PAGE_BELOW     0xfff

struct code_fields { /* of a Python code object */
	__u64 file, name, lines;
	__u32 first_line;
};

struct stack_walk {     /* of one thread, in its storage, or of one CPU */
	__u64 function; /* that was called; 0: the walk begins at ip, which was interrupted */
	__u64 ip, sp, fp;
	__u64 lr;         /* arm64, interrupted: the link register */
	__u64 life;       /* of the process: until it executes another program */
	__u32 generation; /* of the mappings: names them for ever */
	__u32 set;        /* the process's mappings; 0: not known */
	__u32 returns;    /* calls under way further out whose return address was replaced */
	__u64 real_return[CALL_DEPTH];
	__u64 map_start; /* the mapping that the last address was in */
	__u64 map_end;
	__u64 map_offset;
	__u64 map_identity;
	__u32 map_pool, map_indexes, map_base;
	__u32 guessed;   /* the last step was by the frame pointer */
	__u32 why;       /* enum stack_stop: what a failed guess is reported as */
	__u64 tid_space; /* the thread's id in its own namespace */
	/* Python */
	__u64 interpreter; /* while searching */
	__u64 thread;      /* its PyThreadState; 0: none found */
	__u64 searched_ns; /* when none was found */
	__u64 frame;
	__u64 hash;
	__u64 library; /* that the innermost frame is in */
	__u64 far;     /* hash of the innermost native frames, LIKE_FAR of them */
	__u64 lines;   /* of the Python frames */
	__u32 is_sample; /* one of many of the same code: stacks that are alike stand for each other */
	__u32 pid, tid;
	struct stack_python python;
	__u8 object[256]; /* of an object under examination */
	struct code_fields code;
	struct stack_record_stack record;
	__u64 words[STACK_WORDS]; /* follows the record */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct stack_walk);
} walks SEC(".maps");

struct unwind_pool_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct unwind_chunk));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_POOLS_MAX);
	__type(key, __u32);
	__array(values, struct unwind_pool_map);
} unwind_pools SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_RULES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

struct unwind_cached {
	__u64 data;  /* the name's upper 48 bits, the rule's number */
	__u64 check; /* data ^ the key */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_CACHED);
	__type(key, __u32);
	__type(value, struct unwind_cached);
} unwind_cache SEC(".maps");

/* A hash and not an array of maps: replacing a map in one makes the agent wait until all running
 * programs have ended, some 15 ms. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACK_SETS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct stack_mappings));
} stack_sets SEC(".maps");

static __always_inline bool stack_read(void *out, __u64 size, __u64 address)
{
	return bpf_probe_read_user(out, size, (void *)address) == 0;
}

/* Find the mapping of @address; false if it is in none. */
static __always_inline bool mapping_find(struct stack_walk *w, __u64 address)
{
	struct stack_mappings *m;
	struct stack_mapping *at;
	__u32 set = w->set, i;

	if (address >= w->map_start && address < w->map_end)
		return true;
	m = bpf_map_lookup_elem(&stack_sets, &set);
	if (!m)
		return false;
	i = mapping_search(m, address);
	at = &m->at[i];
	if (address < m->start[i] || address >= at->end)
		return false;
	w->map_start = m->start[i];
	w->map_end = at->end;
	w->map_offset = at->offset;
	w->map_identity = at->identity;
	w->map_pool = at->pool;
	w->map_indexes = at->indexes;
	w->map_base = at->base;
	return true;
}

/* What an address stands for, wherever its file is mapped. Code that is in no file is known by its
 * address in this process alone. */
static __always_inline __u64 native_name(const struct stack_walk *w, __u64 ip, bool is_mapped)
{
	if (!is_mapped || !w->map_identity)
		return ip ^ (__u64)w->pid << 40;
	return hash_mix(w->map_identity ^ (ip - w->map_start + w->map_offset)) & NAME_MASK;
}

/* Stacks of samples are alike if the same Python lines led into the same library; without
 * Python, if some of their innermost frames agree. */
#define LIKE_FAR 8

static __always_inline void native_append(struct stack_walk *w, __u64 ip, __u64 name)
{
	__u32 n = w->record.native_count;

	w->words[BOUNDED(n, STACK_WORDS - 1)] = ip;
	w->hash = hash_mix(w->hash ^ name);
	if (n == 0)
		w->library = w->map_identity;
	if (n < LIKE_FAR)
		w->far = hash_mix(w->far ^ name);
	w->record.native_count = n + 1;
}

/* Rules and names of addresses met before, so that a repeated walk does not search. An entry is one
 * word of data and one that says whose it is, data included: of an entry that two threads write at
 * the same time nothing is believed. */
static __always_inline __u64 cache_key(const struct stack_walk *w)
{
	return hash_mix(w->ip ^ (__u64)w->generation << 48 ^ (__u64)w->generation << 16);
}

static __always_inline struct unwind_cached *cache_slot(__u64 key)
{
	__u32 slot = key & (UNWIND_CACHED - 1);

	return bpf_map_lookup_elem(&unwind_cache, &slot);
}

/* The rule of w->ip and its name, if they are known; NULL else. */
static __always_inline struct unwind_rule *cache_find(struct stack_walk *w, __u64 *ret_name)
{
	__u64 key = cache_key(w), data, check;
	struct unwind_cached *c = cache_slot(key);
	__u32 rule;

	if (!c)
		return NULL;
	data = *(volatile __u64 *)&c->data;
	check = *(volatile __u64 *)&c->check;
	if ((data ^ check) != key)
		return NULL;
	*ret_name = data & NAME_MASK;
	rule = data & 0xffff;
	return bpf_map_lookup_elem(&unwind_rules, &rule);
}

static __always_inline void cache_put(struct stack_walk *w, __u64 name, __u32 rule)
{
	__u64 key = cache_key(w), data = name | rule;
	struct unwind_cached *c = cache_slot(key);

	if (!c)
		return;
	*(volatile __u64 *)&c->data = data;
	*(volatile __u64 *)&c->check = data ^ key;
}

/* The rule at @address of the mapping found last; NULL if there is none. */
static __always_inline struct unwind_rule *rule_find(
	struct stack_walk *w, __u64 address, __u64 name)
{
	__u32 offset = (__u32)(address - w->map_start + w->map_offset);
	__u32 pool = w->map_pool, base = w->map_base, at = base, first, rule;
	struct unwind_chunk *c;
	void *chunks;

	chunks = bpf_map_lookup_elem(&unwind_pools, &pool);
	if (!chunks)
		return NULL;
	c = bpf_map_lookup_elem(chunks, &at);
	if (!c)
		return NULL;
	first = chunk_search(c, offset);
	at = base + 1 + first;
	if (w->map_indexes) {
		c = bpf_map_lookup_elem(chunks, &at);
		if (!c)
			return NULL;
		at = base + 1 + w->map_indexes + first * UNWIND_CHUNK_ROWS +
		     chunk_search(c, offset);
	}
	c = bpf_map_lookup_elem(chunks, &at);
	if (!c)
		return NULL;
	at = chunk_search(c, offset);
	if (c->address[at] > offset)
		return NULL;
	rule = c->rule[at];
	cache_put(w, name, rule);
	return bpf_map_lookup_elem(&unwind_rules, &rule);
}

/* On arm64 a frame pointer leads to the saved pair but not to the frame's end: after a step by it
 * the stack pointer is only a lower bound. A rule that says where the pair is kept says where the
 * end is; a function without a pair does not keep the pointer, which then is of a frame further out
 * and would lead past callers. False: there is no way on. */
static __always_inline bool recover_sp(struct stack_walk *w, const struct unwind_rule *r)
{
#if defined(__TARGET_ARCH_arm64)
	__u64 sp = w->fp - r->fp_offset - r->cfa_offset;

	if (r->cfa != UNWIND_CFA_SP || !w->guessed)
		return true;
	if (r->fp != UNWIND_AT_CFA || r->ra != UNWIND_AT_CFA || r->ra_offset != r->fp_offset + 8 ||
		sp < w->sp || sp - w->sp > FRAME_REACH)
		return false;
	w->sp = sp;
#endif
	return true;
}

/* The caller's frame by the rule. False: it does not say. */
static __always_inline bool step_by_rule(struct stack_walk *w, const struct unwind_rule *r)
{
	__u64 cfa, ip = 0, fp = w->fp, pair[2];

	if (r->cfa == UNWIND_CFA_SP)
		cfa = w->sp + r->cfa_offset;
	else if (r->cfa == UNWIND_CFA_FP)
		cfa = w->fp + r->cfa_offset;
	else if (r->cfa == UNWIND_CFA_FP_DEREF) {
		cfa = 0;
		if (!stack_read(&cfa, 8, w->fp + r->cfa_offset))
			return false;
	} else {
		w->why = STACK_STOP_NO_RULE;
		return false;
	}
	if (cfa <= w->sp || cfa - w->sp > FRAME_REACH || r->ra != UNWIND_AT_CFA) {
		w->why = STACK_STOP_NOT_RISING;
		return false;
	}
	/* Nearly always both lie side by side: one reading instead of two. */
	if (r->fp == UNWIND_AT_CFA && r->ra_offset == r->fp_offset + 8) {
		if (!stack_read(pair, sizeof(pair), cfa + r->fp_offset))
			return false;
		fp = pair[0];
		ip = pair[1];
	} else {
		if (!stack_read(&ip, 8, cfa + r->ra_offset))
			return false;
		if (r->fp == UNWIND_AT_CFA && !stack_read(&fp, 8, cfa + r->fp_offset))
			return false;
		if (r->fp == UNWIND_AT_FP && !stack_read(&fp, 8, w->fp + r->fp_offset))
			return false;
	}
	w->sp = cfa;
	w->fp = fp;
	w->ip = ip;
	return true;
}

/* By the frame pointer: on both architectures it points to the caller's, and the return address is
 * behind that. Returns enum stack_stop; 0: it worked. */
static __always_inline __u32 step_by_pointer(struct stack_walk *w)
{
	__u64 pair[2];

	if (!w->fp)
		return w->why;
	if (w->fp < w->sp || w->fp - w->sp > FRAME_REACH || w->fp & 7)
		return w->why;
	if (!stack_read(pair, sizeof(pair), w->fp))
		return STACK_STOP_UNREADABLE;
	w->sp = w->fp + 16;
	w->fp = pair[0];
	w->ip = pair[1];
	return 0;
}

/* What signal handlers return to, in a vDSO or C library that does not describe it: two
 * instructions that ask for the system call. A frame pointer would lead past the function that was
 * interrupted. */
static __always_inline bool is_signal_return(__u64 ip)
{
#if defined(__TARGET_ARCH_arm64)
	const __u64 code = 0xd4000001d2801168; /* mov x8, 139; svc 0 */
#else
	const __u64 code = 0x0f0000000fc0c748; /* mov $15, %rax; the first byte of syscall */
#endif
	__u64 found = 0;

	return stack_read(&found, sizeof(found), ip) && found == code;
}

static __always_inline __u64 address_of(__u64 ip)
{
#if defined(__TARGET_ARCH_arm64)
	return ip & 0xffffffffffffULL; /* above: a signature (pointer authentication) */
#else
	return ip;
#endif
}

static __always_inline int stop_at(struct stack_walk *w, __u32 why)
{
	w->record.stop = why;
	return 1;
}

/* A frame pointer that a function does not keep is of one further out, and leads past those
 * between: a walk that followed any has reached the end, but perhaps not by way of all functions.
 */
static __always_inline int stop_outermost(struct stack_walk *w)
{
	return stop_at(w, w->record.guessed_from == STACK_GUESSED ? STACK_STOP_OUTERMOST
								  : STACK_STOP_GUESSED);
}

/* The rule of w->ip, which is noted as a frame. @ret_stop: the walk is over instead. */
static __always_inline struct unwind_rule *frame_rule(struct stack_walk *w, bool *ret_stop)
{
	__u64 name = 0;
	struct unwind_rule *r = cache_find(w, &name);
	bool is_mapped = r != NULL;

	if (!r) {
		is_mapped = mapping_find(w, w->ip - 1);
		if (!is_mapped && w->returns && !(w->ip & PAGE_BELOW)) {
			w->returns--;
			w->ip = w->real_return[BOUNDED(w->returns, CALL_DEPTH - 1)];
			is_mapped = mapping_find(w, w->ip - 1);
		}
		name = native_name(w, w->ip, is_mapped);
	}
	*ret_stop = true;
	if (!is_mapped && w->guessed && w->set)
		return NULL; /* the guess led nowhere */
	if (w->record.native_count >= STACK_NATIVE_MAX) {
		w->why = STACK_STOP_DEPTH;
		return NULL;
	}
	*ret_stop = false;
	native_append(w, w->ip, name);
	w->why = STACK_STOP_NO_RULE;
	if (r)
		return r;
	if (is_mapped && w->map_pool)
		return rule_find(w, w->ip - 1, name);
	w->why = !w->set      ? STACK_STOP_NO_MAPPINGS
		 : !is_mapped ? STACK_STOP_UNKNOWN_CODE
			      : STACK_STOP_NO_TABLE;
	return NULL;
}

/* unwind_step - note the frame at w->ip and go on to its caller. 1: the walk is over, and
 * record.stop says why. */
__attribute__((noinline)) int unwind_step(struct stack_walk *w)
{
	struct unwind_rule *r;
	bool is_over;
	__u32 failed;

	if (!w)
		return 1;
	w->ip = address_of(w->ip);
	if (!w->ip)
		return w->guessed ? stop_at(w, w->why) : stop_outermost(w);
	r = frame_rule(w, &is_over);
	if (is_over)
		return stop_at(w, w->why);
	if (r && r->cfa == UNWIND_CFA_OUTERMOST)
		return stop_outermost(w);
	if (r && r->cfa == UNWIND_CFA_SIGNAL)
		return stop_at(w, STACK_STOP_SIGNAL);
	if (r && r->cfa != UNWIND_CFA_NONE) {
		if (!recover_sp(w, r))
			return stop_at(w, STACK_STOP_NO_POINTER);
		w->why = STACK_STOP_UNREADABLE;
		w->guessed = 0;
		return step_by_rule(w, r) ? 0 : stop_at(w, w->why);
	}
	if (is_signal_return(w->ip))
		return stop_at(w, STACK_STOP_SIGNAL);
	if (w->record.guessed_from == STACK_GUESSED)
		w->record.guessed_from = w->record.native_count;
	w->guessed = 1;
	failed = step_by_pointer(w);
	return failed ? stop_at(w, failed) : 0;
}

/* ---- interrupted code ----
 *
 * The tables are valid at calls. Where code was interrupted they mostly are too (the body of a
 * function has one rule), but not in its first and last instructions, and functions without calls
 * are not in them. So what the rule says is believed if a call lies before the address that it
 * leads to; else the nearest such address is looked for. */

#define INTERRUPTED_WORDS 16 /* of the stack that are looked through */

/* Does @ip lie behind a call? The kernel's trampoline stands for one. */
static __always_inline bool is_behind_call(struct stack_walk *w, __u64 ip)
{
#if defined(__TARGET_ARCH_arm64)
	__u32 code = 0;
#else
	__u8 code[8];
#endif

	if (!mapping_find(w, ip - 1))
		return w->returns && !(ip & PAGE_BELOW);
#if defined(__TARGET_ARCH_arm64)
	if (!stack_read(&code, sizeof(code), ip - 4))
		return false;
	/* bl; blr; blr with a signature to check */
	return code >> 26 == 0x25 || (code & 0xfffffc1f) == 0xd63f0000 ||
	       (code & 0xfefff800) == 0xd63f0800;
#else
	if (!stack_read(code, sizeof(code), ip - sizeof(code)))
		return false;
	/* call to an address; call by a register or by memory, of each length */
	return code[3] == 0xe8 || (code[6] == 0xff && (code[7] & 0x38) == 0x10) ||
	       (code[5] == 0xff && (code[6] & 0x38) == 0x10) ||
	       (code[4] == 0xff && (code[5] & 0x38) == 0x10) ||
	       (code[2] == 0xff && (code[3] & 0x38) == 0x10) ||
	       (code[1] == 0xff && (code[2] & 0x38) == 0x10);
#endif
}

/* unwind_candidate - is word @i of the stack where the interrupted function returns to? Then it is
 * taken. */
__attribute__((noinline)) int unwind_candidate(struct stack_walk *w, __u32 i)
{
	__u64 ip = 0;

	if (!w || !stack_read(&ip, 8, w->sp + 8 * i) || !is_behind_call(w, address_of(ip)))
		return 0;
	w->ip = ip;
	w->sp += 8 * i + 8;
	return 1;
}

static __always_inline bool step_by_search(struct stack_walk *w)
{
#if defined(__TARGET_ARCH_arm64)
	if (is_behind_call(w, address_of(w->lr))) {
		w->ip = w->lr;
		return true;
	}
#endif
	for (__u32 i = 0; i < INTERRUPTED_WORDS; i++)
		if (unwind_candidate(w, i))
			return true;
	return false;
}

/* unwind_interrupted - note the frame at w->ip, which did not call, and go on to its caller. Its
 * name is that of its page: one stack for every instruction would be sent otherwise, and which
 * function it is the caller's address tells already. 1: there is no way on. */
__attribute__((noinline)) int unwind_interrupted(struct stack_walk *w)
{
	struct unwind_rule *r = NULL;
	__u64 at, sp, name = 0;
	bool is_mapped;

	if (!w)
		return 1;
	at = w->ip;
	sp = w->sp;
	is_mapped = mapping_find(w, at);
	native_append(w, at, native_name(w, at & ~(__u64)PAGE_BELOW, is_mapped));
	w->ip = at + 1; /* rules are asked for by what a call at @at would return to */
	if (is_mapped) {
		r = cache_find(w, &name);
		if (!r && w->map_pool)
			r = rule_find(w, at, native_name(w, w->ip, true));
	}
	if (r && r->cfa == UNWIND_CFA_OUTERMOST)
		return stop_outermost(w);
	if (r && r->cfa != UNWIND_CFA_NONE && r->cfa != UNWIND_CFA_SIGNAL) {
		__u64 fp = w->fp;

		if (step_by_rule(w, r) && is_behind_call(w, address_of(w->ip)))
			return 0;
		w->sp = sp;
		w->fp = fp;
	}
	w->record.guessed_from = 1;
	w->guessed = 1;
	return step_by_search(w) ? 0
				 : stop_at(w, !w->set      ? STACK_STOP_NO_MAPPINGS
					      : !is_mapped ? STACK_STOP_UNKNOWN_CODE
							   : STACK_STOP_NO_RULE);
}

/* unwind_walk - the function itself, then outwards from where it returns to. */
__attribute__((noinline)) int unwind_walk(struct stack_walk *w)
{
	if (!w)
		return 0;
	if (w->function)
		native_append(
			w, w->function, native_name(w, w->function, mapping_find(w, w->function)));
	else if (unwind_interrupted(w))
		return 0;
	for (int i = 0; i <= STACK_NATIVE_MAX; i++)
		if (unwind_step(w))
			return 0;
	return 0;
}
