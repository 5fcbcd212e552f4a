/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read_private.h - what the two readers of requests share: the point or record that is being
 * filled (or span), and handing it to the visitor under the ceilings. */
#pragma once

#include "otlp/otlp_read.h"

struct otlp_reading {
	const struct otlp_visitor *visitor;
	struct otlp_walk done;
	enum otlp_signal signal;
	const char *why; /* of an -E2BIG that is found here; NULL: none */
	struct otlp_attributes resource, attributes;
	struct otlp_point point;
	struct otlp_record record;
	struct otlp_span span;
};

/* otlp_reading_begin - whatever was in *s is gone. */
void otlp_reading_begin(
	struct otlp_reading *s, const struct otlp_visitor *v, enum otlp_signal signal);

/* otlp_reading_resource/_scope - another one begins: nothing is known of it yet. */
void otlp_reading_resource(struct otlp_reading *s);
void otlp_reading_scope(struct otlp_reading *s, const char *name, size_t len);

/* otlp_reading_point/_record/_span - what is told of a single one is forgotten; its metric, scope and
 * resource stay. */
void otlp_reading_point(struct otlp_reading *s);
void otlp_reading_record(struct otlp_reading *s);
void otlp_reading_span(struct otlp_reading *s);

/* otlp_reading_attribute - the next free one of @a; NULL: -E2BIG. */
struct otlp_attribute *otlp_reading_attribute(struct otlp_reading *s, struct otlp_attributes *a);

/* otlp_reading_visit - gives the point, record or span to the visitor. 0 or -E2BIG. */
int otlp_reading_visit(struct otlp_reading *s);

/* otlp_reading_end - the sentence for @err (0: none), which is returned. */
int otlp_reading_end(const struct otlp_reading *s, int err, const char *encoding,
	struct otlp_walk *ret, struct errinfo *reterr);

/* otlp_text_value - of bytes that are UTF-8; a NUL inside makes it nothing. */
struct otlp_value otlp_text_value(const char *s, size_t len);
