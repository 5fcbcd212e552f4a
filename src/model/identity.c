/* SPDX-License-Identifier: Apache-2.0 */
#include "model/identity.h"

struct words {
	const char *at, *end;
	char gap; /* between them: NUL, or a blank where there is no NUL */
};

struct word {
	const char *text;
	size_t len;
};

static bool word_next(struct words *w, struct word *ret)
{
	while (w->at < w->end && *w->at == w->gap)
		w->at++;
	ret->text = w->at;
	while (w->at < w->end && *w->at != w->gap)
		w->at++;
	ret->len = (size_t)(w->at - ret->text);
	return ret->len > 0;
}

static struct word base_of(struct word w)
{
	const char *slash = memrchr(w.text, '/', w.len);

	if (slash)
		w = (struct word){slash + 1, w.len - (size_t)(slash + 1 - w.text)};
	return w;
}

/* X(program, options that are followed by a value, option that names a module, option with a program as text): of
 * "python3.12" the name is what comes before the version. */
#define INTERPRETERS(X)                                                                            \
	X("python", "WXQ", 'm', 'c')                                                               \
	X("pypy", "WX", 'm', 'c')                                                                  \
	X("bash", "oO", 0, 'c')                                                                    \
	X("dash", "o", 0, 'c')                                                                     \
	X("sh", "o", 0, 'c')                                                                       \
	X("perl", "I", 0, 'e')                                                                     \
	X("ruby", "Ir", 0, 'e')                                                                    \
	X("node", "r", 0, 'e')                                                                     \
	X("julia", "JLpt", 0, 'e')

static const struct interpreter {
	const char *name, *valued;
	char module, text;
} interpreters[] = {
#define X(...) {__VA_ARGS__},
	INTERPRETERS(X)
#undef X
		{NULL, NULL, 0, 0}};

static const struct interpreter *interpreter_of(struct word program)
{
	struct word base = base_of(program);
	size_t len = base.len;

	while (len && (strchr("0123456789.", base.text[len - 1])))
		len--;
	return FIND_ROW(
		i, interpreters, name, len == strlen(i->name) && !memcmp(base.text, i->name, len));
}

bool script_is_runner(const char *comm)
{
	/* node's, and what PyTorch calls each process that imports it */
	static const char *const given[] = {"MainThread", "pt_main_thread"};

	return EXISTS(i, ARRAY_SIZE(given), !strcmp(comm, given[i])) ||
	       interpreter_of((struct word){comm, strlen(comm)});
}

/* A program given as text has no name; one is known by how it begins, "from multiprocessing.spawn import …": with it
 * multiprocessing starts its workers. Of other texts nothing is kept. */
static void name_of_text(struct word text, struct words *rest, char out[SCRIPT_MAX])
{
	struct words words = {text.text, text.text + text.len, ' '};
	struct words *of = rest->gap ? rest : &words;
	struct word w = text;

	if (!rest->gap && !word_next(&words, &w))
		return;
	if (w.len == strlen("from") && !memcmp(w.text, "from", w.len) && word_next(of, &w) &&
		w.len > strlen(SCRIPT_SPAWNED) &&
		!memcmp(w.text, SCRIPT_SPAWNED, strlen(SCRIPT_SPAWNED)))
		snprintf(out, SCRIPT_MAX, "%.*s", (int)w.len, w.text);
}

const char *script_of(const char *args, size_t len, char out[SCRIPT_MAX])
{
	struct words words = {args, args + len, memchr(args, 0, len) ? 0 : ' '};
	const struct interpreter *i;
	struct word w;

	out[0] = 0;
	if (!word_next(&words, &w))
		return out;
	i = interpreter_of(w);
	while (i && word_next(&words, &w)) {
		char option = w.len > 1 && w.text[0] == '-' ? w.text[w.len - 1] : 0;

		if (w.text[0] != '-') {
			w = base_of(w);
			snprintf(out, SCRIPT_MAX, "%.*s", (int)w.len, w.text);
			return out;
		}
		if (w.text[1] == '-' || !option)
			continue;
		if (option == i->text) {
			if (word_next(&words, &w))
				name_of_text(w, &words, out);
			return out;
		}
		if (option == i->module && word_next(&words, &w)) {
			snprintf(out, SCRIPT_MAX, "%.*s", (int)w.len, w.text);
			return out;
		}
		if (w.len == 2 && strchr(i->valued, option) && !word_next(&words, &w))
			return out;
	}
	return out;
}

static const struct {
	const char *name, *calls;
} layers[] = {
#define X(NAME, name, calls) [LAYER_##NAME] = {name, calls},
	LAYERS(X)
#undef X
};

static const struct {
	const char *name, *words;
} states[] = {
	[LAYER_ABSENT] = {"absent", ""},
	[LAYER_COVERED] = {"covered", "are covered"},
	[LAYER_UNCOVERED] = {"not_covered", "are not covered"},
	[LAYER_FAILED] = {"failed", "are not covered"},
};

const char *layer_name(enum layer l)
{
	return layers[l].name;
}

const char *layer_state_name(enum layer_state s)
{
	return states[s].name;
}

bool layer_is_gap(const struct layer_row *r)
{
	return r->state == LAYER_UNCOVERED || r->state == LAYER_FAILED;
}

bool layer_has_gap(const struct process_layers *p)
{
	return EXISTS(i, LAYER_COUNT, layer_is_gap(&p->rows[i]));
}

bool layer_same(const struct process_layers *a, const struct process_layers *b)
{
	for (int i = 0; i < LAYER_COUNT; i++)
		if (a->rows[i].state != b->rows[i].state ||
			strcmp(a->rows[i].detail, b->rows[i].detail) != 0)
			return false;
	return true;
}

const char *layer_sentence(enum layer l, const struct layer_row *r, char *out, size_t size)
{
	if (r->state == LAYER_ABSENT)
		out[0] = 0;
	else
		snprintf(out, size, "%s %s%s%s", layers[l].calls, states[r->state].words,
			r->detail[0] ? ": " : "", r->detail);
	return out;
}
