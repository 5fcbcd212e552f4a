/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_names.c - the names of fleet.h's lists, for those who only tell of episodes. */
#include "cluster/detect/fleet.h"

const char *fleet_problem_id(enum fleet_problem p)
{
	static const char *const ids[] = {
#define X(NAME, id) [FLEET_##NAME] = id,
		FLEET_PROBLEMS(X)
#undef X
	};

	return ids[p];
}

const char *fleet_notice_id(enum fleet_notice_kind k)
{
	static const char *const ids[] = {
#define X(NAME, id) [FLEET_NOTICE_##NAME] = id,
		FLEET_NOTICES(X)
#undef X
	};

	return ids[k];
}
