/* SPDX-License-Identifier: Apache-2.0 */
/* push_calls.c - a batch of calls as few bytes, and as a log record with these as its body.
 *
 * What calls have in common is written once. A communicator is what one process has of it; a line is
 * a communicator with an operation, datatype, peer and size. Both are numbered as they first appear,
 * and a number that is one beyond those known says that a new one follows. All numbers are varints
 * as protobuf has them, z those that may be negative (zigzag):
 *
 *	batch    magic[3] version[1] batch z(sent) lost count call*count
 *	call     line [new line] z(seq - last) z(enter - last) z(leave - enter) wait+1
 *	line     comm [new communicator] op datatype z(peer) bytes
 *	comm     hash[8, little endian] z(nranks) z(rank) z(world rank) pid
 *
 * The last sequence number is that of the communicator for collectives, and of the line for Send and
 * Recv, which count for each peer; the last entry is the call's before. Differences are modulo 2^64,
 * so that every value survives and none overflows: a wait that is not known (UINT64_MAX) is 0. */
#include <endian.h>

#include "base/array.h"
#include "base/hash.h"
#include "push/push_private.h"

#define VERSION    1
#define CALL_BYTES 5   /* the fewest that a call takes */
#define CALL_ROOM  128 /* the most: 12 varints of up to 10, and a hash */

static const uint8_t magic[] = {'I', 'C', 'L', VERSION};

struct entry { /* of a dictionary: a communicator or a line */
	uint64_t key[3];
	uint64_t seq; /* the last */
};

struct dictionary {
	struct entry *entries;
	uint32_t *slots; /* index of an entry + 1; 0: free */
	size_t mask;
	uint32_t count;
};

static void dictionary_done(struct dictionary *d)
{
	free(d->entries);
	free(d->slots);
}

/* Room for @count entries, with half of the slots free. */
static int dictionary_init(struct dictionary *d, size_t count)
{
	size_t size = 16;

	while (size < 2 * count)
		size *= 2;
	d->mask = size - 1;
	d->slots = calloc(size, sizeof(*d->slots));
	d->entries = malloc((count + 1) * sizeof(*d->entries));
	return d->slots && d->entries ? 0 : -ENOMEM;
}

/* The entry with this key; a new one if *ret_new. */
static uint32_t dictionary_get(struct dictionary *d, const uint64_t key[3], bool *ret_new)
{
	size_t at = hash_number(key[0] ^ hash_number(key[1] ^ hash_number(key[2]))) & d->mask;
	uint32_t slot;

	while ((slot = d->slots[at]) != 0) {
		if (memcmp(d->entries[slot - 1].key, key, sizeof(d->entries->key)) == 0) {
			*ret_new = false;
			return slot - 1;
		}
		at = (at + 1) & d->mask;
	}
	d->slots[at] = d->count + 1;
	d->entries[d->count] = (struct entry){.key = {key[0], key[1], key[2]}};
	*ret_new = true;
	return d->count++;
}

