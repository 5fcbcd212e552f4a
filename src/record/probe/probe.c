/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - loads the kernel half and keeps its handles. Used from the tracer's thread only.
 *
 * What a probe method needs is decided by the caller (record/attach/feature.h). A program whose tracepoint the kernel
 * does not have, or that its verifier refuses, is left out, alone, and said to be missing (part.h); without the
 * few that everything stands on nothing is loaded. */
#include "record/probe/probe.h"

#include <sys/mman.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "record/probe/link.h"
#include "probe.skel.h"
#include "wire/names.h"

#define RING_BYTES_DEFAULT (8u << 20)
#define AGGREGATE_MEMORY   (64u << 20) /* ceiling for the table of aggregates, all CPUs */
#define AGGREGATES_MIN     256
#define AGGREGATES_MAX     4096

struct probe {
	struct probe_bpf *skel;
	struct probe_settings settings;
	struct parts parts;
	int cpus;
	struct wire_tally *scratch; /* one per CPU */
	size_t tally_stride;
	const struct wire_use *uses; /* the kernel's; NULL: not mapped */
};

#define USES_BYTES (WIRE_USES * sizeof(struct wire_use))

/* Of libbpf's complaints: the first, the program it was about, and what the verifier said last. */
static struct {
	char first[256];
	char program[64];
	char verifier[160];
} complaint;

/* The last line of the verifier's log before its statistics is what it objects to. */
static void note_verifier(const char *log)
{
	const char *line = log;

	while (*line) {
		size_t n = strcspn(line, "\n");

		if (!strncmp(line, "processed ", 10) || !strncmp(line, "-- END", 6))
			break;
		if (n)
			snprintf(complaint.verifier, sizeof(complaint.verifier), "%.*s", (int)n,
				line);
		line += n + (line[n] == '\n');
	}
}

static int libbpf_note(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	const char *log;

	if (level > LIBBPF_WARN || vasprintf(&text, fmt, ap) < 0)
		return 0;
	if (getenv("LIBBPF_LOG_LEVEL")) /* as programs with a later libbpf are asked for its messages */
		fputs(text, stderr);
	if (!complaint.first[0])
		snprintf(complaint.first, sizeof(complaint.first), "%.*s", (int)strcspn(text, "\n"),
			text);
	sscanf(text, "libbpf: prog '%63[^']'", complaint.program);
	log = strstr(text, "BEGIN PROG LOAD LOG --\n");
	if (log)
		note_verifier(strchr(log, '\n') + 1);
	return 0;
}

void probe_close(struct probe *p)
{
	if (!p)
		return;
	if (p->uses)
		munmap((void *)p->uses, USES_BYTES);
	probe_bpf__destroy(p->skel);
	free(p->scratch);
	free(p);
}

static uint32_t aggregate_entries(int cpus)
{
	size_t n = AGGREGATE_MEMORY / (sizeof(struct wire_agg) * (size_t)cpus);

	n = MIN(n, (size_t)AGGREGATES_MAX);
	return (uint32_t)MAX(n, (size_t)AGGREGATES_MIN);
}

/* Without stacks their maps are not read; they take their memory when they are made. */
static void shrink_stack_maps(struct probe_bpf *k)
{
	bpf_map__set_max_entries(k->maps.stacks, 4096);
	bpf_map__set_max_entries(k->maps.stacks_sent, 1);
	bpf_map__set_max_entries(k->maps.stacks_alike, 1);
	bpf_map__set_max_entries(k->maps.codes, 1);
	bpf_map__set_max_entries(k->maps.unwind_rules, 1);
}

