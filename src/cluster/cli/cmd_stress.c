/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stress.c - `ingero-cluster stress`: sends events that are known beforehand and says how many were sent,
 * acknowledged and stored. */
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/cli/commands.h"
#include "cluster/cli/stress.h"
#include "command/program.h"
#include "command/server_access.h"
#include "json/tree.h"
#include "json/writer.h"
#include "net/server/token.h"

#define DEFAULT_ENDPOINT "127.0.0.1:4317"
#define TOKEN_VARIABLE   "INGERO_TOKEN"
#define API_PORT         8081 /* of `echo` */
#define ALL_PORT         8080 /* of `all` */
#define EVENTS_PER_CHAIN 25
#define ASK_NS           (10 * NS_PER_S)
#define ASK_PAUSE_NS     (200 * NS_PER_MS)

struct stress_flags {
	const char *endpoint, *api, *protocol, *cluster, *node, *metric, *ca_cert, *token_file;
	struct option_strings fingerprints;
	int64_t events, nodes, writers, batch, chains, low, wrong_tokens, malformed;
	double rate, duplicates;
	uint64_t patience_ns;
	bool no_tls, json, no_check;
};

static const struct stress_flags defaults = {.endpoint = DEFAULT_ENDPOINT,
	.cluster = "stress",
	.node = "stress-node",
	.metric = "stress.health_score",
	.events = 2000,
	.nodes = 1,
	.writers = 8,
	.batch = 50,
	.chains = -1,
	.patience_ns = 60 * NS_PER_S};

