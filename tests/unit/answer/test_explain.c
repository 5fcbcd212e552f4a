/* SPDX-License-Identifier: Apache-2.0 */
/* test_explain.c - from loaded content to what stands on standard output, which is caught in a file
 * here. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>

#include "answer/explain.h"
#include "cli/explain.h"
#include "scene.h"
#include "stack_fixture.h"

static char caught[1 << 18];

/* Runs @print with standard output going to a file, and keeps what it wrote. */
static void catch_output(
	int (*print)(const struct nodedb_content *, struct explain_style, struct errinfo *),
	const struct nodedb_content *c, struct explain_style style)
{
	FILE *f = tmpfile();
	struct errinfo e = {0};
	int real, r;
	size_t n;

	assert_non_null(f);
	fflush(stdout);
	real = dup(STDOUT_FILENO);
	assert_true(dup2(fileno(f), STDOUT_FILENO) >= 0);
	r = print(c, style, &e);
	fflush(stdout);
	assert_true(dup2(real, STDOUT_FILENO) >= 0);
	close(real);
	rewind(f);
	n = fread(caught, 1, sizeof(caught) - 1, f);
	caught[n] = 0;
	fclose(f);
	assert_int_equal(r, 0);
	assert_int_equal(e.text[0], 0);
}

static void assert_caught(const char *part)
{
	if (!strstr(caught, part))
		fail_msg("\"%s\" is not in:\n%s", part, caught);
}

static struct nodedb_content content_of(struct scene *s)
{
	struct recording rec;

	scene_hog(s);
	scene_aggregate(s);
	rec = scene_recording(s);
	return (struct nodedb_content){.events = s->events,
		.event_count = s->event_count,
		.aggregates = s->aggregates,
		.aggregate_count = rec.aggregate_count,
		.first_ns = SCENE_T0_NS,
		.last_ns = SCENE_T0_NS + 1000000000,
		.total_calls = 800,
		.skipped_rows = 3,
		.older_events = 4000,
		.node = "gpu-7"};
}

static void incidents_as_text(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct nodedb_content c = content_of(&s);

	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("INCIDENTS - 1 incident (1 HIGH)\n");
	assert_caught("  Node gpu-7: ");
	assert_caught("800 calls; losses unknown; 3 damaged rows omitted; 4,000 older events "
		      "omitted\n");
	assert_caught("sim-cpu-hog (pid 8821)");
	assert_null(strchr(caught, '\033'));
	c.thinned_rows = 7000;
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("800 calls; 7,000 rows of ordinary calls aggregated; losses unknown;");
	catch_output(explain_content, &c, (struct explain_style){.colour = true});
	assert_caught("\033[1;31m[HIGH]");
	c.has_books = true;
	c.books.source[SOURCE_CUDA].hits = 800;
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("none of 800 events lost");
}

/* On a terminal no line but an unbreakable one is longer than it is wide. */
static void text_fits_the_terminal(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct nodedb_content c = content_of(&s);
	size_t longest = 0;

	catch_output(explain_content, &c, (struct explain_style){.columns = 80});
	for (const char *line = strstr(caught, "\n["); *line; line += strcspn(line, "\n")) {
		line++;
		longest = MAX(longest, strcspn(line, "\n"));
	}
	assert_in_range(longest, 60, 84); /* µ takes two bytes */
	catch_output(explain_content, &c, (struct explain_style){0});
	for (const char *line = strstr(caught, "\n["); *line; line += strcspn(line, "\n")) {
		line++;
		longest = MAX(longest, strcspn(line, "\n"));
	}
	assert_in_range(longest, 85, 400); /* control: elsewhere a summary stays one line */
}

static void incidents_as_json(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct nodedb_content c = content_of(&s);

	catch_output(explain_content, &c, (struct explain_style){.json = true, .colour = true});
	assert_int_equal(caught[0], '[');
	assert_caught("\"culprit\": \"sim-cpu-hog\"");
	assert_null(strchr(caught, '\033'));
}

/* Of calls that fail at one place. */
static void stacks_if_asked_for(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct nodedb_content c;

	for (int i = 0; i < 40; i++)
		scene_fail(&s, VICTIM, CUDA_MALLOC, 1000 * i, 2);
	for (size_t i = 0; i < s.event_count; i++)
		s.events[i].stack_hash = 10;
	c = (struct nodedb_content){.events = s.events,
		.event_count = s.event_count,
		.total_calls = s.event_count,
		.stacks = three_stacks,
		.other_stacks = 9};
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("train.py:142");
	assert_null(strstr(caught, "STACKS"));
	assert_null(strstr(caught, "of little time")); /* of no matter for the one line */
	catch_output(explain_content, &c, (struct explain_style){.stacks = true});
	assert_caught("; 9 call stacks with little time omitted");
	assert_caught("stack 10\n    cudaStream");
	catch_output(explain_content, &c, (struct explain_style){.stacks = true, .json = true});
	assert_int_equal(caught[0], '{');
	assert_caught("\"py_func\": \"forward\"");
}

