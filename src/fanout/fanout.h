/* SPDX-License-Identifier: Apache-2.0 */
/* fanout.h - one question to many nodes at once, and how far their clocks are apart.
 *
 * All nodes are asked in parallel from one loop. A node that fails costs its timeout and is a
 * warning; what the others said is complete. Nodes are strangers: answers are of bounded size and
 * depth, every row and type is checked, redirects are not followed.
 *
 * Nothing is printed here. Texts in results came from nodes: escape them for where they go. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "model/event.h"
#include "model/incident.h"
#include "net/client/client.h"
#include "net/loop.h"
#include "net/pki/tls.h"
#include "sql/sql_table.h"

/* Which nodes are asked: addresses, in the order they were named. */

#define FANOUT_ADDRESS_LEN 272 /* a host name of 253 bytes, brackets, a port */

struct fanout_node {
	struct http_endpoint endpoint;
	char address[FANOUT_ADDRESS_LEN]; /* "gpu-1:8080": how warnings name it */
};

struct fanout_nodes {
	struct fanout_node *items;
	size_t count;
};

/* fanout_nodes_add - adds what @list names, separated by commas: "gpu-1:8080,gpu-2". One that is
 * there already is not added again. Without a scheme @tls decides, without a port FANOUT_PORT.
 * -EINVAL with a sentence for what is no address; -E2BIG beyond FANOUT_NODES_MAX; -ENOMEM. Those
 * before the bad one have been added. */
int fanout_nodes_add(struct fanout_nodes *n, const char *list, bool tls, struct errinfo *reterr);
void fanout_nodes_done(struct fanout_nodes *n);

/* How far the nodes' clocks are apart, with error bars. Pure arithmetic.
 *
 * A node tells its wall time; it did so at some moment between the request's leaving and the
 * reply's first byte. So the offset to the midpoint is wrong by half of that round trip at most:
 * that is the error bar, and it holds whatever the network does. */

#define FANOUT_CLOCK_SAMPLES 3

struct fanout_clock_sample {
	int64_t remote_ns;       /* what the node said */
	int64_t sent_ns, got_ns; /* by this machine's wall clock */
};

struct fanout_clock { /* of one node */
	bool known;
	int64_t offset_ns; /* the node's clock minus ours */
	uint64_t error_ns; /* the true offset is within +- this */
};

/* fanout_clock_median - of @count samples (more than FANOUT_CLOCK_SAMPLES are not looked at) the
 * one with the median offset; of two the one with the shorter way. Samples that make no sense
 * (received before sent, times beyond the year 2200) do not count. */
struct fanout_clock fanout_clock_median(const struct fanout_clock_sample *samples, size_t count);

struct fanout_skew {   /* a difference that is larger than the threshold, for sure */
	size_t node;   /* whose clock; an index */
	size_t other;  /* compared with this node; SIZE_MAX: with this machine */
	int64_t by_ns; /* positive: node is ahead of other */
	uint64_t error_ns;
};

/* fanout_clock_skews - which of @count clocks differ by more than @threshold_ns after both error
 * bars are taken off. Each is compared with the node whose offset is the median, and that one with
 * this machine: one wrong clock makes one entry. Writes up to @max entries, largest first, and
 * returns how many there are. */
size_t fanout_clock_skews(const struct fanout_clock *clocks, size_t count, uint64_t threshold_ns,
	struct fanout_skew *ret, size_t max);

/* What a node found: its incidents, or the verdicts stored in its recording.
 *
 * All texts are a stranger's: whoever prints them escapes them for the place they go to. */

#define FANOUT_INCIDENTS_MAX 100         /* of a node; more are counted */
#define FANOUT_INCIDENT_JSON (256 << 10) /* bytes of one as JSON */

struct fanout_incident {
	char node[256];           /* whose incident: as it says, else the name of who answered */
	char address[272];        /* of who answered; nobody can forge that */
	size_t index;             /* of who answered, in the list of nodes */
	bool stored;              /* a stored verdict (a "causal chain"): less is known of it */
	struct incident incident; /* unit points into this struct */
	char unit[32];
	char op[64];         /* name of the slow call; "": not known */
	char where[512];     /* "forward() at train.py:142"; "": not known */
	double where_share;  /* of the excess, 0..1 */
	int64_t detected_ns; /* stored: when; 0: not known */
	char *json;          /* all that the node said about it, as one compact JSON object
				that is valid, with "node" and "address" in front */
};

