# SPDX-License-Identifier: Apache-2.0
"""accuracy_scenarios.py - what accuracy.py plays: the job, the fault, and what a right answer is.

To add one: a row in SCENARIOS. The job is train_job.py, or another `program` (job_*.py, by job_clock.py); `job` are
fields of train_job.py's specification that differ from its defaults; `accept` lists (problem ids, text): the first
incident must have one of these ids and, where the id alone says too little, match the text; `lines` and `owners` are
ids of the step account, of the line that grew most; `culprit` must be named; `mark` is the FAULT mark of the user's
line that must be named. No `accept`: nothing is wrong, and no incident of MEDIUM or above may come."""
import dataclasses
import random

import accuracy_faults as outside

ANY_STEP = "goodput starvation slow-call"


@dataclasses.dataclass
class Scenario:
    name: str
    what: str
    kind: str = "base"         # see sizes()
    start: str = "before"      # the job is started before or after the agent
    from_start: bool = False   # the fault is there before the agent: nothing ordinary is recorded
    program: str = "train_job.py"
    fault: str = ""            # of train_faults.py, or of the program
    outside: type = None       # of accuracy_faults.py
    job: dict = dataclasses.field(default_factory=dict)
    accept: list = dataclasses.field(default_factory=list)
    lines: str = ""
    owners: str = ""
    culprit: str = ""
    mark: str = ""
    effect: str = "steps"      # what shows that the fault happened: steps, memory, nothing

    @property
    def is_healthy(self):
        return not self.accept


def loader(fault, workers, slow, **more):
    return {"loader_fault": fault, "workers": workers, "slow_steps": slow, **more}


CPU_WORDS = r"\bCPUs?\b"
LOADER_WORDS = r"\bloader|\bworker|train_data|data set"
GIL_WORDS = r"interpreter lock|interpreter's lock|\bGIL\b"
MEMORY_WORDS = r"reclaim|page fault|memory limit|host memory|memory of the host|memory\.high"
DISK_WORDS = r"\bdisk\b|flush|fsync|write|checkpoint"

