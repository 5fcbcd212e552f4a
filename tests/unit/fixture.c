/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c - a small library whose symbols test_elfsym.c and test_elfsym_search.c look up, and
 * whose static probes test_stapsdt.c. */
int fixture_add(int a, int b);
int fixture_add_twice(int a, int b);
int prefix_fixture_add(int a, int b);
int fixture_indirect(int a);
int fixture_probed(int a);

int fixture_data = 7;

int fixture_add(int a, int b)
{
	return a + b;
}

int fixture_add_twice(int a, int b)
{
	return fixture_add(a, b) * 2 + fixture_data;
}

/* Ends like another symbol: a linker may store one name inside the other. */
int prefix_fixture_add(int a, int b)
{
	return a - b;
}

static int chosen(int a)
{
	return a;
}

static __attribute__((used)) int (*choose(void))(int)
{
	return chosen;
}

int fixture_indirect(int a) __attribute__((ifunc("choose")));

static __attribute__((used, noinline)) int fixture_local(int a)
{
	return a * 3;
}

/* A copy as compilers make them, and what they move out of one. */
static __attribute__((used, noinline)) int copy(int a) __asm__("fixture_copied.isra.0");
static __attribute__((used, noinline)) int copy(int a)
{
	return a * 5;
}

static __attribute__((used, noinline)) int cold(int a) __asm__("fixture_copied.cold");
static __attribute__((used, noinline)) int cold(int a)
{
	return a * 7;
}

/* Static probes as <sys/sdt.h> writes them; the counter has a value by which it can be known. */
__attribute__((section(".probes"), used, visibility("hidden"))) unsigned short fixture_counter =
	0x5a17;

#define PROBE(name, counter)                                                                       \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                              \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b\n"                                                      \
			 ".8byte _.stapsdt.base\n"                                                 \
			 ".8byte " counter "\n"                                                    \
			 ".asciz \"fixture\"\n"                                                    \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"\"\n"                                                           \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n"                                                           \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"   \
			 ".ifndef _.stapsdt.base\n"                                                \
			 ".weak _.stapsdt.base\n"                                                  \
			 ".hidden _.stapsdt.base\n"                                                \
			 "_.stapsdt.base: .space 1\n"                                              \
			 ".size _.stapsdt.base, 1\n"                                               \
			 ".endif\n"                                                                \
			 ".popsection\n")

int fixture_probed(int a)
{
	PROBE("plain", "0");
	PROBE("counted", "fixture_counter");
	PROBE("twice", "0");
	PROBE("twice", "0");
	return a;
}
