/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_tree.h - a YAML file as a tree that knows the line of everything in it, so that what is wrong
 * for us is said with its place as well as what is wrong for YAML.
 *
 * One document. Anchors, aliases and tags are refused (nothing here needs them, and they can make a
 * small file large), as is a key that occurs twice. Depth, size and the number of values have
 * ceilings. */
#pragma once

#include "base/errinfo.h"

#define YAML_BYTES_MAX  (1u << 20)
#define YAML_VALUES_MAX 50000
#define YAML_DEPTH_MAX  16

enum yaml_kind {
	YAML_NOTHING, /* "key:" with nothing behind it, ~ or null */
	YAML_TEXT,
	YAML_LIST,
	YAML_MAP,
};

struct yaml_tree;

struct yaml_value {
	enum yaml_kind kind;
	const char *key;     /* of a member of a map; NULL: of a list, or the root */
	const char *text;    /* YAML_TEXT */
	size_t line, column; /* from 1; of a member those of its key */
	size_t count;        /* of members */
	const struct yaml_value *first, *next;
	const struct yaml_tree *tree;
};

/* yaml_tree_read - reads @path, or if @text is not NULL that as its content. Exit code 78 and a
 * sentence with the file and the line for what is wrong in it. @reterr must be there for as long as values are
 * read. */
int yaml_tree_read(const char *path, const char *text, size_t len, struct yaml_tree **ret,
	struct errinfo *reterr);
DECLARE_FREE(struct yaml_tree, yaml_tree_free)

const struct yaml_value *yaml_tree_root(const struct yaml_tree *t); /* YAML_NOTHING: empty file */

/* yaml_member - of the map @v; NULL: there is none, or @v is no map. */
const struct yaml_value *yaml_member(const struct yaml_value *v, const char *key);

/* yaml_fail - -EINVAL, exit code 78 and "FILE: line N: …" for what is wrong with @v, into the errinfo that the tree was
 * read with. */
int yaml_fail(const struct yaml_value *v, const char *fmt, ...) _printf_(2, 3);

/* Values of certain kinds; each fails with a sentence that names the key. */
int yaml_text(const struct yaml_value *v, const char **ret);
int yaml_bool(const struct yaml_value *v, bool *ret);
int yaml_number(const struct yaml_value *v, double low, double high, double *ret);
int yaml_duration(const struct yaml_value *v, uint64_t *ret_ns);
int yaml_size(const struct yaml_value *v, uint64_t *ret_bytes);