SCENARIOS = [
    Scenario("cpu_hog", "48 busy processes on the job's CPUs", outside=outside.Hogs,
             accept=[("cpu-contention", ""), (ANY_STEP, CPU_WORDS)], lines="cpu", culprit="nightly-build"),
    Scenario("plain", "nothing", start="after"),
    Scenario("loader_compute", "a sample is computed for too long, 1 worker", fault="loader",
             job=loader("compute", 1, 3.0), accept=[("starvation goodput", LOADER_WORDS)], lines="host cpu",
             owners="loader", mark="loader_compute"),
    Scenario("churn", "empty_cache() and odd sizes in every step", fault="churn",
             accept=[("gpu-memory", ""), (ANY_STEP, r"alloc|cudaMalloc|cudaFree")], lines="allocation gpu",
             mark="churn"),
    Scenario("item_free", "item() in every step, GPU-bound", kind="gpu", job={"sync_every": 1}),
    Scenario("clocks", "clocks locked to 345 MHz", kind="gpu", outside=outside.Clocks,
             accept=[("throttle", ""), (ANY_STEP, r"clock")], lines="gpu launch copy"),
    Scenario("gc", "gc.collect() over 1.5 million objects every 20 steps", fault="gc", start="after",
             accept=[(ANY_STEP, r"garbage|collector|\bgc\b")], lines="gc", mark="gc"),
    Scenario("unpinned", "256 MiB from unpinned memory in every step", fault="unpinned", start="after",
             accept=[("pcie", ""), (ANY_STEP, r"cop(y|ies)|Memcpy")], lines="copy", mark="unpinned"),
    Scenario("gil_json", "a thread that serialises JSON", fault="gil_json", start="after",
             accept=[(ANY_STEP + " cpu-contention", GIL_WORDS)], lines="gil", mark="gil_json"),
    Scenario("evaluation", "an evaluation every 60 steps", start="after", job={"evaluate_every": 60}),
    Scenario("checkpoint", "torch.save() and fsync every 40 steps", fault="checkpoint",
             accept=[("checkpoint", ""), (ANY_STEP, DISK_WORDS)], lines="disk host copy gpu",
             mark="checkpoint"),
    Scenario("leak", "64 MiB of GPU memory kept in every step", kind="gpu", fault="leak", start="after",
             accept=[("memory-leak", "")], mark="leak", effect="memory"),
    Scenario("gpu_neighbour", "another process computes on the GPU", kind="gpu", outside=outside.Neighbour,
             accept=[("gpu-sharing", ""), (ANY_STEP, r"another process|other-job")],
             lines="gpu launch copy", culprit=r"other-job|another process"),
    Scenario("quota", "a container with 0.6 of a CPU", outside=outside.Quota,
             accept=[("cpu-contention", r"quota|limit|throttl|cgroup|container"),
                     (ANY_STEP, r"quota|throttl|cgroup|cpu\.max|CPU limit")], lines="cpu",
             culprit=r"quota|limit|throttl|cgroup|container"),
    Scenario("loader_wait", "a sample comes from slow storage (sleeps)", fault="loader", start="after",
             job=loader("wait", 4, 10.0), accept=[("starvation goodput", LOADER_WORDS)],
             lines="asleep network", owners="loader", mark="loader_wait"),
    Scenario("python_work", "20 ms of Python in every step", fault="python_work", start="after",
             accept=[(ANY_STEP, r"host code|Python|train_faults")], lines="host", owners="self",
             mark="python_work"),
    Scenario("hog_elsewhere", "4 busy processes on other CPUs", outside=outside.HogsElsewhere),
    Scenario("hog_always", "48 busy processes from the first to the last step", outside=outside.Hogs,
             from_start=True, accept=[("cpu-contention", ""), (ANY_STEP, CPU_WORDS)], lines="cpu",
             culprit="nightly-build"),
    Scenario("starved_always", "a starved loader from the first to the last step", fault="loader",
             from_start=True, job=loader("compute", 1, 3.0), accept=[("starvation goodput", LOADER_WORDS)],
             lines="host cpu", owners="loader", mark="loader_compute"),
    Scenario("larger_batch", "twice the batch from half-way on", kind="gpu", fault="larger_batch"),
    Scenario("one_core", "all threads on one CPU", outside=outside.OneCore, job={"decode_steps": 0.6},
             accept=[("cpu-contention", ""), (ANY_STEP, CPU_WORDS)], lines="cpu"),
    Scenario("loader_disk", "a sample is read from the disk, 1 worker", fault="loader",
             job=loader("disk", 1, 3.0, needs_shard=True),
             accept=[("starvation goodput", DISK_WORDS + "|" + LOADER_WORDS)], lines="disk", owners="loader",
             mark="loader_disk"),
    Scenario("item_costly", "two item() for every parameter", fault="item_costly", start="after",
             job={"sync_every": 4},
             accept=[(ANY_STEP, r"\bitem\b|synchroni|wait(s|ing)? for the GPU|train_faults")],
             lines="gpu copy launch call host", mark="item_costly"),
    Scenario("accumulation", "gradients of 4 batches", start="after", job={"accumulate": 4}),
    Scenario("metrics_lock", "a thread holds a lock while it waits", fault="metrics_lock", start="after",
             accept=[(ANY_STEP, r"lock|another thread")], lines="lock asleep", mark="metrics_lock"),
    Scenario("socket", "asks a slow server in every step", fault="socket", outside=outside.Server,
             start="after", accept=[("tool-calls", ""), (ANY_STEP, r"network|socket")], lines="network",
             mark="socket"),
    Scenario("power", "power limit of 200 W", kind="gpu", outside=outside.Power,
             accept=[("throttle", ""), (ANY_STEP, r"clock|power")], lines="gpu launch copy"),
    Scenario("varied", "sequences of eight lengths", job={"varied": True}),
    Scenario("few_workers", "1 worker where 4 are needed", fault="few_workers",
             job={"decode_steps": 2.2}, accept=[("starvation goodput", LOADER_WORDS)], lines="host cpu",
             owners="loader", mark="few_workers"),
    Scenario("log_fsync", "log lines flushed to the disk in every step", fault="log_fsync", start="after",
             accept=[("checkpoint " + ANY_STEP, DISK_WORDS)], lines="disk", mark="log_fsync"),
    Scenario("memory_limit", "the container's memory limit is reached", fault="memory_limit",
             outside=outside.MemoryLimit,
             accept=[(ANY_STEP + " gpu-memory", MEMORY_WORDS)],
             lines="memory"),
    Scenario("recompile", "a kernel compiled in every step", fault="recompile",
             accept=[("kernel-compiler", ""), (ANY_STEP + " cold-start", r"compil|nvrtc|module|first|host code")],
             lines="host call", mark="recompile"),
    Scenario("dynamo", "torch.compile for every new shape", fault="dynamo",
             accept=[("kernel-compiler", ""), (ANY_STEP + " cold-start", r"compil|dynamo|host code")],
             lines="host", mark="dynamo"),
    Scenario("idle_neighbour", "an idle process on the GPU", outside=outside.IdleNeighbour),
    Scenario("server", "an idle server: requests at random times", start="after", job={"serve": True}),
    Scenario("no_sync", "a loop that never waits", kind="gpu", job={"sync_every": 0}),
    Scenario("gil_spin", "a thread that counts without a pause", kind="tiny", fault="gil_spin",
             accept=[(ANY_STEP + " cpu-contention", GIL_WORDS)], lines="gil", mark="gil_spin"),
    Scenario("gil_short", "threads that take the interpreter's lock often, for short", kind="tiny",
             fault="gil_short", accept=[(ANY_STEP + " cpu-contention", GIL_WORDS)], lines="gil", mark="gil_short"),
    Scenario("container_hog", "48 busy processes of another container", outside=outside.NeighbourHogs,
             accept=[("cpu-contention noisy-neighbour", ""), (ANY_STEP, CPU_WORDS)], lines="cpu",
             culprit="neighbour-app"),
    Scenario("fresh_memory", "96 MiB of new memory touched in every step", fault="fresh_memory",
             accept=[(ANY_STEP, MEMORY_WORDS + "|host code|train_faults")], lines="memory host",
             mark="fresh_memory"),
    Scenario("autotune", "cuDNN tunes for every new length", fault="autotune", start="after",
             accept=[("kernel-compiler", ""), (ANY_STEP + " cold-start gpu-memory",
                                               r"cudnn|first|host code|alloc|launch|tun|GPU")],
             lines="host call launch gpu allocation", mark="autotune"),
    Scenario("plain_launch", "nothing, launch-bound", kind="launch"),
    # Programs of other kinds.
    Scenario("decode", "regular expressions over all the text after each token", program="job_decode.py",
             fault="decode", start="after", accept=[(ANY_STEP, r"host code|Python|job_decode")], lines="host",
             owners="self", mark="decode"),
    Scenario("pipes", "one of six environments behind pipes computes too much", program="job_pipes.py",
             fault="pipes", start="after", accept=[(ANY_STEP + " tool-calls", "another process")], lines="host",
             owners="process", mark="pipes"),
    Scenario("tool", "nvidia-smi started in every step", program="job_tool.py", fault="tool",
             accept=[(ANY_STEP + " tool-calls", "nvidia-smi")], lines="host lock call asleep", owners="process",
             mark="tool"),
    Scenario("file_lock", "another process holds the lock of a file", program="job_file_lock.py",
             fault="file_lock", start="after", accept=[(ANY_STEP, "another process|indexer")],
             lines="asleep lock", owners="process", culprit="indexer", mark="file_lock"),
    Scenario("async", "a call that blocks the event loop takes longer", program="job_async.py", fault="async",
             start="after", accept=[(ANY_STEP + " tool-calls", "another process|network")],
             lines="asleep network", mark="async"),
    Scenario("print", "whoever reads the output is slow", program="job_print.py", fault="print",
             accept=[(ANY_STEP, "another process|log-collector")], lines="asleep lock", owners="process",
             culprit="log-collector", mark="print"),
    Scenario("stopped", "stopped by a signal half of the time", outside=outside.Stopped,
             accept=[(ANY_STEP, "stopped")], lines="stopped", culprit="time-slicer"),
    Scenario("epochs", "the loader's workers start anew every 8 steps", program="job_epochs.py", fault="epochs",
             start="after", accept=[(ANY_STEP, "job_epochs|loader")], lines="host asleep lock disk", mark="epochs"),
    Scenario("feed", "a program that is nobody's child feeds it slowly", program="job_feed.py", fault="feed",
             start="after", accept=[(ANY_STEP, "another process|frame-feeder")], lines="asleep lock",
             owners="process", culprit="frame-feeder", mark="feed"),
    Scenario("threads", "48 threads on 4 CPUs", program="job_threads.py", fault="threads",
             accept=[("cpu-contention", "")], lines="cpu lock host", mark="threads"),
    Scenario("graphs", "a CUDA graph captured for every new length", program="job_graphs.py", fault="graphs",
             start="after", accept=[("graph-recapture", "")], mark="graphs"),
    Scenario("buffers", "a large buffer made anew in each step", program="job_buffers.py", fault="buffers",
             accept=[(ANY_STEP + " pcie", "host code|job_buffers|unpinned|memory")], lines="host memory copy",
             owners="self", mark="buffers"),
    Scenario("bursts", "requests in bursts", program="job_bursts.py", start="after"),
    Scenario("gan", "two optimizers", program="job_gan.py", start="after"),
    Scenario("pause", "a pause on purpose between epochs", program="job_pause.py"),
]

