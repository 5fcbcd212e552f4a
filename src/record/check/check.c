/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the rows of a report, in their order, and what they come to.
 *
 * A row that cannot be known for want of privilege is not a failure of its own: the capabilities
 * row says once what is missing. Names of processes and paths stay raw here; printing escapes them.
 */
#include "record/check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/check/check_private.h"

void check_append(char *out, size_t size, const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + len, size - len, fmt, ap);
	va_end(ap);
}

static const struct {
	const char *name;
	bool optional;
	void (*run)(const struct check_context *c, struct check_row *row);
} checks[] = {
	{"kernel", false, check_kernel},
	{"BTF", false, check_btf},
	{"eBPF loading", false, check_bpf},
	{"uprobes", false, check_uprobes},
	{"tracepoints", false, check_tracepoints},
	{"programs", false, check_programs},
	{"CPU samples", true, check_cpu_clock},
	{"capabilities", false, check_capabilities},
	{"perf_event_paranoid", true, check_paranoid},
	{"ptrace_scope", true, check_ptrace_scope},
	{"confinement", true, check_confinement},
	{"NVIDIA driver", true, check_driver},
	{"GPU", true, check_gpu},
	{"CUDA libraries", true, check_libraries},
	{"CUDA processes", true, check_processes},
};
STATIC_ASSERT(ARRAY_SIZE(checks) + PART_COUNT <= CHECK_ROWS_MAX);

void check_run(const char *root, const struct check_probes *p, struct check_report *ret)
{
	struct check_context c = {.root = root, .probes = p, .report = ret};

	*ret = (struct check_report){.count = ARRAY_SIZE(checks)};
	obstacle_look(root, &c.view);
	if (p->is_old) {
		c.view.caps = p->caps;
		c.view.has_seccomp = false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		ret->rows[i].name = checks[i].name;
		ret->rows[i].optional = checks[i].optional;
		checks[i].run(&c, &ret->rows[i]);
	}
	ret->count += check_missing(&c, ret->rows + ret->count);
}

enum exit_code check_exit_code(const struct check_report *r)
{
	enum exit_code code = EXIT_OK;

	for (size_t i = 0; i < r->count; i++) {
		if (r->rows[i].state == CHECK_NO_FEATURE)
			return EXIT_NO_FEATURE;
		if (r->rows[i].state == CHECK_NO_PRIVILEGE)
			code = EXIT_NO_PERMISSION;
	}
	return code;
}