static void stored_verdicts(void **state)
{
	struct incident_row rows[] = {{.id = "a",
					      .detected_ns = (int64_t)1774099490 * 1000000000,
					      .severity = "HIGH",
					      .summary = "slow \x1b[2J",
					      .root_cause = "the disk",
					      .timeline = "IO\twaits\x1b[2J\t1500\nCUDA\tslow\t",
					      .fixes = "buy one\nor two"},
		{.id = "b", .severity = "LOW", .summary = "s", .root_cause = "r"}};
	struct nodedb_content c = {.chains = rows, .chain_count = 2};

	catch_output(explain_chains, &c, (struct explain_style){0});
	assert_caught("2 stored incidents (1 HIGH, 1 LOW)\n");
	assert_caught("  [HIGH] slow ");
	assert_caught("\n    Detected: 2026-03-2");
	assert_caught("    Root cause: the disk\n    Fix: buy one; or two\n");
	assert_caught("    Timeline:\n      [IO]  waits\\x1b[2J (1.5ms)\n      [CUDA]  slow\n");
	assert_null(strchr(caught, '\x1b'));
	catch_output(explain_chains, &c, (struct explain_style){.json = true});
	assert_caught("\"id\": \"b\"");
	c.chain_count = 1;
	catch_output(explain_chains, &c, (struct explain_style){0});
	assert_caught("1 stored incident (1 HIGH)\n");
}

/* The file's order is that of time. */
static void worst_verdicts_first(void **state)
{
	struct incident_row rows[] = {{.id = "a", .detected_ns = 1, .severity = "odd"},
		{.id = "b", .detected_ns = 2, .severity = "MEDIUM"},
		{.id = "c", .detected_ns = 4, .severity = "HIGH"},
		{.id = "d", .detected_ns = 3, .severity = "HIGH"}};
	struct nodedb_content c = {.chains = rows, .chain_count = 4, .node = "gpu-7\x1b"};
	char order[5] = "";

	explain_sort_chains(&c);
	for (int i = 0; i < 4; i++)
		order[i] = rows[i].id[0];
	assert_string_equal(order, "dcba");
	catch_output(explain_chains, &c, (struct explain_style){0});
	assert_caught("4 stored incidents of node gpu-7\\x1b (2 HIGH, 1 MEDIUM)\n");
}

static void stored_verdicts_where_nothing_is_found(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct incident_row rows[2] = {{.id = "a", .severity = "HIGH"}};
	struct nodedb_content c;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 400, 50000, 1000);
	c = (struct nodedb_content){.events = s.events,
		.event_count = s.event_count,
		.total_calls = s.event_count,
		.chains = rows};
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("Cannot tell whether time was lost\n");
	assert_null(strstr(caught, "No incidents"));
	assert_null(strstr(caught, "--chains"));
	c.chain_count = 1;
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("\n  1 incident was stored while recording: --chains shows it\n");
	c.chain_count = 2;
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("\n  2 incidents were stored while recording: --chains shows them\n");
}

/* What was said while recording and is not in the answer is over, or was not confirmed: its line says until when. */
static void what_was_said_while_recording(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct incident_row rows[2] = {{.id = "a:goodput-7-1-process",
					       .severity = "HIGH",
					       .summary = "Waiting for xz",
					       .problem = "goodput",
					       .pid = 7,
					       .last_ns = SCENE_T0_NS},
		{.id = "a:pcie-7-1-copy", .severity = "LOW", .summary = "Copies", .last_ns = 1}};
	struct nodedb_content c;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 400, 50000, 1000);
	c = (struct nodedb_content){.events = s.events,
		.event_count = s.event_count,
		.total_calls = s.event_count,
		.chains = rows,
		.chain_count = 2};
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("\n  Earlier: [HIGH] Waiting for xz, until ");
	assert_null(strstr(caught, "Copies"));
	assert_null(strstr(caught, "stored while recording"));
}