BY_NAME = {s.name: s for s in SCENARIOS}


def sizes(kind, round_number, seed):
    """Figures of the model: another size in each round."""
    rng = random.Random(f"{kind} {round_number} {seed}")
    if kind == "gpu":  # the GPU is the slower one
        return {"width": rng.choice((1536, 1792, 2048)), "layers": rng.choice((5, 6, 7)), "batch": 64, "seq": 256}
    if kind == "launch":  # the host is
        return {"width": 256, "layers": rng.choice((10, 12, 16)), "batch": 8, "seq": 64}
    if kind == "tiny":
        return {"width": 256, "layers": 1, "batch": 8, "seq": 64}
    return {"width": rng.choice((384, 512, 640)), "layers": rng.choice((6, 8, 10)),
            "batch": rng.choice((24, 32, 48)), "seq": rng.choice((128, 192, 256))}


def specification(s, round_number, seed):
    rng = random.Random(f"{s.name} {round_number} {seed}")
    spec = {"program": s.program, "vocabulary": 4096, "sync_every": rng.choice((1, 4, 0)), "workers": 4,
            "accumulate": 1, "evaluate_every": 0, "varied": False, "serve": False, "loader_fault": "", "decode_steps": 0.1,
            "slow_steps": 0.0, "needs_shard": False, "fault": s.fault, "seed": rng.randrange(1 << 30),
            "wait": s.start == "before", **sizes(s.kind, round_number, seed)}
    spec.update(s.job)
    return spec
