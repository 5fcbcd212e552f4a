/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c - a small library whose symbols test_elfsym.c looks up. */
int fixture_add(int a, int b);
int fixture_add_twice(int a, int b);
int prefix_fixture_add(int a, int b);
int fixture_indirect(int a);

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