/* Rank 1 runs on node b and comes 5 ms late each time; rank 0 waits for it on node a. */
static void a_rank_of_another_node(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	static struct collective_row rows[800];
	struct nodedb_content c;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 400, 10000, 1000);
	for (int i = 0; i < 800; i++) {
		int rank = i % 2;

		rows[i] = (struct collective_row){.node = "a",
			.start.ns = SCENE_T0_NS + (i / 2 * 10 + rank * 5) * (int64_t)NS_PER_MS,
			.dur_ns = 20000,
			.pid = 1000 + (uint32_t)rank,
			.tid = 1000 + (uint32_t)rank,
			.op = NCCL_ALL_REDUCE,
			.c = {.comm_hash = 0xabc,
				.seq = (uint64_t)i / 2,
				.rank = rank,
				.nranks = 2,
				.root = -1,
				.peer = -1,
				.wait_ns = (rank ? 100 : 5100) * (int64_t)NS_PER_US}};
		rows[i].node[0] += (char)rank;
	}
	c = (struct nodedb_content){.events = s.events,
		.event_count = s.event_count,
		.collectives = rows,
		.collective_count = ARRAY_SIZE(rows),
		.node = "a"};
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("No incidents on this node\n");
	assert_caught("\n  Waited for rank 1 of node b, ");
	assert_null(strstr(caught, "No problems found"));
	c.node[0] = 'b';
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("rank 1 (pid 1001 on b) keeps 1 rank waiting");
	assert_null(strstr(caught, "Waited for"));
	c.node[0] = 'c'; /* has no rank in it */
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("Cannot tell whether time was lost");
	assert_null(strstr(caught, "Waited for"));
}

static void calls_and_host_events(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct nodedb_content c;

	scene_calm(&s, CUDA_STREAM_SYNC, 0, 30, 50000, 1000);
	for (int i = 0; i < 7; i++)
		scene_stay(&s, VICTIM, 2000000 + i * 1000, 10, 10, 0, 0, "");
	c = (struct nodedb_content){
		.events = s.events, .event_count = s.event_count, .total_calls = s.event_count};
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("37 events analysed, 30 calls and 7 host events;");
	c.events += 30;
	c.event_count = c.total_calls = 7;
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("7 events analysed, no calls, 7 host events;");
	c.total_calls = 5000; /* by sums that are not loaded */
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("7 events analysed, 5,000 calls and host events;");
	scene_aggregate(&s);
	s.aggregates[0].source = SOURCE_HOST;
	c.aggregates = s.aggregates;
	c.aggregate_count = s.aggregate_count;
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("7 events analysed, 4,970 calls and 30 host events;");
}

/* A clock that is set back makes a thread do two things at once: what is left out is said. */
static void a_clock_that_was_set_back(void **state)
{
	enum { ROWS = 200 };
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct nodedb_content c = content_of(&s);
	struct ledger_row rows[ROWS];

	for (int i = 0; i < ROWS; i++)
		rows[i] = (struct ledger_row){.start.ns = SCENE_T0_NS + i * 20 * (int64_t)NS_PER_MS,
			.dur_ns = 20 * NS_PER_MS,
			.ns[LEDGER_RUN] = 20 * NS_PER_MS,
			.pid = 7,
			.tid = 7};
	c.ledger = rows;
	c.ledger_count = ROWS;
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_null(strstr(caught, "overlapping")); /* control */
	for (int i = ROWS / 2; i < ROWS; i++)
		rows[i].start.ns -= (int64_t)(NS_PER_S - 11 * NS_PER_MS);
	rows[ROWS - 1].start.ns = -1; /* and one that is damaged */
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught(
		"; 49 ledger rows omitted, overlapping others of the same thread (was the clock "
		"set back?)");
	assert_caught("; 4 damaged rows omitted;");
}

/* Two processes that had one PID in turn are taken for one: it is said. */
static void a_pid_that_was_reused(void **state)
{
	_cleanup_(scene_done) struct scene s = {.seed = 1};
	struct nodedb_content c = content_of(&s);
	struct event exits;
	size_t half = s.event_count / 2;

	assert_true(half > 2);
	exits = s.events[half];
	exits.source = SOURCE_HOST;
	exits.op = HOST_PROCESS_EXIT;
	s.events[s.event_count - 1] = exits; /* at the end it is no news */
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_null(strstr(caught, "had the PID"));
	s.events[half] = exits;
	catch_output(explain_content, &c, (struct explain_style){0});
	assert_caught("; 1 process not examined separately: a later one had the PID");
}

static void a_file_is_no_terminal(void **state)
{
	struct explain_style style;
	int fd = open("/dev/null", O_WRONLY);

	assert_true(fd >= 0);
	style = explain_style_detect(fd);
	assert_false(style.colour);
	assert_int_equal(style.columns, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(incidents_as_text),
		cmocka_unit_test(text_fits_the_terminal),
		cmocka_unit_test(incidents_as_json),
		cmocka_unit_test(stacks_if_asked_for),
		cmocka_unit_test(stored_verdicts),
		cmocka_unit_test(worst_verdicts_first),
		cmocka_unit_test(stored_verdicts_where_nothing_is_found),
		cmocka_unit_test(what_was_said_while_recording),
		cmocka_unit_test(a_rank_of_another_node),
		cmocka_unit_test(calls_and_host_events),
		cmocka_unit_test(a_clock_that_was_set_back),
		cmocka_unit_test(a_pid_that_was_reused),
		cmocka_unit_test(a_file_is_no_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
