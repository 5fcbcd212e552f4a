/* SPDX-License-Identifier: Apache-2.0 */
/* test_demangle.c - names as compilers made them (GCC 12, rustc 1.95) and as they should read; then
 * names made to hurt. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demangle/demangle.h"
#include "base/macros.h"

struct pair {
	const char *mangled, *text;
};

static void assert_pairs(const struct pair *pairs, size_t count)
{
	char out[512];

	for (size_t i = 0; i < count; i++)
		assert_string_equal(demangle(pairs[i].mangled, out, sizeof(out)), pairs[i].text);
}

static void cxx_names(void **state)
{
	static const struct pair pairs[] = {
		{"_ZN3foo3barEi", "foo::bar(int)"},
		{"_ZNK3foo3Bar3getIdEEbRKSt6vectorIT_SaIS3_EE",
			"bool foo::Bar::get<double>(std::vector<double, std::allocator<double> > "
			"const&) "
			"const"},
		{"_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden()"},
		{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"},
		{"_ZN5ThingD0Ev", "Thing::~Thing()"},
		{"_ZplRK4TextS1_", "operator+(Text const&, Text const&)"},
		{"_ZTV5Thing", "vtable for Thing"},
	};

	assert_pairs(pairs, ARRAY_SIZE(pairs));
}

static void clones(void **state)
{
	static const struct pair pairs[] = {
		{"_Z1fi.cold", "f(int) [clone .cold]"},
		{"_Z1fi.part.0", "f(int) [clone .part.0]"},
		{"_Z1fi.constprop.0.isra.1", "f(int) [clone .constprop.0] [clone .isra.1]"},
		{"_Z1fi.lto_priv.0", "f(int) [clone .lto_priv.0]"},
		{"_Z1fi.llvm.1234567", "f(int) [clone .llvm.1234567]"},
		{"_Z1fi._omp_fn.2", "f(int) [clone ._omp_fn.2]"},
		{"_ZN1t4main17h0123456789abcdefE.llvm.99", "t::main [clone .llvm.99]"},
		{"_RNvCsjMaewn57Afh_1t4main.cold", "t::main [clone .cold]"},
	};

	assert_pairs(pairs, ARRAY_SIZE(pairs));
}

static void other_names_stay(void **state)
{
	static const char *const names[] = {"", "_", "_Z", "_R", "main", "memcpy", "i", "St",
		"f.cold", "_Z1", "_Z3fo", "_ZN3fooE1", "_ZN", "_ZN3foo", "_R0", "_RNvC",
		"_RNvC1t4mai", "_RNvC1t4main!", "_RNvC1tq4main", "_RINvC1t1fKb2_E",
		"_RINvC1t1fKcd800_E", "_RINvC1t1fKRe6_E", "_RINvC1t1fKReff_E", "_RINvC1t1fL0_E",
		"_RNvB_4main", "_RB0_", "_RNvC1tu1_4main", "_RYDEhh",
		"_RNvC99999999999999999999999t4main", "_RNvCszzzzzzzzzzzzzzz_1t", "?f@@YAHH@Z",
		"\xff\xfe"};
	char out[512];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(demangle(names[i], out, sizeof(out)), names[i]);
}

static void rust_legacy_names(void **state)
{
	static const struct pair pairs[] = {
		{"_ZN1t19Holder$LT$T$C$_$GT$3dup17h0ad3a9788d926150E", "t::Holder<T,_>::dup"},
		{"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h18c85fd2a82416fcE",
			"std::rt::lang_start::{{closure}}"},
		{"_ZN4core3ptr46drop_in_place$LT$alloc..vec..Vec$LT$u8$GT$$GT$17h27f469443a8d8facE",
			"core::ptr::drop_in_place<alloc::vec::Vec<u8>>"},
		{"_ZN65_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..fmt..Debug$GT$"
		 "3fmt17ha8944ecacc"
		 "d7b5cdE",
			"<alloc::vec::Vec<T,A> as core::fmt::Debug>::fmt"},
		{"_ZN1t9g$uf6$del25_$ufc$bung_$u65e5$$u672c$17h1b4002ca6d21298cE",
			"t::gödel::übung_日本"},
		{"_ZN1t5$RF$a7$u7e$.d5$BP$b5$SP$c17h0123456789abcdefE", "t::&a::~.d::*b::@c"},
		{"_ZN1t9$XY$a$LT$17h0123456789abcdefE", "t::$XY$a$LT$"},
		{"_ZN1t5$u1b$17h0123456789abcdefE", "t::$u1b$"},
		{"_ZN1t2a.17h0123456789abcdefE", "t::a."},
		/* 15 digits: this is C++. */
		{"_ZN1t16h0123456789abcdeE", "t::h0123456789abcde"},
	};

	assert_pairs(pairs, ARRAY_SIZE(pairs));
}

