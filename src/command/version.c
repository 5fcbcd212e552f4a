/* SPDX-License-Identifier: Apache-2.0 */
/* version.c - `version` of each program: what it is and what it runs on. */
#include "command/version.h"

#include <stdio.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "command/dispatch.h"
#include "command/update.h"
#include "config.h"
#include "json/writer.h"

#if defined(__x86_64__)
#define BUILD_ARCH "x86_64"
#elif defined(__aarch64__)
#define BUILD_ARCH "aarch64"
#else
#error "supported: x86_64 and aarch64"
#endif

#define ASK_NS (10 * NS_PER_S)

struct version_settings {
	bool json, check;
};

static const struct option_row version_options[] = {
	{.name = "json",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct version_settings, json),
		.help = "print one JSON object"},
	{.name = "check",
		.kind = OPTION_FLAG,
		.offset = offsetof(struct version_settings, check),
		.help = "ask update.url of ingero.yaml whether there is a newer version"},
	{0},
};

static int print_json(const struct utsname *u, const char *newest)
{
	struct json_writer w = json_writer_to_file(stdout);

	w.indent = true;
	json_begin_object(&w);
	json_string_member(&w, "version", INGERO_VERSION);
	json_string_member(&w, "arch", BUILD_ARCH);
	json_string_member(&w, "kernel", u->release);
	if (newest) {
		json_string_member(&w, "newest", newest);
		json_bool_member(&w, "update_available", update_is_newer(newest, INGERO_VERSION));
	}
	json_end_object(&w);
	json_finish(&w); /* a failed stdout is reported once, at exit */
	return EXIT_OK;
}

static int version_run(const struct command *c, void *settings, int argc, char **argv)
{
	const struct version_settings *s = settings;
	char newest[UPDATE_VERSION_MAX] = "";
	struct errinfo e = {0};
	struct utsname u;
	int r = s->check ? update_ask(ASK_NS, newest, &e) : 0;

	if (r < 0)
		return dispatch_fail(&e, r);
	uname(&u);
	if (s->json)
		return print_json(&u, s->check ? newest : NULL);
	printf("%s %s (built for %s, on %s %s)\n", program_running()->name, INGERO_VERSION,
		BUILD_ARCH, u.sysname, u.release);
	if (s->check)
		printf(update_is_newer(newest, INGERO_VERSION) ? "%s is available\n"
							       : "The newest version is %s\n",
			newest);
	return EXIT_OK;
}

const struct command cmd_version = {
	.name = "version",
	.synopsis = "version [--json] [--check]",
	.summary = "Show the version, the architecture it was built for and the running kernel",
	.options = version_options,
	.settings_size = sizeof(struct version_settings),
	.run = version_run,
};
