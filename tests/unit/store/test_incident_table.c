/* SPDX-License-Identifier: Apache-2.0 */
/* test_incident_table.c - the table of incidents has what recordings have had since 0.11, in that order; rows
 * of before a column was added, and files without it, read on. */
#include "store_fixture.h"

#include "store/schema/incident_table.h"
#include "incident_fixture.h"
#include "model/problem.h"

/* Positions are what `SELECT *` and unions of recordings go by. */
static void columns_stay_where_they_were(void **state)
{
	static const char first[] =
		"id,node,first_seen,last_seen,detected_at,resolved_at,count,calls,severity,pid,"
		"comm,source,op,baseline_ns,p50_ns,p99_ns,slow_p50_ns,tail_ratio,excess_ns,"
		"explained,confidence,completeness,summary,root_cause,causes,evidence,evidence_sql";
	struct scratch *s = *state;
	char *text;

	scratch_close(scratch_open(s->path));
	text = scratch_text(
		s->path, "SELECT group_concat(name) FROM pragma_table_info('incidents')");
	assert_int_equal(strncmp(text, first, strlen(first)), 0);
	free(text);
	assert_int_equal(
		scratch_int(s->path,
			"SELECT \"notnull\" FROM pragma_table_info('incidents') WHERE name ="
			" 'pid'"),
		1);
	assert_int_equal(
		scratch_int(s->path,
			"SELECT count(*) FROM sqlite_schema WHERE name = 'idx_incidents_last_seen'"),
		1);
}

/* Every column is in the file's own description. */
static void columns_are_described(void **state)
{
	struct scratch *s = *state;

	scratch_close(scratch_open(s->path));
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM pragma_table_info('incidents') c"
				     " WHERE NOT EXISTS (SELECT 1 FROM schema_info WHERE key ="
				     " 'incidents_note' AND value LIKE '%; ' || c.name || ': _%')"),
		0);
	assert_true(scratch_int(s->path,
			    "SELECT length(value) FROM schema_info WHERE key = 'incidents_note'") >
		    1000);
}

static void put(const char *path, const struct incident *i, int64_t detected_ns)
{
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(path);

	assert_int_equal(nodedb_put_incident(db, i, (wall_time){detected_ns}, &err), 0);
	scratch_close(db);
}

/* What a field's column holds, as text. */
static char *stored(const char *path, const char *column)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT coalesce(CAST(%s AS TEXT), 'NULL') FROM incidents",
		column);
	return scratch_text(path, sql);
}

static void every_field_has_its_column(void **state)
{
	struct scratch *s = *state;
	struct incident i;
	int compared = 0;

	incident_fill(&i);
	put(s->path, &i, 300);
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++) {
		const struct incident_field *f = &incident_fields[n];
		_cleanup_free_ char *text = f->column ? stored(s->path, f->column) : NULL;
		struct incident_value v;

		incident_field_get(f, &i, false, &v);
		if (!text || v.type == INCIDENT_NOTHING || n == INCIDENT_F_ID)
			continue;
		if (v.type == INCIDENT_TEXT
				? strcmp(text, v.s) != 0
				: atof(text) != (v.type == INCIDENT_REAL ? v.d : (double)v.i))
			fail_msg("%s is %s", f->column, text);
		compared++;
	}
	assert_true(compared >= 21);
}

/* Who reads stored verdicts is told until when they held, of whom and where. */
static void read_with_the_published_row(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};
	struct incident i;

	incident_fill(&i);
	put(s->path, &i, 300);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.chain_count, 1);
	assert_int_equal(c.chains[0].last_ns, i.last.ns);
	assert_int_equal(c.chains[0].pid, i.pid);
	assert_string_equal(c.chains[0].place, i.place);
	assert_string_equal(c.chains[0].problem, problem_row(i.problem)->id);
	nodedb_content_done(&c);
}

/* Found again: begins and ends widen, sums grow, the rest is as it is now, and who it is stays. */
static void what_a_later_finding_renews(void **state)
{
	struct scratch *s = *state;
	struct incident i = {.id = "x",
		.pid = 7,
		.first = {100},
		.last = {200},
		.calls = 50,
		.excess_ns = 9,
		.confidence = 0.9,
		.severity = SEVERITY_HIGH,
		.source = 1,
		.op = 3};
	char *text;

	put(s->path, &i, 300);
	i.first.ns = 50;
	i.last.ns = 150;
	i.calls = 40;
	i.excess_ns = 5;
	i.confidence = 0.5;
	i.severity = SEVERITY_LOW;
	i.pid = 8;
	put(s->path, &i, 400);
	text = scratch_text(s->path,
		"SELECT first_seen || '|' || last_seen || '|' || detected_at || '|' || calls"
		" || '|' || excess_ns || '|' || confidence || '|' || severity || '|' || pid"
		" FROM incidents");
	assert_string_equal(text, "50|200|300|50|9|0.5|LOW|7");
	free(text);
}