static void rust_v0_paths_and_types(void **state)
{
	static const struct pair pairs[] = {
		{"_RNvCsjMaewn57Afh_1t4main", "t::main"},
		{"_RNvMs_CsjMaewn57Afh_1tINtB4_6HolderhKj3_E3dupB4_", "<t::Holder<u8, 3>>::dup"},
		{"_RNvXCsjMaewn57Afh_1tINtB2_6HolderhKj3_ENtB2_5Shape4areaB2_",
			"<t::Holder<u8, 3> as t::Shape>::area"},
		{"_RINvYINtCsjMaewn57Afh_1t6HolderhKj3_ENtB6_5Shape7genericINtNtCs6Hz1PecaLG4_"
		 "4core6option"
		 "6OptionReEEB6_",
			"<t::Holder<u8, 3> as t::Shape>::generic::<core::option::Option<&str>>"},
		{"_RINvCsjMaewn57Afh_1t4callNCNCNvB2_4mains0_00EB2_",
			"t::call::<t::main::{closure#2}::{closure#0}>"},
		{"_RNSNvYNCINvNtCshxTglP3SOjd_3std2rt10lang_startuE0INtNtNtCs6Hz1PecaLG4_"
		 "4core3ops8funct"
		 "ion6FnOnceuE9call_once6vtableCsjMaewn57Afh_1t",
			"<std::rt::lang_start<()>::{closure#0} as "
			"core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0}"},
		{"_RNvNtCsjMaewn57Afh_1tu8gdel_5qau17bung__jva0591p0ec", "t::gödel::übung_日本"},
		{"_RINvCsjMaewn57Afh_1t2tyTauzRStEEB2_", "t::ty::<(i8, (), !, &[u16])>"},
		{"_RINvCsjMaewn57Afh_1t2tyThEEB2_", "t::ty::<(u8,)>"},
		{"_RINvCsjMaewn57Afh_1t2tyFUKCPhOnvEuEB2_",
			"t::ty::<unsafe extern \"C\" fn(*const u8, *mut i128, ...)>"},
		{"_RINvCsjMaewn57Afh_1t2tyFG0_RL1_hQL0_aERL1_hEB2_",
			"t::ty::<for<'a, 'b> fn(&'a u8, &'b mut i8) -> &'a u8>"},
		{"_RINvCsjMaewn57Afh_1t2tyDG_INtNtNtCs6Hz1PecaLG4_4core3ops8function2FnTRL0_"
		 "hEEp6OutputuE"
		 "L_EB2_",
			"t::ty::<dyn for<'a> core::ops::function::Fn<(&'a u8,), Output = ()>>"},
		{"_RINvCsjMaewn57Afh_1t2tyDNtNtNtNtCs6Hz1PecaLG4_"
		 "4core4iter6traits8iterator8Iteratorp4Item"
		 "mNtNtBu_6marker4SendEL_EB2_",
			"t::ty::<dyn core::iter::traits::iterator::Iterator<Item = u32> + "
			"core::marker::Send>"},
		{"_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
			"std::mem::align_of::<std::mem::Discriminant>"},
		{"_RNvC1tu4a_99", "t::punycode{a-99}"},
	};

	assert_pairs(pairs, ARRAY_SIZE(pairs));
}

static void rust_v0_constants(void **state)
{
	static const struct pair pairs[] = {
		{"_RINvCsjMaewn57Afh_1t2boKb1_EB2_", "t::bo::<true>"},
		{"_RINvCsjMaewn57Afh_1t2chKc27_EB2_", "t::ch::<'\\''>"},
		{"_RINvCsjMaewn57Afh_1t2chKca_EB2_", "t::ch::<'\\n'>"},
		{"_RINvCsjMaewn57Afh_1t2chKcdf_EB2_", "t::ch::<'ß'>"},
		{"_RINvCsjMaewn57Afh_1t2stKRe6865226c6c00c3b6_EB2_",
			"t::st::<\"he\\\"ll\\u{0}ö\">"},
		{"_RINvCsjMaewn57Afh_1t3arrKAh1_h2_h3_EEB2_", "t::arr::<{[1, 2, 3]}>"},
		{"_RINvCsjMaewn57Afh_1t3bigKo1234567890abcdef1234_EB2_",
			"t::big::<0x1234567890abcdef1234>"},
		{"_RINvCsjMaewn57Afh_1t3negKxn11_EB2_", "t::neg::<-17>"},
		{"_RINvCsjMaewn57Afh_1t3tupKTh1_RAl4_l5_EEEB2_", "t::tup::<{(1, &[4, 5])}>"},
		{"_RINvCsjMaewn57Afh_1t4modeKVNtNtB2_4Mode1AUEB2_", "t::mode::<{t::Mode::A}>"},
		{"_RINvCsjMaewn57Afh_1t4modeKVNtNtB2_4Mode1BTln5_EEB2_",
			"t::mode::<{t::Mode::B(-5)}>"},
		{"_RINvCsjMaewn57Afh_1t4modeKVNtNtB2_4Mode1CS1xh3_1yb0_EEB2_",
			"t::mode::<{t::Mode::C { x: 3, y: false }}>"},
		{"_RINvC1t1fKpE", "t::f::<_>"},
	};

	assert_pairs(pairs, ARRAY_SIZE(pairs));
}

