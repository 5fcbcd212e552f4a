/* SPDX-License-Identifier: Apache-2.0 */
/* senders.c - see senders.h. Names that share a hash are chained: a made-up name cannot take the place
 * of another. Two boots are remembered, because the last batches of the one before may come late. */
#include "cluster/detect/senders.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/macros.h"

void senders_init(struct senders *s, uint32_t max)
{
	*s = (struct senders){.max = max, .by_key = IDMAP_INIT(max)};
}

void senders_done(struct senders *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->items[i]);
	free(s->items);
	idmap_done(&s->by_key);
}

static int place(struct senders *s, struct sender *x)
{
	size_t i = 0;
	int r;

	while (i < s->count && s->items[i])
		i++;
	r = ARRAY_RESERVE(s->items, s->room, i + 1, s->max);
	if (r < 0)
		return r;
	x->same_key = idmap_get(&s->by_key, x->key);
	r = idmap_put(&s->by_key, x->key, x);
	if (r < 0)
		return r;
	x->index = (uint32_t)i;
	s->items[i] = x;
	s->count = MAX(s->count, i + 1);
	return 0;
}

struct sender *senders_find(const struct senders *s, const char *name)
{
	struct sender *x = idmap_get(&s->by_key, hash_name(name, strlen(name)));

	while (x && strcmp(x->name, name) != 0)
		x = x->same_key;
	return x;
}

int senders_get(struct senders *s, const char *name, struct sender **ret, bool *ret_new)
{
	_cleanup_free_ struct sender *made = NULL;
	struct sender *x = senders_find(s, name);
	int r;

	if (x) {
		*ret = x;
		*ret_new = false;
		return 0;
	}
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	snprintf(made->name, sizeof(made->name), "%s", name);
	made->key = hash_name(name, strlen(name));
	r = place(s, made);
	if (r < 0)
		return r;
	*ret = TAKE(made);
	*ret_new = true;
	return 0;
}

void senders_remove(struct senders *s, struct sender *x)
{
	struct sender *head = idmap_get(&s->by_key, x->key);

	s->items[x->index] = NULL;
	if (head == x) {
		idmap_remove(&s->by_key, x->key);
		if (x->same_key) /* what went leaves room: this cannot fail */
			(void)idmap_put(&s->by_key, x->key, x->same_key);
	} else {
		while (head->same_key != x)
			head = head->same_key;
		head->same_key = x->same_key;
	}
	free(x);
}

bool sender_has_batch(const struct sender *x, uint64_t boot, uint64_t batch)
{
	if (boot == 0 || batch == 0)
		return false;
	for (int i = 0; i < 2; i++) {
		const struct sender_boot *b = &x->boots[i];

		if (b->boot == boot)
			return batch <= b->highest && b->highest - batch < SENDER_BATCHES &&
			       (b->seen[batch % SENDER_BATCHES / 64] >> (batch % 64) & 1);
	}
	return false;
}

void sender_add_batch(struct sender *x, uint64_t boot, uint64_t batch)
{
	struct sender_boot *b = &x->boots[0];

	if (boot == 0 || batch == 0)
		return;
	if (b->boot != boot && x->boots[1].boot == boot)
		b = &x->boots[1];
	else if (b->boot != boot) {
		x->boots[1] = *b;
		*b = (struct sender_boot){.boot = boot};
	}
	if (batch > b->highest) {
		if (batch - b->highest >= SENDER_BATCHES)
			memset(b->seen, 0, sizeof(b->seen));
		else
			for (uint64_t i = b->highest + 1; i < batch; i++)
				b->seen[i % SENDER_BATCHES / 64] &= ~(UINT64_C(1) << (i % 64));
		b->highest = batch;
	} else if (b->highest - batch >= SENDER_BATCHES) {
		return;
	}
	b->seen[batch % SENDER_BATCHES / 64] |= UINT64_C(1) << (batch % 64);
}