/* A column that is gone is one that an older version did not have yet. */
static void a_file_without_a_column(void **state)
{
	struct scratch *s = *state;
	struct incident i = {.id = "x", .confidence = 0.5};

	put(s->path, &i, 300);
	scratch_sql(s->path,
		"ALTER TABLE incidents DROP COLUMN confidence;"
		"UPDATE schema_info SET value = 'of before' WHERE key = 'incidents_note'");
	snprintf(i.id, sizeof(i.id), "y");
	put(s->path, &i, 400);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM incidents WHERE confidence = 0"), 1);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM incidents WHERE confidence = 0.5"), 1);
	assert_int_equal(
		scratch_int(s->path,
			"SELECT count(*) FROM schema_info WHERE value LIKE '%; confidence: %'"),
		1);
}

/* A recording of before has rows that do not know it. */
static void the_problem(void **state)
{
	struct scratch *s = *state;
	struct incident i = {.id = "x", .problem = PROBLEM_PCIE};

	put(s->path, &i, 300);
	scratch_sql(s->path, "ALTER TABLE incidents DROP COLUMN problem");
	snprintf(i.id, sizeof(i.id), "y");
	put(s->path, &i, 400);
	assert_int_equal(
		scratch_int(s->path,
			"SELECT count(*) FROM incidents WHERE id = 'n1:y' AND problem = 'pcie'"),
		1);
	assert_int_equal(
		scratch_int(s->path,
			"SELECT count(*) FROM incidents WHERE id = 'n1:x' AND problem IS NULL"),
		1);
}

static void the_advice(void **state)
{
	struct scratch *s = *state;
	struct incident i = {.id = "x", .fixes = {"pin \"it\"", "nice it"}, .fix_count = 2};
	char *text;

	put(s->path, &i, 300);
	text = stored(s->path, "advice");
	assert_string_equal(text, "[\"pin \\\"it\\\"\",\"nice it\"]");
	free(text);
	i.fix_count = 0;
	put(s->path, &i, 400);
	text = stored(s->path, "advice");
	assert_string_equal(text, "[]");
	free(text);
	scratch_sql(s->path, "ALTER TABLE incidents DROP COLUMN advice");
	scratch_close(scratch_open(s->path));
	text = stored(s->path, "advice");
	assert_string_equal(text, ""); /* the row is of before the column */
	free(text);
}

/* What a fix is worth: NULL where it is not known, so that an average is one of what is. */
static void the_worth_of_a_fix(void **state)
{
	struct scratch *s = *state;
	struct incident i = {.id = "x",
		.unit_ns = 174,
		.fixed_ns = 46,
		.fixed_least_ns = 44,
		.fixed_most_ns = 61};

	put(s->path, &i, 300);
	i = (struct incident){.id = "y"};
	put(s->path, &i, 300);
	assert_int_equal(
		scratch_int(s->path,
			"SELECT count(*) FROM incidents WHERE id = 'n1:x' AND unit_ns = 174 AND"
			" fixed_ns = 46 AND fixed_least_ns = 44 AND fixed_most_ns = 61"),
		1);
	assert_int_equal(scratch_int(s->path,
				 "SELECT CAST(avg(unit_ns - fixed_ns) AS INTEGER) FROM incidents"),
		128);
}

/* The name of the largest cause's process, to be grouped by; NULL where it is nobody's. */
static void who_it_was(void **state)
{
	struct scratch *s = *state;
	struct incident i = {
		.id = "x", .cause_count = 2, .causes = {{.culprit = "gzip"}, {.culprit = "cc1"}}};

	put(s->path, &i, 300);
	i = (struct incident){.id = "y"};
	put(s->path, &i, 300);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM incidents WHERE id = 'n1:x' AND"
					      " culprit = 'gzip'"),
		1);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) FROM incidents WHERE culprit IS NULL"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(columns_stay_where_they_were),
		TEST(columns_are_described),
		TEST(every_field_has_its_column),
		TEST(read_with_the_published_row),
		TEST(what_a_later_finding_renews),
		TEST(a_file_without_a_column),
		TEST(the_problem),
		TEST(the_advice),
		TEST(the_worth_of_a_fix),
		TEST(who_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