#define OPTION(field) offsetof(struct stress_flags, field)
static const struct option_row stress_options[] = {
	OPTION_ROW(STRING, "endpoint", OPTION(endpoint), "ENDPOINT",
		"where to send: host:port (gRPC), grpc(s):// or http(s)://host:port (default: " DEFAULT_ENDPOINT
		")"),
	OPTION_ROW(STRING, "node-id", OPTION(node), "NAME",
		"node that sends (default: stress-node); of several, NAME-0, NAME-1, …"),
	{"events", 0, OPTION_INT, OPTION(events), "N",
		"total number of events, divided evenly among the nodes (default: 2000)", 1,
		1000000000, false},
	{"nodes", 0, OPTION_INT, OPTION(nodes), "N", "nodes that send (default: 1)", 1,
		STRESS_NODES_MAX, false},
	OPTION_ROW(STRING, "cluster-id", OPTION(cluster), "NAME",
		"cluster that they belong to (default: stress)"),
	OPTION_ROW(STRING, "metric", OPTION(metric), "NAME",
		"name of the metric (default: stress.health_score)"),
	{"writers", 0, OPTION_INT, OPTION(writers), "N", "concurrent requests (default: 8)", 1,
		STRESS_WRITERS_MAX, false},
	{"batch", 0, OPTION_INT, OPTION(batch), "N", "events per request (default: 50)", 1, 10000,
		false},
	{"rate", 0, OPTION_NUMBER, OPTION(rate), "N",
		"events per second (default: 0, as fast as they are accepted)", 0, 1000000000000,
		false},
	{"chains", 0, OPTION_INT, OPTION(chains), "N",
		"causal chains that the events belong to (default: one for 25 events)", 0,
		1000000000, false},
	{"low", 0, OPTION_INT, OPTION(low), "N",
		"events with a score below 0.4, spread evenly (default: 0)", 0, 1000000000, false},
	{"duplicates", 0, OPTION_NUMBER, OPTION(duplicates), "SHARE",
		"share of the requests that are sent twice, 0 to 1 (default: 0)", 0, 1000, false},
	{"wrong-tokens", 0, OPTION_INT, OPTION(wrong_tokens), "N",
		"requests with a wrong token, which must be refused (default: 0)", 0, 1000000,
		false},
	{"malformed", 0, OPTION_INT, OPTION(malformed), "N",
		"requests that are not OTLP, which must be refused (default: 0)", 0, 1000000,
		false},
	OPTION_ROW(STRING, "protocol", OPTION(protocol), "NAME",
		"grpc, http/protobuf or http/json (default: by the endpoint)"),
	OPTION_ROW(STRING, "api", OPTION(api), "URL",
		"where to ask what is stored (default: port 8081 of the endpoint's host)"),
	OPTION_ROW(FLAG, "no-check", OPTION(no_check), NULL, "do not ask what is stored"),
	{"patience", 0, OPTION_DURATION, OPTION(patience_ns), "TIME",
		"give up if nothing is accepted for this long (default: 60s)", 1, 0, false},
	OPTION_ROW(FLAG, "no-tls", OPTION(no_tls), NULL,
		"plain text: where the endpoint has no scheme, and to other machines"),
	OPTION_ROW(STRING, "ca-cert", OPTION(ca_cert), "FILE",
		"CA certificates to trust (default: the system's; on this machine the one that `echo` made)"),
	OPTION_ROW(STRINGS, "fingerprint", OPTION(fingerprints), "HEX",
		"trust only the certificate with this SHA-256 fingerprint; may be repeated"),
	OPTION_ROW(STRING, "token-file", OPTION(token_file), "FILE",
		"file with the bearer token (default: $" TOKEN_VARIABLE ")"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL, "print the result as JSON"),
	OPTION_REFUSED_SECRET("token", TOKEN_VARIABLE),
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

struct stored { /* what the store says of this run */
	bool known;
	int64_t rows, events, nodes, chains, low;
	char why[256]; /* it is not known */
};

struct run {
	const struct stress_flags *flags;
	struct endpoint endpoint;
	struct http_endpoint api;
	char *bearer, *ca;
	struct loop *loop;
	struct tls *tls;
	struct http_client *client, *stranger;
	struct stress_settings settings;
	struct stress_result result;
	struct stored stored;
};

static void run_done(struct run *c)
{
	http_client_freep(&c->client);
	http_client_freep(&c->stranger);
	tls_freep(&c->tls);
	loop_freep(&c->loop);
	free(c->bearer);
	free(c->ca);
}

/* ---- flags ---- */

static int check_flags(const struct stress_flags *f, struct errinfo *reterr)
{
	if (f->low > f->events)
		return errinfo_set(
			reterr, -EINVAL, "--low: there are only %" PRId64 " events", f->events);
	if (f->chains > f->events)
		return errinfo_set(
			reterr, -EINVAL, "--chains: there are only %" PRId64 " events", f->events);
	if (f->nodes > f->events)
		return errinfo_set(
			reterr, -EINVAL, "--nodes: there are only %" PRId64 " events", f->events);
	return 0;
}

/* Without a scheme it is gRPC, as published. */
static int find_endpoints(struct run *c, struct errinfo *reterr)
{
	const struct stress_flags *f = c->flags;
	struct endpoint_options o = {.name = "--endpoint",
		.text = f->endpoint,
		.protocol = f->protocol,
		.insecure = f->no_tls,
		.insecure_far = f->no_tls,
		.far_name = "--no-tls"};
	int r;

	if (!f->protocol && !strstr(f->endpoint, "://"))
		o.protocol = "grpc";
	r = endpoint_parse(&o, &c->endpoint, reterr);
	if (r < 0)
		return r;
	c->api = c->endpoint.endpoint;
	c->api.port = API_PORT;
	return f->api ? http_endpoint_parse(f->api, c->api.tls, API_PORT, &c->api, reterr) : 0;
}

static int find_trust(struct run *c, struct errinfo *reterr)
{
	struct tls_client_settings t = {.ca = c->flags->ca_cert,
		.pins = c->flags->fingerprints.value,
		.pin_count = c->flags->fingerprints.count};
	int r = 0;

	if (!t.ca && !t.pin_count) {
		r = question_own_ca(&c->endpoint.endpoint, &c->ca);
		t.ca = c->ca;
	}
	return r < 0 ? r : tls_client_new(&t, &c->tls, reterr);
}

static int open_clients(struct run *c, struct errinfo *reterr)
{
	struct http_client_settings s = {.plain_ok = c->flags->no_tls};
	int r = token_read(c->flags->token_file, TOKEN_VARIABLE, &c->bearer, reterr);

	r = r ?: find_trust(c, reterr);
	r = r ?: loop_new(&c->loop);
	s.tls = c->tls;
	s.bearer = c->bearer;
	r = r ?: http_client_new(c->loop, &s, &c->client, reterr);
	s.bearer = "0000000000000000000000000000000000000000000000000000000000000000";
	if (r == 0 && c->flags->wrong_tokens)
		r = http_client_new(c->loop, &s, &c->stranger, reterr);
	return r;
}

static void set_stress(struct run *c)
{
	const struct stress_flags *f = c->flags;
	struct stress_settings *s = &c->settings;

	*s = (struct stress_settings){.endpoint = &c->endpoint,
		.client = c->client,
		.stranger = c->stranger,
		.cluster = f->cluster,
		.node = f->node,
		.metric = f->metric,
		.events = (uint64_t)f->events,
		.nodes = (uint64_t)f->nodes,
		.writers = (uint64_t)f->writers,
		.batch = (uint64_t)f->batch,
		.low = (uint64_t)f->low,
		.rate = f->rate,
		.duplicates = f->duplicates,
		.wrong_tokens = (uint64_t)f->wrong_tokens,
		.malformed = (uint64_t)f->malformed,
		.patience_ns = f->patience_ns};
	s->chains = f->chains >= 0 ? (uint64_t)f->chains
				   : (s->events + EVENTS_PER_CHAIN - 1) / EVENTS_PER_CHAIN;
	snprintf(s->run, sizeof(s->run), "%" PRIx64, (uint64_t)wall_now().ns);
}

/* ---- what is stored ---- */

static void tree_done(json_t **t)
{
	json_decref(*t);
}

static int64_t number_at(const json_t *row, size_t i)
{
	return (int64_t)json_number_value(json_array_get(row, i));
}

static void read_stored(struct stored *s, int status, const struct buf *answer)
{
	_cleanup_(tree_done) json_t *tree = NULL;
	const json_t *row, *error;

	if (json_tree_read(buf_str(answer), answer->len, 0, &tree, NULL) < 0) {
		snprintf(s->why, sizeof(s->why), "it answered with status %d", status);
		return;
	}
	row = json_array_get(json_object_get(json_object_get(tree, "data"), "rows"), 0);
	error = json_object_get(json_object_get(tree, "error"), "message");
	if (status == 200 && json_is_array(row))
		*s = (struct stored){.known = true,
			.rows = number_at(row, 0),
			.events = number_at(row, 1),
			.nodes = number_at(row, 2),
			.chains = number_at(row, 3),
			.low = number_at(row, 4)};
	else
		snprintf(s->why, sizeof(s->why), "it answered with status %d%s%.180s", status,
			error ? ": " : "", error ? json_string_value(error) : "");
}

/* What was acknowledged is visible a moment later: it is asked for as long as there is more of it each
 * time. */
static void ask_stored(struct run *c)
{
	const struct timespec pause = {.tv_nsec = (long)ASK_PAUSE_NS};
	_cleanup_buf_ struct buf query = BUF_INIT(8192);
	struct question q = {.client = c->client,
		.loop = c->loop,
		.endpoint = &c->api,
		.path = "/api/v2/sql",
		.timeout_ns = ASK_NS};
	uint64_t end = mono_now().ns + ASK_NS;
	struct stored s;
	_cleanup_buf_ struct buf sql = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&query);

	buf_printf(&sql,
		"SELECT count(*), count(DISTINCT event_id), count(DISTINCT node_id), count(DISTINCT causal_chain_id), "
		"sum(CASE WHEN value_double < 0.4 THEN 1 ELSE 0 END) FROM events WHERE event_id LIKE '%s-%%'",
		c->settings.run);
	JSON_PUT_OBJECT(&w, JSON_S("query", buf_str(&sql)));
	if (sql.err)
		query.err = sql.err;
	q.body = buf_str(&query);
	for (;;) {
		_cleanup_buf_ struct buf answer = BUF_INIT(QUESTION_ANSWER_MAX);
		struct errinfo e = {0};
		int status = 0, r = question_ask(&q, &status, &answer, &e);

		s = (struct stored){0};
		if (r < 0)
			snprintf(s.why, sizeof(s.why), "%.250s", e.text);
		else
			read_stored(&s, status, &answer);
		if (r == -ECONNREFUSED && !c->flags->api)
			c->api.port = c->api.port == API_PORT ? ALL_PORT : API_PORT;
		if (s.known && (!c->stored.known || s.rows > c->stored.rows))
			end = mono_now().ns + ASK_NS;
		c->stored = s;
		if ((s.known && s.rows >= (int64_t)c->result.acknowledged) || mono_now().ns >= end)
			return;
		nanosleep(&pause, NULL);
	}
}

