/* SPDX-License-Identifier: Apache-2.0 */
/* names_fixture.c - a library whose functions, lines and inlined functions are known to
 * test_symbol_names.c. It is read, never run.
 *
 * MARK(x) puts the symbol mark_x on an instruction of its own line. #line gives files and numbers
 * that do not move when this file is edited. */
#define MARK(x)     __asm__ volatile(".globl mark_" #x "\nmark_" #x ":\n\tnop" ::: "memory")
#define INLINED     static inline __attribute__((always_inline))
#define APART       __attribute__((noinline, noclone))
#define NAMED(name) __asm__(name)

int outermost(int x);
int cxx_function(int x) NAMED("_ZN3foo3barEi");
int cxx_clone(int x) NAMED("_Z1fi.cold");
int rust_function(int x) NAMED("_RNvCsjMaewn57Afh_1t4main");
int deep_function(int x);
int __global_alias(int x);
int weak_alias(int x) __attribute__((weak, alias("__global_alias")));
int returning(int x);
void called(void);
int fixture_number = 42;

// clang-format off
#line 100 "/src/deep/inner.h"
INLINED int inner(int x)
{
	MARK(inner); /* 102 */
	return x + 1;
}

#line 200 "middle.h"
INLINED int middle(int x)
{
	x = inner(x * 2); /* 202 */
	MARK(middle);     /* 203 */
	return x;
}

#line 300 "../outer.c"
int outermost(int x)
{
	MARK(outermost); /* 302 */
	x = middle(x);   /* 303 */
	return x;
}

int cxx_function(int x)
{
	MARK(cxx); /* 309 */
	return x;
}

int cxx_clone(int x)
{
	MARK(clone); /* 315 */
	return x;
}

int rust_function(int x)
{
	MARK(rust); /* 321 */
	return x;
}

int __global_alias(int x)
{
	MARK(alias); /* 327 */
	return x;
}

#line 400 "call.c"
APART void called(void)
{
	MARK(called); /* 402 */
}

int returning(int x)
{
	called();        /* 407 */
	MARK(returning); /* 408 */
	return x;
}

static APART __attribute__((used)) int local_function(int x)
{
	MARK(local); /* 414 */
	return x;
}

#line 500 "deep.h"
INLINED int d0(int x) { MARK(deepest); return x + 1; }
INLINED int d1(int x) { return d0(x); }
INLINED int d2(int x) { return d1(x); }
INLINED int d3(int x) { return d2(x); }
INLINED int d4(int x) { return d3(x); }
INLINED int d5(int x) { return d4(x); }
INLINED int d6(int x) { return d5(x); }
INLINED int d7(int x) { return d6(x); }
INLINED int d8(int x) { return d7(x); }
int deep_function(int x) { return d8(x); }
// clang-format on

/* Functions that no compiler made: with a size and a gap behind it, one inside another, and without
 * a size. */
__asm__(".pushsection .text\n"
	".balign 16\n"
	".globl sized, mark_gap, enclosing, enclosed, unsized, versioned_1\n"
	".type sized, %function\n"
	"sized: .skip 8\n"
	".size sized, 8\n"
	"mark_gap: .skip 8\n"
	".type enclosing, %function\n"
	".type enclosed, %function\n"
	"enclosing: .skip 16\n"
	"enclosed: .skip 8\n"
	".size enclosed, 8\n"
	".skip 8\n"
	".size enclosing, 32\n"
	".type unsized, %function\n"
	"unsized: .skip 16\n"
	".type versioned_1, %function\n"
	"versioned_1: .skip 16\n"
	".size versioned_1, 16\n"
	".popsection\n");