static void configure(struct probe *p)
{
	const struct probe_settings *s = &p->settings;
	struct probe_bpf *k = p->skel;
	bool session = s->method == PROBE_SESSION;

	k->rodata->filter_mode = s->filter;
	k->rodata->filter_uid = s->uid;
	k->rodata->agent_pid = (uint32_t)getpid();
	k->rodata->agent_uid = geteuid();
	/* Who is asked for by name may fill the table. */
	k->rodata->user_targets_max = s->filter != FILTER_ALL ? UINT32_MAX
				      : s->user_targets       ? s->user_targets
							      : TARGETS_MAX / 2;
	k->rodata->record_all = s->record_all;
	if (s->sampling_rate) {
		k->rodata->sampling_rate = s->sampling_rate;
		k->rodata->sample_every = s->sampling_rate;
	}
	k->rodata->wake_bytes = (s->ring_bytes ? s->ring_bytes : RING_BYTES_DEFAULT) / 8;
	bpf_map__set_max_entries(
		k->maps.events, s->ring_bytes ? s->ring_bytes : RING_BYTES_DEFAULT);
	bpf_map__set_max_entries(k->maps.aggregates, aggregate_entries(p->cpus));

	k->rodata->stacks_wanted = s->stacks;
	k->rodata->python_wanted = s->python;
	if (!s->stacks)
		shrink_stack_maps(k);
	bpf_program__set_autoload(k->progs.call_session, session);
	bpf_program__set_autoload(k->progs.handle_session, session && !s->no_marks);
	bpf_program__set_autoload(k->progs.call_entry, !session);
	bpf_program__set_autoload(k->progs.call_return, !session);
	if (session) {
		bpf_program__set_expected_attach_type(k->progs.call_session, LINK_UPROBE_SESSION);
		bpf_program__set_expected_attach_type(k->progs.handle_session, LINK_UPROBE_SESSION);
	}
	bpf_program__set_autoload(k->progs.mark_hit, !s->no_marks);
	if (s->method != PROBE_PERF)
		bpf_program__set_expected_attach_type(k->progs.mark_hit, LINK_UPROBE_MULTI);
	if (s->method == PROBE_MULTI) {
		bpf_program__set_expected_attach_type(k->progs.call_entry, LINK_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(k->progs.call_return, LINK_UPROBE_MULTI);
	}
	bpf_program__set_autoload(k->progs.cpu_sample, s->sample_hz);
	if (s->sample_hz)
		k->rodata->sample_period_ns = NS_PER_S / s->sample_hz;
	k->rodata->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Asked only where loading failed: distributions give older numbers to kernels that can. */
static bool is_too_old(struct utsname *ret)
{
	unsigned major, minor;

	return uname(ret) == 0 && sscanf(ret->release, "%u.%u", &major, &minor) == 2 &&
	       (major < 5 || (major == 5 && minor < 15));
}

static int load_failed(int r, struct errinfo *reterr)
{
	struct utsname u;

	if (r == -EPERM)
		return errinfo_set(reterr, -EPERM,
			"tracing needs the capabilities CAP_BPF and CAP_PERFMON: run it with sudo, "
			"or grant them (setcap "
			"cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep)");
	if (complaint.program[0] && complaint.verifier[0])
		return errinfo_set(reterr, -EOPNOTSUPP,
			"this kernel's verifier refuses the program %s: %s", complaint.program,
			complaint.verifier);
	if (is_too_old(&u))
		return errinfo_set(reterr, -EOPNOTSUPP,
			"this kernel is too old: it is %s, and ingero needs Linux 5.15 or later with BTF",
			u.release);
	if (r == -ESRCH || r == -ENOENT || r == -EINVAL)
		return errinfo_set(reterr, -EOPNOTSUPP,
			"this kernel cannot run the probes (%s): ingero needs Linux 5.15 or later "
			"with BTF; 'ingero check' shows what is missing",
			complaint.first);
	return errinfo_set(
		reterr, r, "cannot load the probes: %s (%s)", strerror(-r), complaint.first);
}

/* For tests: a program that the verifier does not take, whatever the kernel is. */
static void refuse_one(struct probe *p)
{
	const char *name = p->settings.refuse_program;
	struct bpf_program *prog =
		name ? bpf_object__find_program_by_name(p->skel->obj, name) : NULL;

	if (prog)
		bpf_program__set_type(prog, BPF_PROG_TYPE_SOCKET_FILTER);
}

static int load(struct probe *p)
{
	memset(&complaint, 0, sizeof(complaint));
	probe_bpf__destroy(p->skel);
	p->skel = probe_bpf__open();
	if (!p->skel)
		return -ENOMEM;
	configure(p);
	parts_choose(&p->parts, &p->settings, p->skel->obj);
	refuse_one(p);
	return probe_bpf__load(p->skel);
}

/* The program that the kernel refused, or what of it can be done without, is left out. False: nothing can. */
static bool leave_out(struct probe *p)
{
	struct probe_settings *s = &p->settings;
	const char *program = complaint.program;
	char why[sizeof(complaint.program) + sizeof(complaint.verifier) + 64];
	enum probe_part part;

	snprintf(why, sizeof(why), "this kernel refuses %s: %s", program,
		complaint.verifier[0] ? complaint.verifier : complaint.first);
	if (!program[0])
		return false;
	if (parts_leave_out(&p->parts, program, why))
		return true;
	if (!strcmp(program, "cpu_sample") && s->sample_hz) {
		part = PART_SAMPLES;
		s->sample_hz = 0;
	} else if (!s->no_marks &&
		   (!strcmp(program, "mark_hit") || !strcmp(program, "handle_session"))) {
		part = PART_MARKS;
		s->no_marks = true;
	} else if (s->python) {
		part = PART_PYTHON; /* its walk is the largest part of those that are left */
		s->python = false;
	} else if (s->stacks) {
		part = PART_STACKS;
		s->stacks = false;
	} else {
		return false;
	}
	part_miss(&p->parts.missing, part, why);
	return true;
}

/* What is only counted goes to process 0 where the table has no room for the entry of a process: under process 0
 * there must be one, from the beginning. */
static int make_common_entries(struct probe *p)
{
	static const uint16_t ops[] = {HOST_PAGE_ALLOC, HOST_FILE_FAULT};
	size_t stride = (sizeof(struct wire_agg) + 7) & ~(size_t)7;
	_cleanup_free_ void *empty = calloc((size_t)p->cpus, stride);
	int fd = bpf_map__fd(p->skel->maps.aggregates);

	if (!empty)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct wire_agg_key key = {.source = SOURCE_HOST, .op = ops[i]};

		if (bpf_map_update_elem(fd, &key, empty, BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}

static int map_uses(struct probe *p)
{
	void *m = mmap(NULL, USES_BYTES, PROT_READ, MAP_SHARED, bpf_map__fd(p->skel->maps.uses), 0);

	if (m == MAP_FAILED)
		return -errno;
	p->uses = m;
	return 0;
}

static void miss_methods(struct probe *p)
{
	const char *why = "this kernel does not have them";

	if (p->settings.method_asked)
		why = "another way of attaching was asked for";
	if (p->settings.method != PROBE_SESSION)
		part_miss(&p->parts.missing, PART_SESSION, why);
	if (p->settings.method == PROBE_PERF)
		part_miss(&p->parts.missing, PART_MULTI, why);
}

int probe_open(const struct probe_settings *s, struct probe **ret, struct errinfo *reterr)
{
	_cleanup_(probe_closep) struct probe *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	libbpf_set_print(libbpf_note);
	p->settings = *s;
	p->cpus = libbpf_num_possible_cpus();
	if (p->cpus < 1)
		return errinfo_set(reterr, -EIO, "cannot read the number of CPUs");
	p->tally_stride = (sizeof(struct wire_tally) + 7) & ~(size_t)7;
	p->scratch = calloc((size_t)p->cpus, p->tally_stride);
	if (!p->scratch)
		return errinfo_set(reterr, -ENOMEM, "not enough memory to load the probes");
	miss_methods(p);
	do
		r = load(p);
	while (r < 0 && r != -ENOMEM && r != -EPERM && leave_out(p));
	if (r < 0)
		return load_failed(r, reterr);
	r = make_common_entries(p);
	r = r ?: map_uses(p);
	if (r < 0)
		return errinfo_set(
			reterr, r, "cannot make the probes' table of counts: %s", strerror(-r));
	r = parts_attach(p->skel->skeleton, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(p);
	return 0;
}

const struct parts_missing *probe_missing(const struct probe *p)
{
	return &p->parts.missing;
}

void probe_miss(struct probe *p, enum probe_part part, const char *why)
{
	part_miss(&p->parts.missing, part, why);
}

enum probe_method probe_method(const struct probe *p)
{
	return p->settings.method;
}

void probe_enable(struct probe *p)
{
	__atomic_store_n(&p->skel->bss->stopped_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->skel->bss->recording, true, __ATOMIC_RELEASE);
	__atomic_store_n(&p->skel->bss->enabled, true, __ATOMIC_RELEASE);
}

void probe_enable_calls(struct probe *p)
{
	__atomic_store_n(&p->skel->bss->enabled, true, __ATOMIC_RELEASE);
}

void probe_disable(struct probe *p)
{
	__atomic_store_n(&p->skel->bss->stopped_ns, mono_now().ns, __ATOMIC_RELAXED);
	__atomic_store_n(&p->skel->bss->recording, false, __ATOMIC_RELEASE);
	__atomic_store_n(&p->skel->bss->enabled, false, __ATOMIC_RELEASE);
}

void probe_launches_enable(struct probe *p, bool on)
{
	__atomic_add_fetch(&p->skel->bss->launch_switches, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&p->skel->bss->launches_enabled, on, __ATOMIC_RELEASE);
}

static uint32_t *targets_of(struct probe *p, uint32_t uid)
{
	return &p->skel->bss->user_targets[uid & (TARGET_USERS - 1)];
}

int probe_target_add(struct probe *p, uint32_t pid, uint32_t uid)
{
	uint32_t *used = targets_of(p, uid);

	if (uid && __atomic_load_n(used, __ATOMIC_RELAXED) >= p->skel->rodata->user_targets_max)
		return -EDQUOT;
	if (bpf_map_update_elem(bpf_map__fd(p->skel->maps.targets), &pid, &uid, BPF_NOEXIST) == 0)
		__atomic_add_fetch(used, 1, __ATOMIC_RELAXED);
	else if (errno != EEXIST)
		return -errno;
	return 0;
}

void probe_target_remove(struct probe *p, uint32_t pid)
{
	int fd = bpf_map__fd(p->skel->maps.targets);
	uint32_t uid;

	if (bpf_map_lookup_elem(fd, &pid, &uid) == 0 && bpf_map_delete_elem(fd, &pid) == 0)
		__atomic_sub_fetch(targets_of(p, uid), 1, __ATOMIC_RELAXED);
}

/* An iterator program runs over all threads while its file is read. */
static int run_iterator(struct bpf_link *link)
{
	_cleanup_fd_ int fd = bpf_iter_create(bpf_link__fd(link));
	char sink[64];
	ssize_t n;

	if (fd < 0)
		return -errno;
	do
		n = read(fd, sink, sizeof(sink));
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}

int probe_admit(struct probe *p)
{
	return run_iterator(p->skel->links.threads_admit);
}

int probe_sweep(struct probe *p, enum wire_loss reason, bool launches_only)
{
	p->skel->bss->sweep_reason = reason;
	p->skel->bss->sweep_launches = launches_only;
	return run_iterator(p->skel->links.calls_sweep);
}

void probe_limit_set(struct probe *p, unsigned source, unsigned op, uint64_t ns)
{
	if (source < WIRE_SOURCE_MAX && op < WIRE_OP_MAX)
		p->skel->bss->limit_ns[source * WIRE_OP_MAX + op] = ns;
}

void probe_nccl_layout(struct probe *p, unsigned library, const struct wire_nccl_layout *l)
{
	uint32_t key = library;

	bpf_map_update_elem(bpf_map__fd(p->skel->maps.nccl_layouts), &key, l, BPF_ANY);
}

void probe_tally(const struct probe *p, unsigned source, struct wire_tally *ret)
{
	uint32_t key = source;

	memset(ret, 0, sizeof(*ret));
	if (bpf_map_lookup_elem(bpf_map__fd(p->skel->maps.tallies), &key, p->scratch) < 0)
		return;
	for (int cpu = 0; cpu < p->cpus; cpu++) {
		const struct wire_tally *t =
			(const void *)((const char *)p->scratch + (size_t)cpu * p->tally_stride);

		ret->hits += t->hits;
		ret->sent += t->sent;
		ret->aggregated += t->aggregated;
		for (int i = 0; i < LOSS_COUNT; i++)
			ret->lost[i] += t->lost[i];
	}
}

static void add_cpu_losses(
	struct cpu_losses *l, unsigned source, int cpu, const struct wire_tally *t)
{
	for (int i = 0; i < LOSS_COUNT; i++) {
		if (!t->lost[i])
			continue;
		if (l->count == CPU_LOSSES_MAX)
			l->left_out++;
		else
			l->rows[l->count++] = (struct cpu_loss){
				(uint8_t)source, (uint8_t)i, (uint16_t)cpu, t->lost[i]};
	}
}

void probe_cpu_losses(const struct probe *p, struct cpu_losses *ret)
{
	ret->count = ret->left_out = 0;
	for (const struct wire_source_row *s = wire_sources; s->json; s++) {
		uint32_t key = s->id;

		if (bpf_map_lookup_elem(bpf_map__fd(p->skel->maps.tallies), &key, p->scratch) < 0)
			continue;
		for (int cpu = 0; cpu < p->cpus; cpu++)
			add_cpu_losses(ret, key, cpu,
				(const void *)((const char *)p->scratch +
					       (size_t)cpu * p->tally_stride));
	}
}

int probe_program(const struct probe *p, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(p->skel->obj, name));
}

int probe_map(const struct probe *p, const char *name)
{
	return bpf_object__find_map_fd_by_name(p->skel->obj, name);
}

uint64_t probe_hook_runs(const struct probe *p, uint32_t pid)
{
	uint64_t runs = 0;

	bpf_map_lookup_elem(bpf_map__fd(p->skel->maps.hook_runs), &pid, &runs);
	return runs;
}

const struct wire_use *probe_uses(const struct probe *p)
{
	return p->uses;
}

uint64_t probe_names_lost(const struct probe *p)
{
	return __atomic_load_n(&p->skel->bss->names_lost, __ATOMIC_RELAXED);
}
