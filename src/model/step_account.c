/* SPDX-License-Identifier: Apache-2.0 */
#include "model/step_account.h"

#include "base/search.h"

static const char *const line_ids[] = {
#define X(NAME, id, title) [ACCOUNT_##NAME] = id,
	ACCOUNT_LINES_LIST(X)
#undef X
};

static const char *const line_titles[] = {
#define X(NAME, id, title) [ACCOUNT_##NAME] = title,
	ACCOUNT_LINES_LIST(X)
#undef X
};

static const char *const owner_ids[] = {
#define X(NAME, id, title) [OWNER_##NAME] = id,
	ACCOUNT_OWNERS_LIST(X)
#undef X
};

static const char *const origin_ids[] = {
#define X(NAME, id, how) [STEP_BY_##NAME] = id,
	STEP_ORIGINS(X)
#undef X
};

static const char *const origin_texts[] = {
#define X(NAME, id, how) [STEP_BY_##NAME] = how,
	STEP_ORIGINS(X)
#undef X
};

const char *account_line_id(enum account_line l)
{
	return (size_t)l < ARRAY_SIZE(line_ids) ? line_ids[l] : "";
}

const char *account_line_title(enum account_line l)
{
	return (size_t)l < ARRAY_SIZE(line_titles) ? line_titles[l] : "";
}

const char *account_owner_id(enum account_owner o)
{
	return (size_t)o < ARRAY_SIZE(owner_ids) ? owner_ids[o] : "";
}

const char *step_origin_id(enum step_origin o)
{
	return (size_t)o < ARRAY_SIZE(origin_ids) ? origin_ids[o] : "";
}

const char *step_origin_text(enum step_origin o)
{
	return (size_t)o < ARRAY_SIZE(origin_texts) ? origin_texts[o] : "";
}

void step_report_done(struct step_report *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->items[i].bars);
		free(r->items[i].marks);
	}
	free(r->items);
	*r = (struct step_report){0};
}

const char *step_origin_units(enum step_origin o)
{
	if (o == STEP_BY_REQUEST)
		return "requests";
	return o == STEP_BY_TIME ? "windows of time" : "steps";
}

bool step_account_is_slow(const struct step_account *a, int64_t ns)
{
	size_t after = LOWER_BOUND(i, a->mark_count, a->marks[i].start.ns <= ns);
	const struct step_mark *m = after ? &a->marks[after - 1] : NULL;

	return m && m->is_slow && ns < m->start.ns + (int64_t)m->dur_ns;
}
