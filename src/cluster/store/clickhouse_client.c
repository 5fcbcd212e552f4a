/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_client.c - see store_clickhouse_private.h.
 *
 * The servers are told to hold an answer back until it is whole (wait_end_of_query), so that a statement
 * that fails half-way has a status that says so. */
#include "cluster/store/store_clickhouse_private.h"

#include "base/text.h"
#include "net/client/client.h"

#define SESSIONS_KEPT 16
#define PORT          8123
#define FORMAT        "TabSeparatedWithNamesAndTypes"
#define ERROR_MAX     (64u << 10) /* of what a server says instead of an answer */

struct session {
	struct session *next;
	struct loop *loop;
	struct http_client *client;
	size_t pending;
};

struct clickhouse {
	pthread_mutex_t lock;
	struct session *idle;
	size_t idle_count;
	size_t count;
	struct http_endpoint endpoints[];
};

/* ---- errors ---- */

/* What ClickHouse's error numbers mean here; others are the server's own trouble. */
static const struct {
	int code, err;
} codes[] = {
	{6, -EINVAL},   /* cannot parse a text as a number */
	{36, -EINVAL},  /* bad arguments */
	{41, -EINVAL},  /* cannot parse a time */
	{42, -EINVAL},  /* number of arguments */
	{43, -EINVAL},  /* type of an argument */
	{44, -EINVAL},  /* illegal column */
	{46, -EINVAL},  /* unknown function */
	{47, -EINVAL},  /* unknown identifier */
	{48, -EINVAL},  /* not implemented */
	{53, -EINVAL},  /* type mismatch */
	{60, -EINVAL},  /* unknown table */
	{62, -EINVAL},  /* syntax */
	{63, -EINVAL},  /* unknown aggregate function */
	{70, -EINVAL},  /* cannot convert */
	{72, -EINVAL},  /* cannot parse a number */
	{73, -EINVAL},  /* unknown format */
	{81, -EPERM},   /* unknown database: for a reader the same as one that is not its own */
	{153, -EINVAL}, /* division by zero */
	{158, -E2BIG},  /* too many rows */
	{159, -ETIMEDOUT}, {160, -ETIMEDOUT},           /* too slow */
	{164, -EPERM},                                  /* read-only */
	{168, -EINVAL},                                 /* AST too big */
	{167, -EINVAL},                                 /* AST too deep */
	{174, -EINVAL},                                 /* cyclic aliases */
	{179, -EINVAL},                                 /* one alias, several expressions */
	{184, -EINVAL},                                 /* aggregate in an aggregate */
	{192, -EACCES},                                 /* unknown user */
	{193, -EACCES},                                 /* wrong password */
	{194, -EACCES},                                 /* password required */
	{195, -EACCES},                                 /* address not allowed */
	{201, -EBUSY},                                  /* quota */
	{202, -EBUSY},                                  /* too many queries at once */
	{207, -EINVAL},                                 /* ambiguous identifier */
	{215, -EINVAL},                                 /* not an aggregate */
	{241, -ENOMEM}, {243, -ENOSPC}, {252, -EAGAIN}, /* too many parts: merges lag behind */
	{291, -EPERM},                                  /* database access denied */
	{307, -E2BIG},                                  /* too many bytes */
	{358, -EPERM},                                  /* INTO OUTFILE */
	{386, -EINVAL},                                 /* no common type */
	{394, -ETIMEDOUT},                              /* killed */
	{396, -E2BIG},                                  /* too many rows or bytes */
	{446, -EPERM},                                  /* function not allowed */
	{497, -EPERM},                                  /* not enough privileges */
	{516, -EACCES},                                 /* authentication failed */
};

/* Their words without what stands around them: "Code: 62, e.displayText() = DB::Exception: …, e.what()
 * = …" in old versions, "Code: 62. DB::Exception: … (SYNTAX_ERROR) (version …)" in new ones. */
