/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_annotate.c - `ingero annotate`: labels what a workload is doing, for a running
 * `ingero trace --annotate`. It ends well only when every line was acknowledged, which the tracer
 * does after storing it. */
#include <fcntl.h>
#include <sys/mman.h>

#include "record/annotate/annotate.h"
#include "base/socket_path.h"
#include "base/text.h"
#include "cli/commands.h"
#include "command/program.h"

struct annotate_settings {
	struct option_strings labels;
	int64_t pid;
	const char *file, *socket;
};

#define OPTION(field) offsetof(struct annotate_settings, field)
static const struct option_row annotate_options[] = {
	OPTION_SHORT(STRINGS, "label", 'l', OPTION(labels), "KEY=VALUE",
		"label to add, such as phase=eval or step=1200; may be repeated"),
	{"pid", 'p', OPTION_INT, OPTION(pid), "N",
		"process that the labels apply to (default: the whole trace)", 0, 4194304, false},
	OPTION_ROW(STRING, "from-file", OPTION(file), "PATH",
		"read lines of JSON from this file; - is standard input (default)"),
	OPTION_ROW(STRING, "socket", OPTION(socket), "PATH",
		"socket of `ingero trace` (default: /run/ingero/annotate.sock, or below $XDG_RUNTIME_DIR)"),
	OPTION_END,
};

/* The line of the labels as a file to read from. */
static int open_labels(const struct annotate_settings *s, int *ret_fd, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf line = BUF_INIT(4 * ANNOTATION_LINE_MAX);
	_cleanup_free_ struct annotation *checked = malloc(sizeof(*checked));
	wall_time now = wall_now();
	int fd, r;

	if (!checked)
		return -ENOMEM;
	r = annotate_line_compose(
		s->labels.value, s->labels.count, (uint32_t)s->pid, now, &line, reterr);
	r = r ?: annotate_line_parse(line.data, line.len - 1, now, checked, reterr);
	if (r < 0)
		return r;
	fd = memfd_create("annotation", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, line.data, line.len) != (ssize_t)line.len || lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		return -EIO;
	}
	*ret_fd = fd;
	return 0;
}

static int open_input(const struct annotate_settings *s, int *ret_fd, struct errinfo *reterr)
{
	int fd;

	if (s->labels.count && s->file)
		return errinfo_set_exit(
			reterr, EXIT_USAGE, -EINVAL, "give either --label or --from-file");
	if (s->labels.count)
		return open_labels(s, ret_fd, reterr);
	if (s->pid)
		return errinfo_set_exit(reterr, EXIT_USAGE, -EINVAL,
			"--pid requires --label: each line of JSON has its own pid");
	fd = s->file && strcmp(s->file, "-") != 0 ? open(s->file, O_RDONLY | O_CLOEXEC)
						  : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return errinfo_set(reterr, -errno, "%s: %s", s->file ? s->file : "standard input",
			strerror(errno));
	*ret_fd = fd;
	return 0;
}

static int report(const struct annotate_result *result, bool by_label, struct errinfo *reterr)
{
	const char *why = result->first_error.text;

	if (!result->refused)
		return 0;
	if (by_label)
		return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EINVAL, "refused: %s", why);
	return errinfo_set_exit(reterr, EXIT_BAD_DATA, -EINVAL,
		"%s rejected, %llu stored; line %llu: %.350s",
		TEXT_PLURAL(result->refused, "lines"), (unsigned long long)result->stored,
		(unsigned long long)result->first_line, why);
}

/* `annotate step=12` is what everybody types. */
static int take_arguments(
	struct annotate_settings *s, int argc, char **argv, struct errinfo *reterr)
{
	if (s->labels.count + (size_t)argc > OPTION_STRINGS_MAX)
		return errinfo_set_exit(
			reterr, EXIT_USAGE, -EINVAL, "more than %d labels", OPTION_STRINGS_MAX);
	for (int i = 0; i < argc; i++)
		s->labels.value[s->labels.count++] = argv[i];
	return 0;
}

static int annotate_run(const struct command *c, void *settings, int argc, char **argv)
{
	struct annotate_settings *s = settings;
	_cleanup_fd_ int input = -1, fd = -1;
	struct annotate_result result = {0};
	char path[SOCKET_PATH_MAX];
	struct errinfo e = {0};
	int r = take_arguments(s, argc, argv, &e);

	r = r ?: open_input(s, &input, &e);
	r = r ?: socket_path_find(s->socket, ANNOTATE_SOCKET, path, &e);
	r = r ?: annotate_client_connect(path, &fd, &e);
	r = r ?: annotate_client_send(fd, input, &result, &e);
	r = r ?: report(&result, s->labels.count, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_annotate = {
	.name = "annotate",
	.synopsis = "annotate KEY=VALUE … | --from-file PATH",
	.summary = "Label what a workload is doing, for a running `ingero trace --annotate`",
	.details =
		"Lines of JSON: {\"labels\":{\"phase\":\"eval\",\"step\":\"1200\"},\"pid\":N,"
		"\"ts\":N,\n"
		"\"span_start\":N,\"span_end\":N}, times in Unix nanoseconds; only labels are required.\n"
		"Exits with 0 only if every line was stored. `ingero explain --annotations` "
		"shows them.",
	.options = annotate_options,
	.settings_size = sizeof(struct annotate_settings),
	.max_args = 64,
	.run = annotate_run,
};
