/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_names.c - kernels and ranges of NVTX whose names are many, long, hostile or not there, for 11-hostile-names.
 * Usage: hostile-names GATE N: N kernels with names of their own, each registered and launched once, and N
 * ranges likewise; then names that end with their page, are not mapped, or are no text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda_sim.h"
#include "gate.h"

#define LONG (64u << 10)

int nvtxRangePushA(const char *name);
int nvtxRangePop(void);
void nvtxMarkA(const char *name);

static void use(struct sim_kernel *place, const char *name)
{
	dim3 one = {1, 1, 1};

	*place = (struct sim_kernel){SIM_KERNEL_MAGIC, 0};
	__cudaRegisterFunction(
		NULL, (const char *)place, NULL, name, -1, NULL, NULL, NULL, NULL, NULL);
	cudaLaunchKernel(place, one, one, NULL, 0, NULL);
	nvtxRangePushA(name);
	nvtxRangePop();
	nvtxMarkA(name);
}

int main(int argc, char **argv)
{
	static const char *const pieces[] = {"\x1b[2J\x1b]0;owned\a", "<script>alert(1)</script>",
		"'; DROP TABLE kernels;--", "\xff\xfe\xc0\x80",
		"\xe2\x80\xae"
		"evil",
		"\n\r\t\b", "{\"a\":", "%n%s%n"};
	long n = argc == 3 ? atol(argv[2]) : 0;
	struct sim_kernel *places = calloc((size_t)n + 16, sizeof(*places));
	char *name = malloc(LONG + 1);
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!n || !places || !name || page == MAP_FAILED)
		return 64;
	gate_wait(argv[1]);
	memset(name, 'k', LONG);
	name[LONG] = 0;
	for (long i = 0; i < n; i++) {
		if (i % 16 == 0) { /* long, and each another at its beginning */
			memcpy(name, "0000000000", 10);
			for (long k = i, at = 9; k; k /= 10)
				name[at--] = (char)('0' + k % 10);
			use(&places[i], name);
		} else {
			char text[128];

			snprintf(text, sizeof(text), "%s %ld", pieces[i % 8], i);
			use(&places[i], text);
		}
	}
	munmap(page + 4096, 4096);
	memset(page, 'e', 4096); /* no end but that of the page */
	use(&places[n], page + 4000);
	use(&places[n + 1], page + 4095);
	use(&places[n + 2], page + 4096);
	use(&places[n + 3], (const char *)0x8000000000000000);
	use(&places[n + 4], (const char *)0xffffffff81000000);
	use(&places[n + 5], "");
	return 0;
}