struct fanout_incidents { /* worst first */
	struct fanout_incident **items;
	size_t count;
	size_t left_out; /* beyond FANOUT_INCIDENTS_MAX of a node */
};
void fanout_incidents_done(struct fanout_incidents *l);

struct fanout_extent { /* what a node looked at */
	bool known;
	uint64_t events;
	double completeness; /* 0..1: share of hits that are in the data; -1: not known */
};

struct fanout_source { /* who answered */
	const char *address, *name;
	size_t index;
};

/* fanout_incident_read - @body is a reply of GET /api/v1/incidents or /api/v1/chains (which one it
 * is shows in its keys): appends to @list. -EPROTO with a sentence; -ENOMEM; then @list is as
 * before. */
int fanout_incident_read(const char *body, size_t len, const struct fanout_source *who,
	struct fanout_incidents *list, struct fanout_extent *ret_extent, struct errinfo *reterr);

/* fanout_incident_sort - severity, then lost time, then how far above the ordinary, then the order
 * of nodes. */
void fanout_incident_sort(struct fanout_incidents *l);

#define FANOUT_TIMEOUT_NS     (5 * NS_PER_S)
#define FANOUT_SKEW_NS        (10 * NS_PER_MS)
#define FANOUT_ROWS           1000         /* of each node, unless asked otherwise */
#define FANOUT_ROWS_MAX       10000        /* what a node gives at most */
#define FANOUT_ANSWER_MAX     (32u << 20)  /* bytes of one answer */
#define FANOUT_ANSWERS_MAX    (128u << 20) /* of all that are under way; each has its share */
#define FANOUT_ANSWER_MIN     (512u << 10) /* which is not less than this */
#define FANOUT_TOKEN_VARIABLE "INGERO_FLEET_TOKEN"

struct fanout_settings {
	const struct fanout_nodes *nodes; /* copied */
	struct tls_client_settings tls;   /* whom to trust, and what to show */
	const char *bearer;               /* token; NULL: none */
	bool allow_plain;                 /* plain HTTP also to other machines */
	uint64_t timeout_ns;              /* of a node, for all it is asked; 0: the default */
	uint64_t skew_ns;                 /* clocks further apart are told of */
};

struct fanout;

/* fanout_new - gets ready to ask from @l. On success *ret is the caller's.
 * -EINVAL with a sentence: no nodes, or plain HTTP to another machine without allow_plain; what
 * tls_client_new() returned. */
int fanout_new(struct loop *l, const struct fanout_settings *s, struct fanout **ret,
	struct errinfo *reterr);
/* fanout_tls - NULL: no node is asked by TLS. */
struct tls *fanout_tls(const struct fanout *f);
DECLARE_FREE(struct fanout, fanout_free) /* ends what it asked without telling */

enum fanout_kind {
	FANOUT_SQL,       /* POST /api/v1/query */
	FANOUT_CHAINS,    /* GET /api/v1/chains: stored verdicts */
	FANOUT_INCIDENTS, /* GET /api/v1/incidents; of nodes that do not know it, their chains */
	FANOUT_GET,       /* GET of any path */
};

struct fanout_question {
	enum fanout_kind kind;
	const char *sql;   /* SQL */
	size_t limit;      /* SQL: rows of each node, 0: FANOUT_ROWS */
	const char *path;  /* GET: with its query, escaped: "/api/v1/ops?since=5m" */
	const char *query; /* CHAINS, INCIDENTS: parameters, escaped: "since=5m&pid=42"; or NULL */
	bool apart;        /* SQL: leave each node's rows in its answer, whatever their columns */
	bool no_clocks;    /* do not ask for the time */
};

