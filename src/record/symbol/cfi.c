// SPDX-License-Identifier: Apache-2.0
/* cfi.c - see eh_frame.h. The instructions are those of DWARF 5, section 6.4.2, and GNU's.
 *
 * Invariants: address only grows and stays within the entry; every instruction takes at least one
 * byte of the program, so a run ends. An instruction that is not known or not allowed where it
 * stands spoils the whole entry, because what follows depends on it. */
#include "record/symbol/eh_frame.h"

#include <elf.h>

enum { /* the two high bits are an instruction, with an operand in the others; or 0 */
	CFA_ADVANCE = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_OPERAND = 0x3f,

	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_ADVANCE8 = 0x1d,
	CFA_AARCH64_SIGN_WITH_PC = 0x2c, /* the return address is signed, or no longer */
	CFA_AARCH64_SIGN = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f,
};

enum { OP_DEREF = 0x06, OP_BREG0 = 0x70, OP_BREG31 = 0x8f };

enum cfi_cfa { CFA_BY_REGISTER, CFA_BY_FP_DEREF, CFA_BY_PLT, CFA_BY_OTHER };

enum cfi_kind {
	KIND_DEFAULT, /* as the ABI has it: callee-saved, the stack pointer is the CFA */
	KIND_SAME,
	KIND_UNDEFINED,
	KIND_AT_CFA, /* saved at cfa + offset */
	KIND_AT_FP,  /* saved at fp + offset */
	KIND_OTHER,  /* not to be said in struct unwind_rule */
};

struct cfi_machine {
	uint64_t number[CFI_TRACKED]; /* DWARF's of each register */
};

static const struct cfi_machine x86_64 = {.number = {[CFI_SP] = 7, [CFI_FP] = 6, [CFI_RA] = 16}};
static const struct cfi_machine arm64 = {.number = {[CFI_SP] = 31, [CFI_FP] = 29, [CFI_RA] = 30}};

/* What linkers write for the x86-64 procedure linkage table: rsp + 8 + ((rip & 15) >= 11) * 8. */
static const uint8_t plt_expression[] = {
	0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};

/* ---- operands ---- */

/* The rule of register @number; NULL: it is not followed. */
static struct cfi_register *tracked(struct cfi *c, struct cfi_state *s, uint64_t number)
{
	for (int k = 0; k < CFI_TRACKED; k++)
		if (c->machine->number[k] == number)
			return &s->at[k];
	return NULL;
}

static void set_register(struct cfi *c, uint64_t number, uint8_t kind, int64_t offset)
{
	struct cfi_register *reg = tracked(c, &c->state, number);

	if (reg)
		*reg = (struct cfi_register){.kind = kind, .offset = offset};
}

/* An offset in units of the CIE's data alignment. */
static int64_t factored(struct cfi *c, int64_t units)
{
	int64_t offset;

	if (__builtin_mul_overflow(units, c->entry->cie.data_align, &offset)) {
		c->program.bad = true;
		return 0;
	}
	return offset;
}

/* An unsigned operand as a signed number. */
static int64_t unsigned_operand(struct cfi *c)
{
	uint64_t v = cursor_uleb(&c->program);

	if (v > INT64_MAX) {
		c->program.bad = true;
		return 0;
	}
	return (int64_t)v;
}

/* An expression that is "register + offset", and perhaps a read from there, and nothing else. */
static bool is_register_plus(
	struct cursor e, uint64_t *ret_number, int64_t *ret_offset, bool *ret_deref)
{
	uint8_t op = cursor_u8(&e);
	int64_t offset = cursor_sleb(&e);
	bool deref = cursor_left(&e) > 0;

	if (op < OP_BREG0 || op > OP_BREG31 || (deref && cursor_u8(&e) != OP_DEREF) || e.bad ||
		cursor_left(&e) > 0)
		return false;
	*ret_number = op - OP_BREG0;
	*ret_offset = offset;
	*ret_deref = deref;
	return true;
}

/* ---- instructions; each function returns false for those that are not its own ---- */

static void advance(struct cfi *c, uint64_t units)
{
	uint64_t bytes;

	if (c->in_cie || __builtin_mul_overflow(units, c->entry->cie.code_align, &bytes) ||
		__builtin_add_overflow(c->address, bytes, &c->next))
		c->program.bad = true;
}

static bool step_location(struct cfi *c, uint8_t op)
{
	struct cursor *p = &c->program;

	switch (op) {
	case CFA_SET_LOC:
		c->next = eh_frame_address(c->frame, &c->entry->cie, p);
		p->bad |= c->in_cie || c->next < c->address;
		return true;
	case CFA_ADVANCE1: advance(c, cursor_u8(p)); return true;
	case CFA_ADVANCE2: advance(c, cursor_u16(p)); return true;
	case CFA_ADVANCE4: advance(c, cursor_u32(p)); return true;
	case CFA_ADVANCE8: advance(c, cursor_u64(p)); return true;
	default: return false;
	}
}