static uint8_t *put(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

static uint8_t *put_signed(uint8_t *at, uint64_t v)
{
	return put(at, v << 1 ^ -(v >> 63));
}

static uint64_t pair(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

struct packing {
	struct dictionary comms, lines;
	uint64_t enter;
};

static uint8_t *put_comm(uint8_t *at, const struct push_call *c)
{
	uint64_t le = htole64(c->comm);

	memcpy(at, &le, sizeof(le));
	at = put_signed(at + sizeof(le), (uint64_t)(int64_t)c->nranks);
	at = put_signed(at, (uint64_t)(int64_t)c->rank);
	at = put_signed(at, (uint64_t)(int64_t)c->world_rank);
	return put(at, c->pid);
}

static void put_call(struct packing *p, struct buf *b, const struct push_call *c)
{
	uint8_t bytes[CALL_ROOM], *at = bytes;
	bool new_comm, new_line;
	uint32_t comm = dictionary_get(&p->comms,
		(const uint64_t[3]){c->comm, pair((uint32_t)c->nranks, (uint32_t)c->rank),
			pair((uint32_t)c->world_rank, c->pid)},
		&new_comm);
	uint32_t line = dictionary_get(&p->lines,
		(const uint64_t[3]){
			c->bytes, pair(comm, (uint32_t)c->peer), pair(c->op, c->datatype)},
		&new_line);
	uint64_t *seq = c->peer < 0 ? &p->comms.entries[comm].seq : &p->lines.entries[line].seq;

	at = put(at, line);
	if (new_line) {
		at = put(at, comm);
		if (new_comm)
			at = put_comm(at, c);
		at = put(at, c->op);
		at = put(at, c->datatype);
		at = put_signed(at, (uint64_t)(int64_t)c->peer);
		at = put(at, c->bytes);
	}
	at = put_signed(at, c->seq - *seq);
	at = put_signed(at, (uint64_t)c->enter_ns - p->enter);
	at = put_signed(at, (uint64_t)c->leave_ns - (uint64_t)c->enter_ns);
	at = put(at, c->wait_ns + 1);
	*seq = c->seq;
	p->enter = (uint64_t)c->enter_ns;
	buf_append(b, bytes, (size_t)(at - bytes));
}

void push_calls_pack(struct buf *b, const struct push_calls *c)
{
	struct packing p = {0};
	uint8_t head[64], *at = head;
	int r = c->count > PUSH_CALLS_MAX ? -ENOBUFS : dictionary_init(&p.comms, c->count);

	r = r ?: dictionary_init(&p.lines, c->count);
	if (r < 0 && !b->err)
		b->err = r;
	memcpy(at, magic, sizeof(magic));
	at = put(at + sizeof(magic), c->batch);
	at = put_signed(at, (uint64_t)c->sent_ns);
	at = put(at, c->lost);
	at = put(at, c->count);
	buf_append(b, head, (size_t)(at - head));
	for (size_t i = 0; i < c->count && !b->err; i++)
		put_call(&p, b, &c->items[i]);
	dictionary_done(&p.comms);
	dictionary_done(&p.lines);
}

struct line { /* a call as all of this line begin */
	struct push_call call;
	uint64_t seq;
	uint32_t comm;
};

struct unpacking {
	const uint8_t *at, *end;
	bool bad;
	struct line *comms, *lines; /* of comms, what they have */
	size_t comm_count, comm_room, line_count, line_room;
	uint64_t enter;
};

static uint64_t get_long(struct unpacking *u)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70 && u->at < u->end; shift += 7) {
		uint8_t byte = *u->at++;

		if (shift == 63 && byte > 1)
			break; /* more than 64 bits */
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	u->bad = true;
	u->at = u->end;
	return 0;
}

/* Two of the five numbers of a call are a byte, as a rule. */
static inline uint64_t get(struct unpacking *u)
{
	return u->at < u->end && *u->at < 0x80 ? *u->at++ : get_long(u);
}

static uint64_t get_signed(struct unpacking *u)
{
	uint64_t v = get(u);

	return v >> 1 ^ -(v & 1);
}

/* One that must fit. */
static uint64_t get_below(struct unpacking *u, uint64_t limit)
{
	uint64_t v = get(u);

	u->bad |= v >= limit;
	return v;
}

static int32_t get_int32(struct unpacking *u)
{
	int64_t v = (int64_t)get_signed(u);

	u->bad |= v != (int32_t)v;
	return (int32_t)v;
}

static int get_comm(struct unpacking *u)
{
	struct line *c;
	uint64_t le;
	int r = ARRAY_RESERVE(u->comms, u->comm_room, u->comm_count + 1, PUSH_CALLS_MAX);

	if (r < 0)
		return r;
	if ((size_t)(u->end - u->at) < sizeof(le))
		return -EBADMSG;
	memcpy(&le, u->at, sizeof(le));
	u->at += sizeof(le);
	c = &u->comms[u->comm_count++];
	*c = (struct line){.call.comm = le64toh(le)};
	c->call.nranks = get_int32(u);
	c->call.rank = get_int32(u);
	c->call.world_rank = get_int32(u);
	c->call.pid = (uint32_t)get_below(u, UINT64_C(1) << 32);
	return u->bad ? -EBADMSG : 0;
}

static int get_line(struct unpacking *u)
{
	uint64_t comm = get(u);
	struct line *l;
	int r;

	if (comm > u->comm_count)
		return -EBADMSG;
	r = comm == u->comm_count ? get_comm(u) : 0;
	r = r ?: ARRAY_RESERVE(u->lines, u->line_room, u->line_count + 1, PUSH_CALLS_MAX);
	if (r < 0)
		return r;
	l = &u->lines[u->line_count++];
	*l = (struct line){.call = u->comms[comm].call, .comm = (uint32_t)comm};
	l->call.op = (uint16_t)get_below(u, 1 << 16);
	l->call.datatype = (uint16_t)get_below(u, 1 << 16);
	l->call.peer = get_int32(u);
	l->call.bytes = get(u);
	return u->bad ? -EBADMSG : 0;
}

static int get_call(struct unpacking *u, struct push_call *ret)
{
	uint64_t line = get(u), *seq;
	struct line *l;
	int r;

	if (line >= u->line_count) {
		r = line == u->line_count && !u->bad ? get_line(u) : -EBADMSG;
		if (r < 0)
			return r;
	}
	l = &u->lines[line];
	seq = l->call.peer < 0 ? &u->comms[l->comm].seq : &l->seq;
	*seq += get_signed(u);
	u->enter += get_signed(u);
	*ret = l->call;
	ret->seq = *seq;
	ret->enter_ns = (int64_t)u->enter;
	ret->leave_ns = (int64_t)(u->enter + get_signed(u));
	ret->wait_ns = get(u) - 1;
	return u->bad ? -EBADMSG : 0;
}

static int get_calls(struct unpacking *u, struct push_call *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int r = get_call(u, &items[i]);

		if (r < 0)
			return r;
	}
	return u->at == u->end ? 0 : -EBADMSG;
}