struct fanout_answer { /* of one node */
	char address[FANOUT_ADDRESS_LEN];
	char name[256]; /* as the node calls itself; if it does not tell, its address. Two nodes
			   that claim one name are "name (address)" */
	bool ok;        /* it answered, and the answer is part of the result */
	int status;     /* of its reply in HTTP; 0: there was none */
	char why[512];  /* if not ok: a sentence without the node's name */
	char *hint;     /* what the node adds to its refusal (columns that exist); NULL: nothing */
	size_t rows;    /* SQL: that are part of the result */
	struct sql_table table;      /* SQL, apart: they themselves */
	bool truncated;              /* there are or may be more */
	char *json;                  /* GET: the answer as compact JSON, valid whatever came */
	struct fanout_extent extent; /* INCIDENTS */
	struct fanout_clock clock;
};

enum fanout_note {           /* what a warning is about */
	FANOUT_NOTE_FAILED,  /* a node that did not answer, or not sensibly */
	FANOUT_NOTE_COLUMNS, /* a node that answered with other columns than most */
	FANOUT_NOTE_CUT,     /* a node of which there is more */
	FANOUT_NOTE_NAME,    /* two nodes of one name */
	FANOUT_NOTE_CLOCK,   /* clocks that differ, or are not known */
};

struct fanout_warning {
	enum fanout_note note;
	char text[800]; /* "node gpu-3:8080: no answer within 5s" */
};

struct fanout_result {
	struct fanout_answer *answers; /* in the order of the nodes */
	size_t count, ok_count;
	bool no_columns_alike; /* SQL: of those that answered no two have the same columns */
	struct fanout_warning *warnings;
	size_t warning_count;
	struct sql_table table;            /* SQL: all rows, "node" first: see fanout_private.h */
	struct fanout_incidents incidents; /* CHAINS, INCIDENTS */
};
void fanout_result_done(struct fanout_result *r);

struct fanout_run; /* a question that is being asked */

/* @r is freed when this returns; to keep it, copy the struct and set *r to zeros. */
typedef void fanout_done(void *arg, struct fanout_result *r);

/* fanout_ask - begins to ask; @done runs on the loop when every node has answered or failed, never
 * from within. *ret_run (may be NULL) is valid until then. @f must outlive it. */
int fanout_ask(struct fanout *f, const struct fanout_question *q, fanout_done *done, void *arg,
	struct fanout_run **ret_run, struct errinfo *reterr);
void fanout_cancel(struct fanout_run *run); /* @done will not run */

/* fanout_wait - asks and runs @f's loop until the result is there; for who has no loop running.
 * 0 whatever the nodes said: look at ok_count. */
int fanout_wait(struct fanout *f, const struct fanout_question *q, struct fanout_result *ret,
	struct errinfo *reterr);

/* fanout_verdict - EXIT_OK if all nodes answered, EXIT_PARTIAL if some did, EXIT_FAILED if none;
 * see fanout_why(). */
enum exit_code fanout_verdict(const struct fanout_result *r);

/* fanout_why - for a result without an answer: the reason in a sentence; what all nodes say alike
 * is said once. The exit code is EXIT_USAGE if every node found the question itself wrong, else
 * EXIT_FAILED. */
void fanout_why(const struct fanout_result *r, struct errinfo *ret);

/* ---- events of many nodes as the structs that everything else works with.
 *
 * Asked for by SQL (fanout_event_sql() with FANOUT_SQL, apart), because nodes of every version know
 * that. Columns are found by their names, so that recordings of any schema will do. */

struct fanout_event_request {
	uint64_t since_ns; /* so long before a node's newest event; 0: no limit */
	const uint32_t *pids;
	size_t pid_count; /* 0: all */
};

/* fanout_event_sql - appends the statement. It gives the newest first: with a limit on rows the
 * oldest are those that are missing. */
void fanout_event_sql(struct buf *b, const struct fanout_event_request *w);

struct fanout_event {
	size_t node; /* in fanout_events.names */
	struct event event;
};

struct fanout_events { /* in order of their start, once sorted */
	struct fanout_event *items;
	size_t count;
	char **names; /* of nodes */
	size_t name_count;
	size_t skipped; /* rows that make no sense */
};
void fanout_events_done(struct fanout_events *l);

/* fanout_event_read - appends the rows of @t, one node's answer, to @l; rows that do not say of
 * which node they are belong to @name. -EPROTO if @t has not the columns of the statement; -ENOMEM.
 */
int fanout_event_read(const struct sql_table *t, const char *name, struct fanout_events *l);

/* fanout_event_sort - puts them in order. */
void fanout_event_sort(struct fanout_events *l);
