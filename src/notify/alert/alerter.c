/* SPDX-License-Identifier: Apache-2.0 */
/* alerter.c - see alerter.h. `open` belongs to the tracing thread, everything else but `on_way` to the
 * loop's; notices come to it by loop_call(). */
#include "notify/alert/alerter.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/hash.h"
#include "base/log.h"
#include "model/problem.h"

#define ALERTER_FLUSH_NS (3 * NS_PER_S) /* at the end, for what is not told yet */
#define ALERTER_ON_WAY   256            /* notices between the threads */

void alert_file_free(struct alert_file *f)
{
	alert_values_done(&f->values);
	free(f);
}

static int take_severity(struct alert_file *f, const struct yaml_value *v)
{
	const char *word = "";
	int r = yaml_text(v, &word);

	for (int s = SEVERITY_LOW; r == 0 && s < SEVERITY_COUNT; s++)
		if (!strcmp(word, severity_name((enum severity)s))) {
			f->least = (enum severity)s;
			return 0;
		}
	return r < 0 ? r : yaml_fail(v, "min_severity must be LOW, MEDIUM, HIGH or CRITICAL");
}

static int take_file(struct alert_file *f)
{
	const struct yaml_value *root = yaml_tree_root(f->values.tree);
	int r = 0;

	if (root->kind != YAML_MAP)
		return yaml_fail(root, "expected `alerts:` here");
	for (const struct yaml_value *v = root->first; r == 0 && v; v = v->next)
		if (!strcmp(v->key, "alerts"))
			r = alert_config_take(&f->alerts, v);
		else if (!strcmp(v->key, "min_severity"))
			r = take_severity(f, v);
		else
			r = yaml_fail(
				v, "unknown key '%.60s': expected alerts or min_severity", v->key);
	if (r == 0 && !f->alerts.count)
		r = yaml_fail(root, "no receiver: list them below `alerts:`");
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
	r = r ?: take_file(f);
	if (r == -ENOMEM)
		return errinfo_set(reterr, r, "not enough memory to read %s", path);
	if (r < 0)
		return r;
	*ret = TAKE(f);
	return 0;
}

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

uint64_t incident_alert_id(const struct incident *i)
{
	return hash_bytes(i->id, strlen(i->id));
}

void incident_alert(const struct incident *i, const char *node, struct alert_matter *ret)
{
	static const char *const severities[] = {[SEVERITY_LOW] = "info",
		[SEVERITY_MEDIUM] = "warning",
		[SEVERITY_HIGH] = "error",
		[SEVERITY_CRITICAL] = "critical"};
	const char *problem = problem_row((enum problem)i->problem)->id;

	*ret = (struct alert_matter){.id = incident_alert_id(i),
		.name = "IngeroIncident",
		.class = problem,
		.problem = problem,
		.severity = severities[i->severity],
		.rank = i->culprit_rank,
		.stage = -1,
		.pid = i->pid,
		.confidence = i->confidence,
		.since_ns = i->first.ns,
		.until_ns = i->resolved.ns};
	snprintf(ret->event, sizeof(ret->event), "%s@%.*s", i->id,
		(int)(sizeof(ret->event) - sizeof(i->id) - 1), node);
	COPY(ret->node, node);
	COPY(ret->process, i->comm);
	COPY(ret->text, i->summary);
	COPY(ret->cause, i->root_cause);
	if (i->fix_count)
		COPY(ret->fix, i->fixes[0]);
}

struct alerter {
	pthread_t thread;
	struct loop *loop;
	struct alerts *alerts;
	struct loop_timer *patience;
	void (*begin)(void);
	enum severity least;
	const char *node;
	struct idmap open; /* id -> struct alert_matter, as it was last told */
	atomic_uint on_way;
	uint64_t notices, lost; /* of the tracing thread */
};

struct handover {
	struct alerter *alerter;
	bool is_last;
	struct alert_notice notice;
};

/* ---- the loop's thread ---- */

static void take(void *arg)
{
	struct handover *h = arg;
	struct alerter *a = h->alerter;

	if (h->is_last) {
		loop_timer_set(a->patience, ALERTER_FLUSH_NS);
		alerts_finish(a->alerts, loop_stop, a->loop);
	} else {
		alerts_give(a->alerts, &h->notice);
	}
	atomic_fetch_sub(&a->on_way, 1);
	free(h);
}

static void *thread_main(void *arg)
{
	struct alerter *a = arg;

	(void)pthread_setname_np(pthread_self(), "ingero-alerts");
	if (a->begin)
		a->begin();
	loop_run(a->loop);
	return NULL;
}

/* ---- the tracing thread ---- */

