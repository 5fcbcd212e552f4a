/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp_start.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/demo_scenario.h"
#include "cli/fleet.h"

void mcp_demos_list(struct mcp_demo out[MCP_DEMOS_MAX])
{
	int n = 0;

	for (; n < MCP_DEMOS_MAX - 1 && demo_scenarios[n].name; n++)
		out[n] = (struct mcp_demo){demo_scenarios[n].name, demo_scenarios[n].title,
			demo_scenarios[n].recording};
	out[n] = (struct mcp_demo){0};
}

int mcp_fleet_ask(
	const struct fanout_question *q, struct fanout_result *ret, struct errinfo *reterr)
{
	_cleanup_(fleet_done) struct fleet fleet = {0};
	struct fleet_options nothing_else = FLEET_OPTIONS_INIT;
	int r = fleet_open(&nothing_else, NULL, &fleet, reterr);

	if (r < 0)
		return r;
	if (!fleet.fanout)
		return errinfo_set(reterr, -ENOENT,
			"no other nodes are configured: list them under fleet.nodes in ingero.yaml");
	return fanout_wait(fleet.fanout, q, ret, reterr);
}

/* Names come from clients, so they are escaped. */

#define LINE_MAX_BYTES 1024
#define NAME_SHOWN     128

int mcp_log_open(const char *path, struct mcp_log *ret, struct errinfo *reterr)
{
	return log_file_open(path, &ret->fd, reterr);
}

void mcp_log_close(struct mcp_log *l)
{
	fd_closep(&l->fd);
}

void mcp_log_line(void *arg, const char *method, const char *name, uint64_t ns, bool failed)
{
	_cleanup_buf_ struct buf b = BUF_INIT(LINE_MAX_BYTES);
	const struct mcp_log *l = arg;
	time_t now = time(NULL);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_printf(&b, "%s %s ", when, failed ? "failed" : "ok");
	text_escape_terminal_len(&b, method, strnlen(method, NAME_SHOWN));
	buf_putc(&b, ' ');
	text_escape_terminal_len(&b, name ? name : "-", strnlen(name ? name : "-", NAME_SHOWN));
	buf_printf(&b, " %llu ms\n", (unsigned long long)(ns / NS_PER_MS));
	/* A log that cannot be written does not keep anybody from being answered. */
	if (!b.err && write(l->fd, b.data, b.len) < 0)
		return;
}