static bool is_good(const struct run *c)
{
	const struct stress_result *r = &c->result;

	if (r->acknowledged != c->settings.events || r->faults_taken)
		return false;
	return c->flags->no_check ||
	       (c->stored.known && c->stored.rows == (int64_t)r->acknowledged &&
		       c->stored.events == (int64_t)r->acknowledged);
}

/* ---- what is printed ---- */

static void print_stored(const struct run *c)
{
	const struct stored *s = &c->stored;
	uint64_t low;

	if (c->flags->no_check)
		return;
	if (!s->known) {
		_cleanup_buf_ struct buf why = BUF_INIT(4096);
		char shown[ENDPOINT_SHOWN_MAX];

		text_escape_terminal(&why, s->why);
		printf("Stored:       unknown: %s: %s; give --api, or --no-check\n",
			endpoint_show(&c->api, shown), buf_str(&why));
		return;
	}
	low = (uint64_t)MAX(s->low, INT64_C(0));
	printf("Stored:       %s events of %s with %s, %s below 0.4\n",
		TEXT_COUNT((uint64_t)s->rows), TEXT_PLURAL((uint64_t)s->nodes, "nodes"),
		TEXT_PLURAL((uint64_t)s->chains, "causal chains"),
		low ? text_format_count((char[TEXT_MAX]){0}, low) : "none");
	if (s->rows != s->events)
		printf("              %" PRId64 " of them are stored more than once\n",
			s->rows - s->events);
	if (s->events < (int64_t)c->result.acknowledged)
		printf("              %" PRId64 " acknowledged events are missing\n",
			(int64_t)c->result.acknowledged - s->events);
}

