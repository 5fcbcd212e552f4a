/* SPDX-License-Identifier: Apache-2.0 */
/* alert_file.c - see alert_file.h. */
#include "notify/alert/alert_file.h"

#include <errno.h>
#include <string.h>

void alert_file_free(struct alert_file *f)
{
	alert_values_done(&f->values);
	free(f);
}

static int take_severity(struct alert_file *f, const struct yaml_value *v)
{
	const char *word = "";
	int r = yaml_text(f->values.tree, v, &word, f->values.reterr);

	for (int s = SEVERITY_LOW; r == 0 && s < SEVERITY_COUNT; s++)
		if (!strcmp(word, severity_name((enum severity)s))) {
			f->least = (enum severity)s;
			return 0;
		}
	return r < 0 ? r
		     : yaml_fail(f->values.tree, v, f->values.reterr,
			       "min_severity must be LOW, MEDIUM, HIGH or CRITICAL");
}

static int take_file(struct alert_file *f)
{
	const struct yaml_value *root = yaml_tree_root(f->values.tree);
	struct errinfo *reterr = f->values.reterr;
	int r = 0;

	if (root->kind != YAML_MAP)
		return yaml_fail(f->values.tree, root, reterr, "expected `alerts:` here");
	for (const struct yaml_value *v = root->first; r == 0 && v; v = v->next)
		if (!strcmp(v->key, "alerts"))
			r = alert_config_take(&f->alerts, v);
		else if (!strcmp(v->key, "min_severity"))
			r = take_severity(f, v);
		else
			r = yaml_fail(f->values.tree, v, reterr,
				"unknown key '%.60s': expected alerts or min_severity", v->key);
	if (r == 0 && !f->alerts.count)
		r = yaml_fail(f->values.tree, root, reterr,
			"nobody is told: list receivers below `alerts:`");
	return r;
}

int alert_file_read(const char *path, const char *text, size_t len, struct alert_file **ret,
	struct errinfo *reterr)
{
	_cleanup_(alert_file_freep) struct alert_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->alerts.values = &f->values;
	f->least = SEVERITY_MEDIUM;
	r = alert_values_read(&f->values, path, text, len, reterr);
	if (r == 0)
		r = take_file(f);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	f->values.reterr = NULL;
	*ret = TAKE(f);
	return 0;
}
