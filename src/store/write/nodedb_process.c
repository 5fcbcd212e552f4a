/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_process.c - writing what is known of traced processes: who they are, their control groups,
 * their call stacks, which of their calls are seen. Same thread as nodedb.c. */
#include <errno.h>
#include <string.h>

#include "store/nodedb_private.h"

#define CMDLINE_MAX 4096

struct process_args {
	const struct process *process;
	const char *cmdline;
};

static int write_process(struct nodedb *db, void *arg, struct errinfo *reterr)
{
	const struct process_args *args = arg;
	const struct process *p = args->process;
	const struct identity *i = &p->identity;
	sql_stmt *row, *name;
	int r;

	r = nodedb_statement(db, STATEMENT_PROCESS, &row, reterr);
	if (r < 0)
		return r;
	r = nodedb_statement(db, STATEMENT_PROCESS_NAME, &name, reterr);
	if (r < 0)
		return r;
	r = SQL_PUT(row, reterr, SQL_S(db->node), SQL_I(p->pid), SQL_I(p->start_ticks),
		SQL_SN(p->comm, COMM_LEN), SQL_SN(args->cmdline, CMDLINE_MAX), SQL_I(p->seen.ns),
		NODEDB_PLACE(i->place), SQL_S(i->launcher ? i->launcher : ""), SQL_S(i->job),
		SQL_S(i->container_id), SQL_S(i->pod), SQL_S(i->namespace), SQL_S(i->pod_uid),
		SQL_S(i->cgroup_path), SQL_S(i->exe), SQL_S(p->script),
		p->cpus ? SQL_I(p->cpus) : SQL_NOTHING);
	if (r < 0)
		return r;
	return SQL_PUT(name, reterr, SQL_I(p->pid), SQL_SN(p->comm, COMM_LEN), SQL_I(p->seen.ns));
}

int nodedb_put_process(
	struct nodedb *db, const struct process *p, const char *cmdline, struct errinfo *reterr)
{
	struct process_args args = {p, cmdline ? cmdline : ""};

	return nodedb_atomically(db, write_process, &args, reterr);
}

int nodedb_put_cgroup(struct nodedb *db, const struct cgroup_row *c, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_CGROUP, &stmt, reterr);

	if (r < 0)
		return r;
	return SQL_PUT(stmt, reterr, SQL_I(c->id), SQL_S(c->container_id), SQL_S(c->path),
		SQL_S(c->pod), SQL_S(c->namespace));
}

int nodedb_put_stack(struct nodedb *db, const struct stack_row *row, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_STACK, &stmt, reterr);

	if (r < 0)
		return r;
	return SQL_PUT(stmt, reterr, SQL_I(row->hash), SQL_SN(row->ips, row->ips_len),
		SQL_SN(row->frames, row->frames_len), SQL_SN(row->stop, row->stop_len));
}

struct layers_args {
	int64_t session;
	uint32_t pid;
	uint64_t start_ticks;
	const struct process_layers *layers;
};

static int write_layers(struct nodedb *db, void *arg, struct errinfo *reterr)
{
	const struct layers_args *a = arg;
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_COVERAGE, &stmt, reterr);

	for (int i = 0; r >= 0 && i < LAYER_COUNT; i++) {
		const struct layer_row *row = &a->layers->rows[i];

		r = SQL_PUT(stmt, reterr, SQL_I(a->session), SQL_S(db->node), SQL_I(a->pid),
			SQL_I(a->start_ticks), SQL_S(layer_name((enum layer)i)),
			SQL_S(layer_state_name(row->state)), SQL_S(row->detail),
			SQL_I(row->since.ns));
	}
	return r;
}

int nodedb_put_layers(struct nodedb *db, int64_t session, uint32_t pid, uint64_t start_ticks,
	const struct process_layers *l, struct errinfo *reterr)
{
	struct layers_args args = {session, pid, start_ticks, l};

	return nodedb_atomically(db, write_layers, &args, reterr);
}

int nodedb_put_call_gap(
	struct nodedb *db, int64_t session, const struct call_gap *g, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_CALL_GAP, &stmt, reterr);

	if (r < 0)
		return r;
	return SQL_PUT(stmt, reterr, SQL_I(session), SQL_S(db->node), SQL_I(g->from.ns),
		SQL_I(call_gap_ns(g)), SQL_I(g->pid), SQL_I(g->start_ticks), SQL_S(g->comm),
		SQL_S(g->file), SQL_S(call_gap_reason_name(g->reason)));
}

int nodedb_session_place(
	struct nodedb *db, int64_t session, struct placement place, struct errinfo *reterr)
{
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_SESSION_PLACE, &stmt, reterr);

	if (r < 0)
		return r;
	return SQL_PUT(stmt, reterr, SQL_I(session), NODEDB_PLACE(place));
}