static void print_text(const struct run *c)
{
	const struct stress_result *r = &c->result;

	printf("Sent:         %s events in %s to %s, in %s (%s events/s)\n", TEXT_COUNT(r->events),
		TEXT_PLURAL(r->requests, "requests"), c->endpoint.shown, TEXT_DURATION(r->ns),
		TEXT_COUNT(r->ns ? r->events * NS_PER_S / r->ns : 0));
	printf("Acknowledged: %s events; a request took %s (p50), %s (p99)\n",
		TEXT_COUNT(r->acknowledged), TEXT_DURATION(sketch_quantile(&r->took, 0.5)),
		TEXT_DURATION(sketch_quantile(&r->took, 0.99)));
	if (r->rejected || r->given_up)
		printf("              %s rejected, %s given up\n", TEXT_COUNT(r->rejected),
			TEXT_COUNT(r->given_up));
	if (r->retries)
		printf("              %s deferred and retried\n",
			TEXT_PLURAL(r->retries, "requests"));
	if (r->duplicates)
		printf("Duplicates:   %s sent a second time\n",
			TEXT_PLURAL(r->duplicates, "requests"));
	if (r->faults_refused || r->faults_taken)
		printf("Faults:       %s refused, %s taken\n",
			TEXT_PLURAL(r->faults_refused, "requests"), TEXT_COUNT(r->faults_taken));
	print_stored(c);
}

static void print_json(const struct run *c)
{
	const struct stress_result *r = &c->result;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct json_writer w = json_writer_to_buf(&b);

	json_begin_object(&w);
	JSON_PUT(&w, JSON_S("run", c->settings.run), JSON_I("sent", (int64_t)r->events),
		JSON_I("requests", (int64_t)r->requests),
		JSON_I("acknowledged", (int64_t)r->acknowledged),
		JSON_I("rejected", (int64_t)r->rejected), JSON_I("given_up", (int64_t)r->given_up),
		JSON_I("retries", (int64_t)r->retries),
		JSON_I("duplicates", (int64_t)r->duplicates),
		JSON_I("faults_refused", (int64_t)r->faults_refused),
		JSON_I("faults_taken", (int64_t)r->faults_taken), JSON_I("dur_ns", (int64_t)r->ns),
		JSON_I("p50_ns", (int64_t)sketch_quantile(&r->took, 0.5)),
		JSON_I("p99_ns", (int64_t)sketch_quantile(&r->took, 0.99)));
	if (c->stored.known) {
		JSON_PUT(&w, JSON_I("stored", c->stored.rows),
			JSON_I("stored_events", c->stored.events),
			JSON_I("stored_nodes", c->stored.nodes),
			JSON_I("stored_chains", c->stored.chains),
			JSON_I("stored_low", c->stored.low));
	}
	json_end_object(&w);
	printf("%s\n", buf_str(&b));
}

static int run_stress(struct run *c, struct errinfo *reterr)
{
	int r = check_flags(c->flags, reterr);

	r = r ?: find_endpoints(c, reterr);
	r = r ?: open_clients(c, reterr);
	if (r < 0)
		return r;
	set_stress(c);
	r = stress_run(c->loop, &c->settings, &c->result, reterr);
	if (r < 0)
		return r;
	if (!c->flags->no_check)
		ask_stored(c);
	if (c->flags->json)
		print_json(c);
	else
		print_text(c);
	return 0;
}

static int stress_command(
	const struct command *cmd _unused_, void *settings, int argc _unused_, char **argv _unused_)
{
	_cleanup_(run_done) struct run c = {.flags = settings};
	struct errinfo e = {0};
	int r = run_stress(&c, &e);

	if (r < 0)
		return dispatch_fail(&e, r);
	return is_good(&c) ? EXIT_OK : EXIT_FAILED;
}

const struct command cmd_stress = {
	.name = "stress",
	.synopsis = "stress [--endpoint ENDPOINT] [--events N] [--node-id NAME] [flags]",
	.summary = "Send events to `echo` and report how many were sent, acknowledged and stored",
	.details =
		"Exits 0 if all that was sent was acknowledged, and all that was acknowledged is stored, once.\n"
		"  ingero-cluster stress                                  2,000 events to this machine\n"
		"  ingero-cluster stress --node-id node-h100 --events 1000 --endpoint echo-service:4317\n"
		"  ingero-cluster stress --nodes 8 --events 5000 --rate 1000 --low 18 --duplicates 0.1",
	.options = stress_options,
	.settings_size = sizeof(struct stress_flags),
	.defaults = &defaults,
	.run = stress_command,
};