static void define_cfa(struct cfi *c, uint64_t number, int64_t offset)
{
	c->state.cfa = CFA_BY_REGISTER;
	c->state.cfa_register = number;
	c->state.cfa_offset = offset;
}

/* A part of register + offset is changed: it must be that. */
static void change_cfa(struct cfi *c, uint64_t number, int64_t offset)
{
	c->program.bad |= c->state.cfa != CFA_BY_REGISTER;
	define_cfa(c, number, offset);
}

static void define_cfa_expression(struct cfi *c, struct cursor e)
{
	bool deref;
	uint64_t number;
	int64_t offset;

	c->state.cfa = CFA_BY_OTHER;
	if (c->machine == &x86_64 && cursor_left(&e) == sizeof(plt_expression) &&
		memcmp(e.at, plt_expression, sizeof(plt_expression)) == 0) {
		c->state.cfa = CFA_BY_PLT;
	} else if (is_register_plus(e, &number, &offset, &deref)) {
		if (!deref)
			define_cfa(c, number, offset);
		else if (number == c->machine->number[CFI_FP])
			c->state.cfa = CFA_BY_FP_DEREF;
		c->state.cfa_offset = offset;
	}
}

static bool step_cfa(struct cfi *c, uint8_t op)
{
	struct cursor *p = &c->program;
	uint64_t number;

	switch (op) {
	case CFA_DEF_CFA:
		number = cursor_uleb(p);
		define_cfa(c, number, unsigned_operand(c));
		return true;
	case CFA_DEF_CFA_SF:
		number = cursor_uleb(p);
		define_cfa(c, number, factored(c, cursor_sleb(p)));
		return true;
	case CFA_DEF_CFA_REGISTER: change_cfa(c, cursor_uleb(p), c->state.cfa_offset); return true;
	case CFA_DEF_CFA_OFFSET:
		change_cfa(c, c->state.cfa_register, unsigned_operand(c));
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		change_cfa(c, c->state.cfa_register, factored(c, cursor_sleb(p)));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		define_cfa_expression(c, cursor_block(p, cursor_uleb(p)));
		return true;
	default: return false;
	}
}

/* Back to what the CIE says of it. */
static void restore(struct cfi *c, uint64_t number)
{
	struct cfi_register *reg = tracked(c, &c->state, number);

	if (c->in_cie)
		c->program.bad = true;
	else if (reg)
		*reg = *tracked(c, &c->initial, number);
}

static void set_by_expression(struct cfi *c, uint64_t number, struct cursor e)
{
	uint64_t base;
	int64_t offset;
	bool deref;

	if (is_register_plus(e, &base, &offset, &deref) && !deref &&
		base == c->machine->number[CFI_FP])
		set_register(c, number, KIND_AT_FP, offset);
	else
		set_register(c, number, KIND_OTHER, 0);
}

static bool step_offset(struct cfi *c, uint8_t op)
{
	struct cursor *p = &c->program;
	uint64_t number;

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		number = cursor_uleb(p);
		set_register(c, number, KIND_AT_CFA, factored(c, unsigned_operand(c)));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		number = cursor_uleb(p);
		set_register(c, number, KIND_AT_CFA, factored(c, cursor_sleb(p)));
		return true;
	case CFA_GNU_NEGATIVE_OFFSET:
		number = cursor_uleb(p);
		set_register(c, number, KIND_AT_CFA, factored(c, -unsigned_operand(c)));
		return true;
	default: return false;
	}
}

static bool step_register(struct cfi *c, uint8_t op)
{
	struct cursor *p = &c->program;
	uint64_t number;

	switch (op) {
	case CFA_RESTORE_EXTENDED: restore(c, cursor_uleb(p)); return true;
	case CFA_UNDEFINED: set_register(c, cursor_uleb(p), KIND_UNDEFINED, 0); return true;
	case CFA_SAME_VALUE: set_register(c, cursor_uleb(p), KIND_SAME, 0); return true;
	case CFA_REGISTER:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF: /* both operands have the same length, signed or not */
		number = cursor_uleb(p);
		set_register(c, number, KIND_OTHER, cursor_sleb(p));
		return true;
	case CFA_EXPRESSION:
		number = cursor_uleb(p);
		set_by_expression(c, number, cursor_block(p, cursor_uleb(p)));
		return true;
	case CFA_VAL_EXPRESSION:
		set_register(c, cursor_uleb(p), KIND_OTHER, 0);
		cursor_block(p, cursor_uleb(p));
		return true;
	default: return false;
	}
}

static bool step_state(struct cfi *c, uint8_t op)
{
	switch (op) {
	case CFA_NOP: return true;
	case CFA_REMEMBER_STATE:
		if (c->depth < CFI_REMEMBER_MAX)
			c->remembered[c->depth++] = c->state;
		else
			c->program.bad = true;
		return true;
	case CFA_RESTORE_STATE:
		if (c->depth > 0)
			c->state = c->remembered[--c->depth];
		else
			c->program.bad = true;
		return true;
	case CFA_GNU_ARGS_SIZE: cursor_uleb(&c->program); return true;
	case CFA_AARCH64_SIGN:
	case CFA_AARCH64_SIGN_WITH_PC: return c->machine == &arm64;
	default: return false;
	}
}

