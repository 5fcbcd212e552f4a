/* SPDX-License-Identifier: Apache-2.0 */
/* fanout.h - one question to many nodes at once, and how far their clocks are apart.
 *
 * All nodes are asked in parallel from one loop. A node that fails costs its timeout and is a
 * warning; what the others said is complete. Nodes are strangers: answers are of bounded size and
 * depth, every row and type is checked, redirects are not followed.
 *
 * Nothing is printed here. Texts in results came from nodes: escape them for where they go. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fanout/fanout_node.h"
#include "fanout/fanout_incident.h"
#include "base/errinfo.h"
#include "net/loop.h"
#include "net/pki/tls.h"
#include "sql/sql_table.h"

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
void fanout_free(struct fanout *f); /* ends what it asked without telling */
DEFINE_CLEANUP(struct fanout *, fanout_free)

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
	struct sql_table table;            /* SQL: all rows, "node" first: see fanout_table.h */
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
