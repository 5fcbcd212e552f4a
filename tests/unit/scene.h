/* SPDX-License-Identifier: Apache-2.0 */
/* scene.h - builds recordings for the tests of diagnose/: calls, stays, requests, aggregates.
 *
 * Times are microseconds from a fixed start. Every event gets the next seq, so evidence can be
 * checked. A scene is released with scene_done(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/recording.h"
#include "base/macros.h"

#define SCENE_T0_NS ((int64_t)1774099490 * 1000000000)
#define VICTIM      4821U
#define HOG         8821U
#define PARENT      100U

struct scene {
	struct event *events;
	size_t event_count, event_cap;
	struct aggregate *aggregates;
	size_t aggregate_count;
	struct host_sample *samples;
	size_t sample_count;
	uint64_t seed;
};

static inline void scene_done(struct scene *s)
{
	free(s->events);
	free(s->aggregates);
	free(s->samples);
	*s = (struct scene){0};
}

static inline _unused_ uint64_t scene_random(struct scene *s, uint64_t below)
{
	s->seed = s->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (s->seed >> 33) % below;
}

static inline struct event *scene_add(struct scene *s, uint8_t source, uint16_t op, uint32_t pid,
	uint32_t tid, int64_t at_us, int64_t dur_us)
{
	struct event *e;

	if (s->event_count == s->event_cap) {
		s->event_cap = s->event_cap ? s->event_cap * 2 : 1024;
		s->events = realloc(s->events, s->event_cap * sizeof(*s->events));
		if (!s->events)
			abort();
	}
	e = &s->events[s->event_count++];
	*e = (struct event){.source = source,
		.op = op,
		.pid = pid,
		.tid = tid,
		.weight = 1,
		.start.ns = SCENE_T0_NS + at_us * 1000,
		.dur_ns = (uint64_t)dur_us * 1000,
		.seq = s->event_count};
	snprintf(e->comm, sizeof(e->comm), pid == VICTIM ? "python3" : "other");
	return e;
}

static inline _unused_ struct event *scene_call(
	struct scene *s, uint16_t op, int64_t at_us, int64_t dur_us)
{
	return scene_add(s, SOURCE_CUDA, op, VICTIM, VICTIM, at_us, dur_us);
}

/* A stay of thread @tid of the victim; @wait_us of it runnable; @flags WIRE_PREEMPTED, … */
static inline _unused_ struct event *scene_stay(struct scene *s, uint32_t tid, int64_t at_us,
	int64_t dur_us, int64_t wait_us, uint16_t flags, uint32_t peer_pid, const char *peer)
{
	struct event *e = scene_add(s, SOURCE_HOST, HOST_SCHED_SWITCH, VICTIM, tid, at_us, dur_us);

	e->wait_ns = (uint64_t)wait_us * 1000;
	e->flags = flags;
	e->peer_pid = peer_pid;
	snprintf(e->peer_comm, sizeof(e->peer_comm), "%s", peer);
	return e;
}

static inline _unused_ struct event *scene_io(struct scene *s, uint16_t op, uint32_t pid,
	const char *comm, int64_t at_us, int64_t dur_us, uint64_t kib)
{
	struct event *e = scene_add(s, SOURCE_IO, op, pid, pid, at_us, dur_us);

	e->arg0 = kib * 2;
	e->dev = 259U << 20 | 1;
	snprintf(e->comm, sizeof(e->comm), "%s", comm);
	return e;
}

static inline _unused_ void scene_sample(struct scene *s, int64_t at_us, double cpu_pct)
{
	s->samples = realloc(s->samples, (s->sample_count + 1) * sizeof(*s->samples));
	if (!s->samples)
		abort();
	s->samples[s->sample_count++] = (struct host_sample){
		.time.ns = SCENE_T0_NS + at_us * 1000, .cpu_pct = cpu_pct, .mem_pct = 40};
}

/* 5 s aggregates of all calls that are in the scene now. */
static inline _unused_ void scene_aggregate(struct scene *s)
{
	for (size_t i = 0; i < s->event_count; i++) {
		const struct event *e = &s->events[i];
		int64_t bucket = e->start.ns - e->start.ns % 5000000000;
		struct aggregate *a = NULL;

		if (e->source != SOURCE_CUDA && e->source != SOURCE_DRIVER)
			continue;
		for (size_t k = s->aggregate_count; k-- > 0 && !a;)
			if (s->aggregates[k].bucket.ns == bucket &&
				s->aggregates[k].pid == e->pid && s->aggregates[k].op == e->op &&
				s->aggregates[k].source == e->source &&
				s->aggregates[k].flags == (e->flags & WIRE_NESTED))
				a = &s->aggregates[k];
		if (!a) {
			s->aggregates = realloc(
				s->aggregates, (s->aggregate_count + 1) * sizeof(*s->aggregates));
			if (!s->aggregates)
				abort();
			a = &s->aggregates[s->aggregate_count++];
			*a = (struct aggregate){.bucket.ns = bucket,
				.pid = e->pid,
				.source = e->source,
				.op = e->op,
				.flags = e->flags & WIRE_NESTED};
		}
		sketch_add(&a->sketch, e->dur_ns, 1);
		a->stored++;
	}
}