int push_calls_unpack(const void *data, size_t len, struct push_calls *ret)
{
	struct unpacking u = {.at = data, .end = (const uint8_t *)data + len};
	_cleanup_free_ struct push_call *items = NULL;
	struct push_calls c = *ret;
	uint64_t count;
	int r;

	if (len < sizeof(magic) || memcmp(data, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	u.at += sizeof(magic);
	c.batch = get(&u);
	c.sent_ns = (int64_t)get_signed(&u);
	c.lost = get(&u);
	count = get(&u);
	if (u.bad || count > (size_t)(u.end - u.at) / CALL_BYTES)
		return -EBADMSG;
	if (count > PUSH_CALLS_MAX)
		return -E2BIG;
	items = malloc(MAX(count, UINT64_C(1)) * sizeof(*items));
	if (!items)
		return -ENOMEM;
	r = get_calls(&u, items, (size_t)count);
	free(u.comms);
	free(u.lines);
	if (r < 0)
		return r;
	c.items = TAKE(items);
	c.count = (size_t)count;
	*ret = c;
	return 0;
}

static const char *event_of(const struct push_calls *c)
{
	if (EXISTS(i, c->count, !push_call_is_numbered(&c->items[i])))
		return PUSH_SCOPE_OWN;
	return PUSH_SCOPE_CALLS;
}

void push_calls_protobuf(struct buf *b, const struct push_calls *c)
{
	const char *event = event_of(c);
	_cleanup_buf_ struct buf body = BUF_INIT(b->max);
	struct otlp_attributes resource, none;
	struct otlp_writer w;

	resource.count = none.count = 0;
	push_who_put(&resource, &c->who);
	push_calls_pack(&body, c);
	if (body.err && !b->err)
		b->err = body.err;
	otlp_write_begin(&w, b, false, true, &resource, event, PUSH_SCOPE_VERSION);
	otlp_write_record(
		&w, &(struct otlp_record){.attributes = &none,
			    .time_ns = (uint64_t)c->sent_ns,
			    .body = {.kind = OTLP_BYTES, .text = buf_str(&body), .len = body.len},
			    .event = event,
			    .event_len = strlen(event)});
	otlp_write_end(&w);
}
