/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_rates.c - `ingero rates`: the prices that lost GPU time is reckoned with: shown, checked, fetched.
 *
 * There is no address to fetch from by default: list prices travel in the program, and whose others
 * are right is the operator's to say. */
#include <limits.h>
#include <math.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path_user.h"
#include "base/text.h"
#include "cli/commands.h"
#include "command/config_file.h"
#include "command/program.h"
#include "json/writer.h"
#include "net/client/client.h"
#include "rates/rates.h"

#define FETCH_NS (30 * NS_PER_S)

struct rates_settings {
	bool json;
	const char *provider, *url, *ca_cert, *file, *output;
	uint64_t timeout_ns;
};

static const struct rates_settings defaults = {.timeout_ns = FETCH_NS};

#define OPTION(field) offsetof(struct rates_settings, field)
static const struct option_row rates_options[] = {
	OPTION_ROW(STRING, "provider", OPTION(provider), "NAME",
		"show: only prices of this provider, such as aws or lambda"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL, "show: print one JSON object"),
	OPTION_ROW(STRING, "url", OPTION(url), "URL",
		"update: fetch from this https URL (default: rates.url of ingero.yaml)"),
	OPTION_ROW(STRING, "ca-cert", OPTION(ca_cert), "PATH",
		"update: trust the authorities in this file instead of the system's"),
	OPTION_SHORT(STRING, "output", 'o', OPTION(output), "PATH",
		"update: write the fetched prices to this file (default: as --file)"),
	OPTION_WITHIN(DURATION, "timeout", OPTION(timeout_ns), "TIME", 1, 0,
		"update: timeout (default: 30s)"),
	OPTION_ROW(STRING, "file", OPTION(file), "PATH",
		"the file with prices (default: ~/.config/ingero/gpu_rates.yaml)"),
	OPTION_END,
};

/* The user's own file; "" where there is no home. */
static void own_path(char out[PATH_MAX])
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	out[0] = 0;
	if (xdg && xdg[0] == '/')
		snprintf(out, PATH_MAX, "%s/ingero/gpu_rates.yaml", xdg);
	else if (home && home[0] == '/')
		snprintf(out, PATH_MAX, "%s/.config/ingero/gpu_rates.yaml", home);
}

/* Reads --file, else the user's file if there is one, else what is built in. */
static int open_rates(const struct rates_settings *s, struct rates **ret, char source[PATH_MAX],
	struct errinfo *reterr)
{
	struct stat st;

	own_path(source);
	if (s->file)
		snprintf(source, PATH_MAX, "%s", s->file);
	if (s->file || (source[0] && stat(source, &st) == 0))
		return rates_read(source, ret, reterr);
	snprintf(source, PATH_MAX, "built in");
	return rates_builtin(ret);
}

/* ---- show ---- */

static bool is_asked(const struct rates_settings *s, const struct rate *r)
{
	const char *id = s->provider ? rates_provider_id(s->provider) : NULL;

	return !s->provider || strcmp(r->provider, id ? id : s->provider) == 0;
}

static void show_json(const struct rates_settings *s, const struct rates *rates, const char *source)
{
	struct json_writer w = json_writer_to_file(stdout);
	struct rate r;

	w.indent = true;
	json_begin_object(&w);
	JSON_PUT(&w, JSON_S("source", source), JSON_S("as_of", rates_as_of(rates)));
	json_begin_array_member(&w, "rates");
	for (size_t i = 0; rates_at(rates, i, &r); i++) {
		if (!is_asked(s, &r))
			continue;
		JSON_PUT_OBJECT(&w, JSON_S("provider", r.provider), JSON_S("gpu_model", r.model),
			JSON_R("hourly", r.hourly), JSON_S("currency", r.currency),
			JSON_B("is_contract", r.is_contract),
			JSON_R("watts", r.watts > 0 ? r.watts : NAN));
	}
	json_end_array(&w);
	json_end_object(&w);
	json_finish(&w);
}

static void show_text(const struct rates_settings *s, const struct rates *rates, const char *source)
{
	struct rate r;
	char watts[TEXT_MAX];

	printf("%-12s %-28s %-14s  %5s  %s\n", "PROVIDER", "GPU", "  PER HOUR", "WATTS", "PRICE");
	for (size_t i = 0; rates_at(rates, i, &r); i++) {
		if (!is_asked(s, &r))
			continue;
		snprintf(watts, sizeof(watts), r.watts > 0 ? "%.0f" : "-", r.watts);
		printf("%-12s %-28s %6.2f %-7s  %5s  %s\n", r.provider, r.model, r.hourly,
			r.currency, watts, r.is_contract ? "contract" : "list");
	}
	printf("\nOf one GPU. Source: %s%s%s. List prices are an upper bound.\n"
	       "To add a price: write rows of this form to gpu_rates.yaml, check them with\n"
	       "`ingero rates validate gpu_rates.yaml`, and start ingero-cluster with --rates FILE.\n"
	       "\n  contracts:\n    %s:\n      NVIDIA H100 80GB HBM3: 2.10\n",
		TEXT_SHOWN(source), rates_as_of(rates)[0] ? ", as of " : "", rates_as_of(rates),
		s->provider ? s->provider : "my-provider");
}