static inline _unused_ struct recording scene_recording(const struct scene *s)
{
	return (struct recording){.events = s->events,
		.event_count = s->event_count,
		.aggregates = s->aggregates,
		.aggregate_count = s->aggregate_count,
		.samples = s->samples,
		.sample_count = s->sample_count,
		.node = "gpu-1"};
}

/* @n ordinary calls of @op, one every @every_us from @from_us, each about @dur_us (+- 10 %). */
static inline _unused_ void scene_calm(
	struct scene *s, uint16_t op, int64_t from_us, int n, int64_t every_us, int64_t dur_us)
{
	for (int i = 0; i < n; i++)
		scene_call(s, op, from_us + i * every_us,
			dur_us * 9 / 10 + (int64_t)scene_random(s, (uint64_t)dur_us / 5 + 1));
}

/* One time round a loop that nothing is recorded of for @busy_us, and then waits @wait_us for the GPU. Returns when the
 * wait begins; *@at is where the next step does. */
static inline _unused_ int64_t scene_step(
	struct scene *s, int64_t *at, int64_t busy_us, int64_t wait_us)
{
	int64_t begin = *at + busy_us;

	scene_call(s, CUDA_STREAM_SYNC, begin, wait_us);
	*at = begin + wait_us;
	return begin;
}

/* @n ordinary steps of 50 ms, the last one of which is a wait of 1 ms. */
static inline _unused_ void scene_steps(struct scene *s, int64_t *at, int n)
{
	for (int i = 0; i < n; i++)
		scene_step(s, at, 48950 + (int64_t)scene_random(s, 100), 1000);
}

/* @n steps that take 19 ms longer because @name has the CPU when the GPU has done its work. */
static inline _unused_ void scene_hogged(
	struct scene *s, int64_t *at, int n, uint32_t pid, const char *name)
{
	for (int i = 0; i < n; i++) {
		int64_t begin = scene_step(s, at, 49000, 20000);

		scene_stay(s, VICTIM, begin + 950, 19000, 19000, WIRE_PREEMPTED, pid, name);
	}
}

/* The shared picture of contention: 20 s of steps of 50 ms, then 400 steps with a hog. */
static inline _unused_ void scene_hog(struct scene *s)
{
	int64_t at = 0;

	scene_steps(s, &at, 400);
	scene_hogged(s, &at, 400, HOG, "sim-cpu-hog");
}

/* @n short launches in the time before each wait that is in the scene now. */
static inline _unused_ void scene_launches(struct scene *s, int n)
{
	size_t count = s->event_count;

	for (size_t i = 0; i < count; i++) {
		int64_t at = (s->events[i].start.ns - SCENE_T0_NS) / 1000;

		for (int k = 0; s->events[i].op == CUDA_STREAM_SYNC && k < n &&
				s->events[i].source == SOURCE_CUDA;
			k++)
			scene_call(s, CUDA_LAUNCH, at - 1000 * (k + 1), 8);
	}
}

/* Of each 10 ms that slow steps lose the writer had 4.7 ms by the disk and 1.6 ms by the CPU, and for 3.7 ms
 * nobody ran instead: time without a CPU is more than the disk's, but no culprit has as much. */
static inline _unused_ void scene_writer(struct scene *s)
{
	int64_t at = 0;

	scene_steps(s, &at, 200);
	for (int i = 0; i < 100; i++) {
		int64_t from = at + 100;

		scene_step(s, &at, 59000, 1000);
		scene_stay(s, VICTIM, from, 1600, 1600, WIRE_PREEMPTED, HOG, "writer");
		scene_stay(s, VICTIM, from + 1700, 3700, 3700, 0, 0, "swapper/0");
		scene_stay(s, VICTIM, from + 5500, 4700, 0, WIRE_UNINTERRUPTIBLE, 0, "swapper/0");
		scene_io(s, IO_READ, VICTIM, "python3", from + 5490, 4720, 64);
		scene_io(s, IO_WRITE, HOG, "writer", from + 5000, 5500, 4096);
	}
}

static inline _unused_ void scene_fork(
	struct scene *s, uint32_t parent, uint32_t child, int64_t at_us)
{
	scene_add(s, SOURCE_HOST, HOST_PROCESS_FORK, parent, parent, at_us, 0)->peer_pid = child;
}

static inline _unused_ void scene_fail(
	struct scene *s, uint32_t pid, uint16_t op, int64_t at_us, int code)
{
	scene_add(s, SOURCE_CUDA, op, pid, pid, at_us, 10)->ret = code;
}

/* A parent that has used CUDA, and @children forked ones of which every call fails. */
static inline _unused_ void scene_forks(struct scene *s, int children)
{
	scene_add(s, SOURCE_CUDA, CUDA_MALLOC, PARENT, PARENT, 0, 100);
	for (int i = 0; i < children; i++) {
		uint32_t pid = PARENT + 1 + (uint32_t)i;
		int64_t at = 1000000 + i * 1000;

		scene_fork(s, PARENT, pid, at);
		for (int k = 0; k < 8; k++)
			scene_fail(s, pid, k % 2 ? CUDA_LAUNCH : CUDA_MALLOC, at + 100 + k, 3);
	}
}
