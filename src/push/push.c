/* SPDX-License-Identifier: Apache-2.0 */
/* push.c - words of push.h. */
#include "push/push.h"

#include "base/macros.h"

const char *push_state_id(enum push_state s)
{
	static const char *const ids[] = {
#define X(NAME, id) [PUSH_##NAME] = id,
		PUSH_STATES(X)
#undef X
	};

	return ids[s];
}

static const struct {
	const char *metric;
	bool more_is_better;
} signals[] = {
#define X(NAME, metric, unit, more) [PUSH_SIGNAL_##NAME] = {metric, more},
	PUSH_SIGNALS(X)
#undef X
};

const char *push_signal_metric(enum push_signal s)
{
	return signals[s].metric;
}

bool push_signal_more_is_better(enum push_signal s)
{
	return signals[s].more_is_better;
}

static const char *const doings[] = {
#define X(NAME, id) [PUSH_DOING_##NAME] = id,
	PUSH_DOINGS(X)
#undef X
};

const char *push_doing_id(enum push_doing d)
{
	return doings[d];
}

bool push_state_parse(const char *s, enum push_state *ret)
{
	for (enum push_state i = 0; i < PUSH_STATE_COUNT; i++) {
		if (strcmp(push_state_id(i), s) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

bool push_doing_parse(const char *s, enum push_doing *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(doings); i++) {
		if (strcmp(doings[i], s) == 0) {
			*ret = (enum push_doing)i;
			return true;
		}
	}
	return false;
}