static int hand_over(struct alerter *a, const struct alert_notice *n)
{
	/* An incident that is never resolved is worse than one that is not told. */
	unsigned room = ALERTER_ON_WAY + (n && n->kind == ALERT_ENDED ? ALERTER_OPEN_MAX : 0);
	struct handover *h = NULL;
	int r = -ENOBUFS;

	if (!n || atomic_load(&a->on_way) < room) {
		h = malloc(sizeof(*h));
		r = h ? 0 : -ENOMEM;
	}
	if (h) {
		h->alerter = a;
		h->is_last = !n;
		if (n)
			h->notice = *n;
		atomic_fetch_add(&a->on_way, 1);
		r = loop_call(a->loop, take, h);
		if (r < 0)
			atomic_fetch_sub(&a->on_way, 1);
	}
	if (r < 0) {
		free(h);
		a->lost += n != NULL;
	}
	a->notices += n && r == 0;
	return r;
}

/* Which notice @now makes of what was last told (@before, NULL: nothing); false: none. */
static bool kind_of(const struct alert_matter *before, const struct alert_matter *now,
	bool is_bad_enough, enum alert_kind *ret)
{
	*ret = now->until_ns ? ALERT_ENDED : before ? ALERT_CHANGED : ALERT_BEGAN;
	if (!before)
		return *ret == ALERT_BEGAN && is_bad_enough;
	return *ret == ALERT_ENDED || before->severity != now->severity ||
	       strcmp(before->cause, now->cause) != 0;
}

static bool remember(struct alerter *a, const struct alert_matter *m)
{
	struct alert_matter *known = idmap_get(&a->open, m->id);

	if (!known) {
		known = malloc(sizeof(*known));
		if (!known || idmap_put(&a->open, m->id, known) < 0) {
			free(known);
			return false;
		}
	}
	*known = *m;
	return true;
}

void alerter_tell(struct alerter *a, const struct incident *i)
{
	struct alert_notice n;

	incident_alert(i, a->node, &n.matter);
	if (!kind_of(idmap_get(&a->open, n.matter.id), &n.matter, i->severity >= a->least, &n.kind))
		return;
	if (n.kind == ALERT_ENDED) {
		free(idmap_remove(&a->open, n.matter.id));
		(void)hand_over(a, &n);
	} else if (!remember(a, &n.matter)) {
		a->lost++; /* it could never be resolved */
	} else if (hand_over(a, &n) < 0 && n.kind == ALERT_BEGAN) {
		free(idmap_remove(&a->open, n.matter.id)); /* the next look begins it */
	}
}

/* ---- life ---- */

static void alerter_free(struct alerter *a)
{
	struct alert_matter *m;
	size_t cursor = 0;
	uint64_t id;

	while ((m = idmap_next(&a->open, &cursor, &id)))
		free(m);
	idmap_done(&a->open);
	alerts_freep(&a->alerts);
	loop_timer_freep(&a->patience);
	loop_freep(&a->loop);
	free(a);
}
DEFINE_CLEANUP(struct alerter *, alerter_free)

int alerter_start(const struct alerter_settings *s, struct alerter **ret, struct errinfo *reterr)
{
	_cleanup_(alerter_freep) struct alerter *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->open = IDMAP_INIT(ALERTER_OPEN_MAX);
	a->least = s->file->least;
	a->node = s->node;
	a->begin = s->begin;
	r = loop_new(&a->loop);
	r = r
		    ?: alerts_new(a->loop, s->file->alerts.receivers, s->file->alerts.count,
			       &a->alerts, reterr);
	r = r ?: loop_timer_new(a->loop, loop_stop, a->loop, &a->patience);
	if (r < 0)
		return r;
	r = -pthread_create(&a->thread, NULL, thread_main, a);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot start the alerts thread: %s", strerror(-r));
	*ret = TAKE(a);
	return 0;
}

struct alerter_stats alerter_stop(struct alerter *a)
{
	struct alerter_stats all = {0};
	struct alert_stats s;
	struct alert_notice n = {.kind = ALERT_ENDED};
	struct alert_matter *m;
	size_t cursor = 0;
	uint64_t id;

	while ((m = idmap_next(&a->open, &cursor, &id))) {
		n.matter = *m;
		n.matter.until_ns = wall_now().ns;
		snprintf(n.matter.text, sizeof(n.matter.text),
			"Tracing ended while it lasted: %.*s", (int)sizeof(n.matter.text) - 64,
			m->text);
		(void)hand_over(a, &n);
	}
	if (hand_over(a, NULL) < 0)
		loop_stop(a->loop);
	pthread_join(a->thread, NULL);
	all.notices = a->notices;
	all.lost = a->lost;
	for (size_t i = 0; alerts_stats(a->alerts, i, &s); i++) {
		all.sent += s.sent;
		all.lost += s.lost;
		all.refused += s.refused;
		all.waiting += s.waiting;
	}
	alerter_free(a);
	return all;
}
