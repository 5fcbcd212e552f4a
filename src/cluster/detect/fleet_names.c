/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_names.c - the names of fleet.h's lists and of an episode's fields, for those who only tell of episodes. */
#include "cluster/detect/fleet.h"

#include "model/episode_field.h"
#include "wire/names.h"

const char *fleet_problem_id(enum fleet_problem p)
{
	return LIST_IDS(FLEET_PROBLEMS)[p];
}

const char *fleet_notice_id(enum fleet_notice_kind k)
{
	return LIST_IDS(FLEET_NOTICES)[k];
}

const struct fleet_field fleet_fields[] = {
#define X(NAME, form, member, name, meaning)                                                       \
	{name, meaning, FLEET_FORM_##form, offsetof(struct fleet_episode, member)},
	EPISODE_FIELDS(X)
#undef X
		{.name = NULL},
};

/* People say AllReduce, not ncclAllReduce. */
static const char *op_text(uint16_t op, char scratch[32])
{
	const char *name = wire_op_name(SOURCE_NCCL, op, scratch);

	return strncmp(name, "nccl", 4) == 0 ? name + 4 : name;
}

void fleet_field_get(
	const struct fleet_field *f, const struct fleet_episode *e, struct fleet_value *ret)
{
	const char *at = (const char *)e + f->offset;

	*ret = (struct fleet_value){0};
	switch (f->form) {
	case FLEET_FORM_U32: ret->i = *(const uint32_t *)at; break;
	case FLEET_FORM_U64:
		ret->i = (int64_t)MIN(*(const uint64_t *)at, (uint64_t)INT64_MAX);
		break;
	case FLEET_FORM_TIME: ret->i = *(const int64_t *)at; break;
	case FLEET_FORM_REAL:
		ret->d = *(const double *)at;
		ret->is_real = true;
		break;
	case FLEET_FORM_TEXT: ret->text = at; break;
	case FLEET_FORM_OP: ret->text = e->comm ? op_text(e->op, ret->scratch) : ""; break;
	case FLEET_FORM_COMM:
		snprintf(ret->scratch, sizeof(ret->scratch), "%016" PRIx64, e->comm);
		ret->text = e->comm ? ret->scratch : "";
		break;
	}
	ret->known = ret->text ? ret->text[0] != 0 : ret->is_real ? ret->d > 0 : ret->i != 0;
}