/* Text that does not fit ends in the mark, whole characters before it, at any size. */
static void cut_names(void **state)
{
	char out[64];

	assert_string_equal(demangle("_ZN3foo3barEi", out, 14), "foo::bar(int)");
	assert_string_equal(demangle("_ZN3foo3barEi", out, 13), "foo::bar(…");
	assert_string_equal(demangle("_ZN3foo3barEi.cold", out, 17), "foo::bar(int)…");
	assert_string_equal(demangle("a_plain_name", out, 8), "a_pl…");
	assert_string_equal(demangle("abc", out, 4), "abc");
	assert_string_equal(demangle("abcd", out, 4), "…");
	assert_string_equal(demangle("abcd", out, 3), "");
	assert_string_equal(demangle("abcd", out, 1), "");
	/* gödel: the cut falls behind the first byte of ö */
	assert_string_equal(demangle("_ZN1t9g$uf6$del17h1b4002ca6d21298cE", out, 9), "t::g…");
	for (size_t size = 0; size < sizeof(out); size++) {
		memset(out, 0x55, sizeof(out));
		demangle("_RNvNtCsjMaewn57Afh_1tu8gdel_5qau17bung__jva0591p0ec", out, size);
		assert_int_equal((unsigned char)out[size], 0x55);
		assert_true(size == 0 || strlen(out) < size);
	}
}

/* Beyond what the C++ library reads, the scope is still told. */
static void long_names(void **state)
{
	char *name = test_malloc(20000), out[64];
	static const struct pair pairs[] = {
		{"_ZN6thrust8cuda_cub13_kernel_agentI", "thrust::cuda_cub::_kernel_agent<…>"},
		{"_ZNKSt6vectorI", "std::vector<…>"},
		{"_ZN12_GLOBAL__N_13abcE", "(anonymous namespace)::abc…"},
		{"_Z3runI", "run<…>"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		size_t len = strlen(pairs[i].mangled);

		memcpy(name, pairs[i].mangled, len);
		memset(name + len, 'P', 5000 - len);
		name[5000] = 0;
		assert_string_equal(demangle(name, out, sizeof(out)), pairs[i].text);
	}
	memset(name + 5, 'P', 19990);
	name[19995] = 0;
	assert_memory_equal(demangle(name, out, sizeof(out)), name, sizeof(out) - 4);
	assert_string_equal(out + sizeof(out) - 4, "…");
	test_free(name);
}

/* Repeats @unit into @name behind @prefix, and puts @suffix at the end. */
static void nest(
	char *name, const char *prefix, const char *unit, unsigned times, const char *suffix)
{
	size_t at = strlen(prefix), len = strlen(unit);

	memcpy(name, prefix, at);
	for (unsigned i = 0; i < times; i++, at += len)
		memcpy(name + at, unit, len);
	memcpy(name + at, suffix, strlen(suffix) + 1);
}

/* Names of a few hundred bytes that stand for more text than there is memory: these end at once,
 * with the front of it. */
static void names_that_explode(void **state)
{
	char name[4096], out[512];
	size_t at;

	at = (size_t)snprintf(name, sizeof(name), "_Z1f4pairI1A1AE");
	for (int i = 0; i < 33; i++) {
		char c = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i + 2];

		at += (size_t)snprintf(name + at, sizeof(name) - at, "S_IS%c_S%c_E", c, c);
	}
	demangle(name, out, sizeof(out));
	assert_memory_equal(out, "f(pair<A, A>, pair<pair<A, A>, pair<A, A> >", 43);
	assert_string_equal(out + strlen(out) - strlen("…"), "…");

	/* ((((…),(…)),…: each tuple holds the one before it twice */
	at = (size_t)snprintf(name, sizeof(name), "_RINvC1t1fThhE");
	for (int i = 0, last = 8; i < 40; i++) {
		const char *digits =
			"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
		int self = (int)at - 2;
		char ref[8];

		if (last - 1 < 62)
			snprintf(ref, sizeof(ref), "B%c_", digits[last - 1]);
		else
			snprintf(ref, sizeof(ref), "B%c%c_", digits[(last - 1) / 62],
				digits[(last - 1) % 62]);
		at += (size_t)snprintf(name + at, sizeof(name) - at, "T%s%sE", ref, ref);
		last = self;
	}
	snprintf(name + at, sizeof(name) - at, "E");
	demangle(name, out, sizeof(out));
	assert_memory_equal(out, "t::f::<(u8, u8), ((u8, u8), (u8, u8)), (((u8, u8)", 48);
	assert_string_equal(out + strlen(out) - strlen("…"), "…");
}