static void step(struct cfi *c)
{
	uint8_t op = cursor_u8(&c->program), operand = op & CFA_OPERAND;

	switch (op & ~CFA_OPERAND) {
	case CFA_ADVANCE: advance(c, operand); return;
	case CFA_OFFSET:
		set_register(c, operand, KIND_AT_CFA, factored(c, unsigned_operand(c)));
		return;
	case CFA_RESTORE: restore(c, operand); return;
	default: break;
	}
	if (!step_cfa(c, op) && !step_location(c, op) && !step_offset(c, op) &&
		!step_register(c, op) && !step_state(c, op))
		c->program.bad = true;
}

/* ---- rules ---- */

static bool fits(int64_t offset)
{
	return offset >= INT32_MIN && offset <= INT32_MAX;
}

static bool cfa_is_expressed(const struct cfi *c, struct unwind_rule *rule)
{
	const struct cfi_state *s = &c->state;

	rule->cfa_offset = (__s32)s->cfa_offset;
	switch (s->cfa) {
	case CFA_BY_REGISTER:
		if (s->cfa_register == c->machine->number[CFI_SP])
			rule->cfa = UNWIND_CFA_SP;
		else if (s->cfa_register == c->machine->number[CFI_FP])
			rule->cfa = UNWIND_CFA_FP;
		else
			return false;
		return fits(s->cfa_offset);
	case CFA_BY_FP_DEREF: rule->cfa = UNWIND_CFA_FP_DEREF; return fits(s->cfa_offset);
	case CFA_BY_PLT:
		rule->cfa = UNWIND_CFA_PLT;
		rule->cfa_offset = 0;
		return true;
	default: return false;
	}
}

/* An undefined register is lost; the rule has no better word for that than the same. */
static bool register_is_expressed(const struct cfi_register *reg, __u8 *ret, __s32 *ret_offset)
{
	*ret = UNWIND_SAME;
	*ret_offset = 0;
	if (reg->kind == KIND_OTHER || !fits(reg->offset))
		return false;
	if (reg->kind == KIND_AT_CFA || reg->kind == KIND_AT_FP) {
		*ret = reg->kind == KIND_AT_CFA ? UNWIND_AT_CFA : UNWIND_AT_FP;
		*ret_offset = (__s32)reg->offset;
	}
	return true;
}

static struct unwind_rule express(const struct cfi *c)
{
	const struct cfi_register *at = c->state.at;
	struct unwind_rule rule = {0};

	if (c->entry->cie.is_signal)
		return (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL};
	if (c->entry->cie.return_register != c->machine->number[CFI_RA])
		return (struct unwind_rule){.cfa = UNWIND_CFA_NONE};
	if (at[CFI_RA].kind == KIND_UNDEFINED)
		return (struct unwind_rule){.cfa = UNWIND_CFA_OUTERMOST};
	if (at[CFI_SP].kind != KIND_DEFAULT || !cfa_is_expressed(c, &rule) ||
		!register_is_expressed(&at[CFI_FP], &rule.fp, &rule.fp_offset) ||
		!register_is_expressed(&at[CFI_RA], &rule.ra, &rule.ra_offset) ||
		(c->machine == &x86_64 && (rule.ra != UNWIND_AT_CFA || rule.ra_offset != -8)))
		return (struct unwind_rule){.cfa = UNWIND_CFA_NONE};
	return rule;
}

/* ---- running ---- */

int cfi_begin(struct cfi *c, unsigned machine, const struct eh_frame *f, const struct eh_entry *e)
{
	c->frame = f;
	c->entry = e;
	c->machine = machine == EM_X86_64 ? &x86_64 : &arm64;
	c->program = e->cie.program;
	c->address = c->next = e->start;
	c->in_cie = true;
	c->done = false;
	c->depth = 0;
	/* until it is defined, the CFA is not known */
	c->state = (struct cfi_state){.cfa = CFA_BY_OTHER};
	while (cursor_left(&c->program) && !c->program.bad)
		step(c);
	if (c->program.bad)
		return -EBADMSG;
	c->initial = c->state;
	c->program = e->program;
	c->in_cie = false;
	c->depth = 0;
	return 0;
}

int cfi_next(struct cfi *c, struct cfi_row *ret)
{
	uint64_t end = c->entry->start + c->entry->size;

	if (c->done)
		return 0;
	while (c->next == c->address && cursor_left(&c->program) && !c->program.bad)
		step(c);
	if (c->program.bad)
		return -EBADMSG;
	/* the program is over, or leaves the entry */
	c->done = c->next == c->address || c->next >= end;
	*ret = (struct cfi_row){
		.start = c->address,
		.end = c->done ? end : c->next,
		.rule = express(c),
	};
	c->address = c->next;
	return 1;
}