static int show(const struct rates_settings *s, struct errinfo *reterr)
{
	_cleanup_(rates_freep) struct rates *rates = NULL;
	char source[PATH_MAX];
	struct rate r;
	bool any = false;
	int err = open_rates(s, &rates, source, reterr);

	if (err < 0)
		return err;
	for (size_t i = 0; !any && rates_at(rates, i, &r); i++)
		any = is_asked(s, &r);
	if (!any)
		return errinfo_set(reterr, -ENOENT, "there are no prices for '%s'", s->provider);
	if (s->json)
		show_json(s, rates, source);
	else
		show_text(s, rates, source);
	return 0;
}

/* ---- validate, update ---- */

static void print_counts(const char *what, const struct rates *rates, const char *source)
{
	printf("%s: %s, %s, from %s\n", what, TEXT_PLURAL(rates_provider_count(rates), "providers"),
		TEXT_PLURAL(rates_model_count(rates), "GPU models"), TEXT_SHOWN(source));
}

static int validate(const char *path, struct errinfo *reterr)
{
	_cleanup_(rates_freep) struct rates *rates = NULL;
	int r;

	if (!path)
		return errinfo_set(reterr, -EINVAL, "name the file: ingero rates validate FILE");
	r = rates_read(path, &rates, reterr);
	if (r == 0)
		print_counts("valid", rates, path);
	return r;
}

/* Writes @path, and its folder if that is not there, with the rights of whoever owns the way to it. */
static int write_rates(const char *path, const struct buf *b, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	char folder[PATH_MAX];
	int r = path_user_enter(path, &before, reterr);

	if (r < 0)
		return r;
	snprintf(folder, sizeof(folder), "%s", path);
	for (char *p = strchr(folder + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(folder, 0755); /* if that fails, so will the file */
		*p = '/';
	}
	r = file_write_atomic(path, b->data, b->len, 0644);
	if (r < 0)
		return errinfo_set_exit(
			reterr, EXIT_NO_CREATE, r, "%s cannot be written: %s", path, strerror(-r));
	return 0;
}

static void print_updated(const struct rates *rates, const char *url, const char *path)
{
	print_counts("updated", rates, url);
	printf("written to %s\n", TEXT_SHOWN(path));
}

static int update(const struct rates_settings *s, struct errinfo *reterr)
{
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(rates_freep) struct rates *rates = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(RATES_BYTES_MAX);
	struct errinfo e = {0};
	char path[PATH_MAX];
	const char *url;
	int r = config_file_load(&config, reterr);

	if (r < 0)
		return r;
	url = s->url ? s->url : config->rates_url;
	if (!url)
		return errinfo_set(reterr, -EINVAL,
			"there is no default address to fetch prices from: give --url, or rates.url "
			"in ingero.yaml; without a file of your own the built-in prices are used");
	own_path(path);
	if (s->output || s->file)
		snprintf(path, sizeof(path), "%s", s->output ? s->output : s->file);
	if (!path[0])
		return errinfo_set(reterr, -EINVAL, "there is no home folder: give --output");
	r = https_fetch(
		url, s->ca_cert ? s->ca_cert : config->rates_ca_cert, s->timeout_ns, &b, reterr);
	if (r < 0)
		return r;
	r = rates_parse(buf_str(&b), b.len, &rates, &e);
	if (r < 0)
		return errinfo_set_exit(
			reterr, EXIT_BAD_DATA, r, "%s: %s; %s is unchanged", url, e.text, path);
	r = write_rates(path, &b, reterr);
	if (r == 0)
		print_updated(rates, url, path);
	return r;
}

static int rates_run(const struct command *c, void *settings, int argc, char **argv)
{
	const char *action = argc ? argv[0] : "show";
	const struct rates_settings *s = settings;
	struct errinfo e = {0};
	int r;

	if ((s->output || s->timeout_ns != FETCH_NS) && strcmp(action, "update") != 0)
		r = errinfo_set(
			&e, -EINVAL, "--output and --timeout are options of `rates update`");
	else if (argc > 1 && strcmp(action, "validate") != 0)
		r = errinfo_set(&e, -EINVAL, "rates %s takes no arguments", action);
	else if (strcmp(action, "show") == 0)
		r = show(settings, &e);
	else if (strcmp(action, "validate") == 0)
		r = validate(argc > 1 ? argv[1] : NULL, &e);
	else if (strcmp(action, "update") == 0)
		r = update(settings, &e);
	else
		r = errinfo_set(&e, -EINVAL, "unknown action '%.60s': use show, update or validate",
			action);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_rates = {
	.name = "rates",
	.synopsis = "rates show|update|validate [FILE] [flags]",
	.summary = "Show, check or fetch GPU prices for cost estimates",
	.details =
		"  ingero rates show --provider lambda\n"
		"  ingero rates validate prices.yaml\n"
		"  ingero rates update --url https://prices.example/gpu_rates.yaml\n"
		"A model that is not in the table is unpriced, never free. Prices of your own go\n"
		"below `contracts:` of the file and win over list prices. update replaces the file\n"
		"only by one that is valid.",
	.options = rates_options,
	.settings_size = sizeof(struct rates_settings),
	.defaults = &defaults,
	.max_args = 2,
	.run = rates_run,
};