static void put_words(struct buf *b, const char *said)
{
	static const char mark[] = "DB::Exception: ";
	const char *begin = strstr(said, mark);
	const char *end, *cut;

	begin = begin ? begin + sizeof(mark) - 1 : said;
	end = begin + strcspn(begin, "\r\n");
	cut = strstr(begin, ", e.what() =");
	if (cut && cut < end)
		end = cut;
	cut = strstr(begin, " (version ");
	if (cut && cut < end)
		end = cut;
	while (end > begin && (end[-1] == ' ' || end[-1] == ','))
		end--;
	text_escape_terminal_len(b, begin, MIN((size_t)(end - begin), (size_t)300));
}

/* What a server said instead of an answer, as errno and one line. For -EINVAL it is
 * the statement, for -EPERM the account that is at fault. */
static int clickhouse_error(const char *where, const char *said, size_t len, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf copy = BUF_INIT(ERROR_MAX), words = BUF_INIT(4096);
	int code = 0, err = -EIO;

	buf_append(&copy, said, MIN(len, (size_t)ERROR_MAX - 1));
	if (sscanf(buf_str(&copy), "Code: %d", &code) != 1)
		return errinfo_set(reterr, -EPROTO,
			"%s does not answer as ClickHouse does: give the address of its HTTP interface",
			where);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].code == code)
			err = codes[i].err;
	put_words(&words, buf_str(&copy));
	return errinfo_set(reterr, err, "ClickHouse at %s: %s", where, buf_str(&words));
}

/* ---- sessions ---- */

static void session_free(struct session *s)
{
	http_client_freep(&s->client);
	loop_freep(&s->loop);
	free(s);
}
DEFINE_CLEANUP(struct session *, session_free)