/* Deep nesting is refused or read, never a crash. */
static void names_that_go_deep(void **state)
{
	static const char *const units[][3] = {{"_Z1f", "P", "i"}, {"_Z1f", "PF", "vvE"},
		{"_ZN", "1aI", "E"}, {"_Z", "Z1fvE", "v"}, {"_Z1fI", "X", "E"},
		{"_Z1f", "DpT_", ""}, {"_Z1fIXadL_Z", "1fIXadL_Z", "E"}, {"_Z", "L_Z", ""},
		{"_Z1f", "M1A", "i"}, {"_Z1fIiEv", "RT_", ""}, {"_Z1fI", "1AIiERT_", "Ev"},
		{"_RNvC1t1f", "", ""}, {"_R", "Nv", "C1t1f"}, {"_RINvC1t1f", "R", "hE"},
		{"_RINvC1t1f", "F", "uE"}, {"_RINvC1t1fK", "R", "h1_E"}, {"_RINvC1t1f", "T", "E"},
		{"_R", "I", "C1tE"}, {"_RM", "C1tM", "C1th"}, {"_RINvC1t1f", "FG_", "E"},
		{"_RINvC1t1f", "DG_", "E"}, {"_ZN", "1$", "17h0123456789abcdefE"},
		{"_RNvC1t", "u2_a", ""}};
	char *name = test_malloc(40000), out[512];

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		for (unsigned times = 1; times < 3000; times = times * 3 / 2 + 1) {
			nest(name, units[i][0], units[i][1], times, units[i][2]);
			assert_true(strlen(demangle(name, out, sizeof(out))) < sizeof(out));
		}
	/* Control: a depth that is allowed is read. */
	nest(name, "_RINvC1t1f", "R", 150, "hE");
	assert_memory_equal(demangle(name, out, sizeof(out)), "t::f::<&&&&", 11);
	nest(name, "_RINvC1t1f", "R", 300, "hE");
	assert_string_equal(demangle(name, out, sizeof(out)), name);
	test_free(name);
}

/* Good names with bytes changed, with a fixed seed: whatever comes out is a string in its bounds.
 */
static void damaged_names(void **state)
{
	static const char *const names[] = {"_RNSNvYNCINvNtCshxTglP3SOjd_3std2rt10lang_"
					    "startuE0INtNtNtCs6Hz1PecaLG4_4core3ops8functio"
					    "n6FnOnceuE9call_once6vtableCsjMaewn57Afh_1t",
		"_RINvCsjMaewn57Afh_1t4modeKVNtNtB2_4Mode1CS1xh3_1yb0_EEB2_",
		"_RINvCsjMaewn57Afh_1t2stKRe6865226c6c00c3b6_EB2_",
		"_RNvNtCsjMaewn57Afh_1tu8gdel_5qau17bung__jva0591p0ec",
		"_ZN65_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..fmt..Debug$GT$"
		"3fmt17ha8944ecaccd"
		"7b5cdE",
		"_ZNK3foo3Bar3getIdEEbRKSt6vectorIT_SaIS3_EE"};
	static const char letters[] = "_ZNRISTEBKCMXYFDGLuvhpsabn0123456789.$A";
	uint64_t seed = 0x9e3779b97f4a7c15;

	for (unsigned round = 0; round < 60000; round++) {
		const char *good = names[round % ARRAY_SIZE(names)];
		/* On the heap, so that a read behind its end is seen. */
		char *name = test_malloc(strlen(good) + 1), out[200];

		memcpy(name, good, strlen(good) + 1);
		for (unsigned n = round % 4 + 1; n > 0; n--) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			name[2 + (seed >> 33) % (strlen(good) - 2)] =
				letters[(seed >> 20) % (sizeof(letters) - 1)];
		}
		assert_true(strlen(demangle(name, out, sizeof(out))) < sizeof(out));
		test_free(name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cxx_names),
		cmocka_unit_test(clones),
		cmocka_unit_test(other_names_stay),
		cmocka_unit_test(rust_legacy_names),
		cmocka_unit_test(rust_v0_paths_and_types),
		cmocka_unit_test(rust_v0_constants),
		cmocka_unit_test(cut_names),
		cmocka_unit_test(long_names),
		cmocka_unit_test(names_that_explode),
		cmocka_unit_test(names_that_go_deep),
		cmocka_unit_test(damaged_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
