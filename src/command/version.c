/* SPDX-License-Identifier: Apache-2.0 */
/* version.c - `version` of each program: what it is and what it runs on. */
#include "command/version.h"

#include <stdio.h>
#include <sys/utsname.h>

#include "command/dispatch.h"
#include "config.h"
#include "json/writer.h"

#if defined(__x86_64__)
#define BUILD_ARCH "x86_64"
#elif defined(__aarch64__)
#define BUILD_ARCH "aarch64"
#else
#error "supported: x86_64 and aarch64"
#endif

struct version_settings {
	bool json;
};

static const struct option_row version_options[] = {
	{.name = "json",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct version_settings, json),
		.help = "print one JSON object"},
	{0},
};

static int print_json(const struct utsname *u)
{
	struct json_writer w = json_writer_to_file(stdout);

	w.indent = true;
	json_begin_object(&w);
	json_string_member(&w, "version", INGERO_VERSION);
	json_string_member(&w, "arch", BUILD_ARCH);
	json_string_member(&w, "kernel", u->release);
	json_end_object(&w);
	json_finish(&w); /* a failed stdout is reported once, at exit */
	return EXIT_OK;
}

static int version_run(const struct command *c, void *settings, int argc, char **argv)
{
	const struct version_settings *s = settings;
	struct utsname u;

	uname(&u);
	if (s->json)
		return print_json(&u);
	printf("%s %s (built for %s, on %s %s)\n", program_running()->name, INGERO_VERSION,
		BUILD_ARCH, u.sysname, u.release);
	return EXIT_OK;
}

const struct command cmd_version = {
	.name = "version",
	.synopsis = "version [--json]",
	.summary = "Show the version, the architecture it was built for and the running kernel",
	.options = version_options,
	.settings_size = sizeof(struct version_settings),
	.run = version_run,
};