static int session_new(struct session **ret, struct errinfo *reterr)
{
	_cleanup_(session_freep) struct session *s = calloc(1, sizeof(*s));
	struct http_client_settings none = {0};
	int r = s ? loop_new(&s->loop) : -ENOMEM;

	r = r ?: http_client_new(s->loop, &none, &s->client, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

static int session_get(struct clickhouse *c, struct session **ret, struct errinfo *reterr)
{
	struct session *s;

	pthread_mutex_lock(&c->lock);
	s = c->idle;
	if (s) {
		c->idle = s->next;
		c->idle_count--;
	}
	pthread_mutex_unlock(&c->lock);
	if (!s)
		return session_new(ret, reterr);
	*ret = s;
	return 0;
}

int clickhouse_new(
	const char *const *shards, size_t count, struct clickhouse **ret, struct errinfo *reterr)
{
	_cleanup_free_ struct clickhouse *c =
		calloc(1, sizeof(*c) + count * sizeof(c->endpoints[0]));

	if (!c)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int r = http_endpoint_parse(shards[i], false, PORT, &c->endpoints[i], reterr);

		if (r < 0)
			return r;
	}
	c->count = count;
	pthread_mutex_init(&c->lock, NULL);
	*ret = TAKE(c);
	return 0;
}

void clickhouse_free(struct clickhouse *c)
{
	while (c->idle) {
		struct session *s = c->idle;

		c->idle = s->next;
		session_free(s);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}

size_t clickhouse_shard_count(const struct clickhouse *c)
{
	return c->count;
}

/* ---- asking ---- */

static void put_base64(struct buf *b, const char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t left = strlen(text); left;) {
		size_t n = MIN(left, (size_t)3);
		uint32_t v = 0;

		for (size_t i = 0; i < 3; i++)
			v = v << 8 | (i < n ? (unsigned char)text[i] : 0);
		for (size_t i = 0; i < 4; i++)
			buf_putc(b, i <= n ? digits[v >> (18 - 6 * i) & 63] : '=');
		text += n;
		left -= n;
	}
}

/* A password goes as `authorization`, which the client does not send in the clear to other machines. */
static struct http_field account_field(const struct clickhouse_account *a, struct buf *value)
{
	_cleanup_buf_ struct buf pair = BUF_INIT(1024);

	if (!a->password || !*a->password) {
		buf_puts(value, a->user);
		return (struct http_field){"x-clickhouse-user", buf_str(value)};
	}
	buf_printf(&pair, "%s:%s", a->user, a->password);
	buf_puts(value, "Basic ");
	put_base64(value, buf_str(&pair));
	if (pair.err)
		value->err = pair.err;
	return (struct http_field){"authorization", buf_str(value)};
}

struct exchange {
	struct session *session;
	struct clickhouse_ask *ask;
	const struct http_endpoint *endpoint;
};

static void on_answer(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct exchange *x = arg;
	struct clickhouse_ask *a = x->ask;
	char where[sizeof(x->endpoint->host) + 8];

	snprintf(where, sizeof(where), "%s:%u", x->endpoint->host, x->endpoint->port);
	if (err == -EMSGSIZE) {
		a->err = errinfo_set(&a->e, -E2BIG,
			"the answer has more than %zu bytes: ask for less", a->answer_max);
	} else if (err < 0) {
		a->err = err;
		a->e = *e;
	} else if (r->status != 200 ||
		   (a->rows && r->body_len)) { /* nothing is said of rows that are stored */
		a->err = clickhouse_error(where, r->body, r->body_len, &a->e);
	} else {
		buf_append(&a->answer, r->body, r->body_len);
		a->err = a->answer.err;
	}
	if (--x->session->pending == 0)
		loop_stop(x->session->loop);
}

static int begin(struct clickhouse *c, struct exchange *x)
{
	_cleanup_buf_ struct buf path = BUF_INIT(64u << 10), value = BUF_INIT(4096);
	struct clickhouse_ask *a = x->ask;
	struct http_field field = account_field(a->account, &value);
	struct http_ask h = {
		.endpoint = x->endpoint,
		.method = "POST",
		.type = "application/octet-stream",
		.body = a->rows ? a->rows : a->query,
		.body_len = a->rows ? a->rows_len : strlen(a->query),
		.fields = &field,
		.field_count = 1,
		.timeout_ns = a->timeout_ns,
		.body_max = MAX(a->answer_max, (size_t)ERROR_MAX),
		.alone = true,
	};

	x->endpoint = h.endpoint = &c->endpoints[a->shard];
	buf_puts(&path, "/?wait_end_of_query=1&default_format=" FORMAT);
	if (a->settings)
		buf_puts(&path, a->settings);
	if (a->rows) {
		buf_puts(&path, "&query=");
		http_escape(&path, a->query);
	}
	h.path = buf_str(&path);
	if (path.err || value.err)
		return errinfo_set(&a->e, -E2BIG, "the request to ClickHouse is too long");
	return http_ask(x->session->client, &h, on_answer, x, NULL);
}

static int run_all(
	struct clickhouse *c, struct session *s, struct clickhouse_ask *asks, size_t count)
{
	_cleanup_free_ struct exchange *x = calloc(count, sizeof(*x));
	int r = x ? 0 : -ENOMEM;

	s->pending = 0;
	for (size_t i = 0; i < count; i++) {
		asks[i].answer = BUF_INIT(asks[i].answer_max + 1);
		asks[i].err = r;
		if (r < 0)
			continue;
		x[i] = (struct exchange){.session = s, .ask = &asks[i]};
		asks[i].err = begin(c, &x[i]);
		if (asks[i].err == 0)
			s->pending++;
	}
	return s->pending ? loop_run(s->loop) : 0;
}

int clickhouse_ask_all(
	struct clickhouse *c, struct clickhouse_ask *asks, size_t count, struct errinfo *reterr)
{
	struct session *s;
	int r = session_get(c, &s, reterr);

	if (r < 0)
		return r;
	r = run_all(c, s, asks, count);
	if (r < 0) { /* the loop is broken: its calls must not outlive this */
		session_free(s);
		return errinfo_set(reterr, r, "cannot wait for ClickHouse's answers");
	}
	pthread_mutex_lock(&c->lock);
	if (c->idle_count < SESSIONS_KEPT) {
		s->next = c->idle;
		c->idle = s;
		c->idle_count++;
		s = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	session_freep(&s);
	for (size_t i = 0; i < count; i++)
		if (asks[i].err < 0) {
			if (reterr)
				*reterr = asks[i].e;
			return asks[i].err;
		}
	return 0;
}

void clickhouse_ask_done(struct clickhouse_ask *a)
{
	buf_done(&a->answer);
}
