# SPDX-License-Identifier: Apache-2.0
"""ranks_scenarios.py - what ranks.py plays: the job, its fault, how it is traced. Sizes and times are drawn by the round's
seed, so that another round is another set of runs of the same kinds.

To add one: a row in SCENARIOS. `job` are fields of ranks_job.py's specification that differ from DEFAULTS."""
import dataclasses
import random

DEFAULTS = {
    "kind": "ddp", "ranks": 3, "width": 1024, "layers": 6, "batch": 16384, "bucket_mb": 8, "accumulate": 1, "tensor": 0,
    "stages": 0, "microbatches": 8, "overlap": False, "clip": True, "last_extra": 0, "sync_every": 1, "host_s": 0.002,
    "decode_s": 0, "uneven": 0, "fault": "none", "rank": 0, "period": 1, "amount": 0, "evaluate_every": 0,
    "evaluate_all": True, "evaluate_batches": 4, "ballast_bytes": 0, "backend": "nccl",
}

# The function, or the words, that the cause must have; the problems that name it.
CAUSES = {
    "host": r"slow_augment|busy", "sleep": r"fetch_features", "loader": r"decode_sample|loader|worker",
    "gpu": r"extra_products|only it (runs|launches)|no other|more (GPU )?(kernels|launches|work)|launches more|GPU (is late|does more|has more)",
    "checkpoint": r"save_checkpoint|checkpoint", "quota": r"quota|cpu\.max|control group|throttl", "hog": r"nightly-build",
    "stopped": r"[Ss]topped|SIGSTOP", "hang": r"never|hang|waits? for|wait_for_operator", "mismatch": r"disagree|mismatch|differ|never|hang|waits? for",
    "link": r"link|transfer|takes|collective", "moving": r"load|length|uneven",
}
PROBLEMS = {"hang": {"hang"}, "mismatch": {"mismatch", "hang"}, "link": {"slow_link", "slow_collective"},
            "moving": {"uneven_load"}}


@dataclasses.dataclass
class Scenario:
    name: str
    job: dict = dataclasses.field(default_factory=dict)
    attach: str = "early"       # before the communicators, or "late": in a running job
    begin_s: float = 5          # ordinary steps that are traced before the fault
    fault_s: float = 7
    tracers: str = "one"        # or "nodes": one and a fleet-push for each rank, clocks apart
    outside: str = ""           # a fault that comes from outside: stopped, quota, hog
    beside: dict = None         # another, healthy job of the same ranks on the same node
    amount: tuple = ()          # the fault's size is drawn between these

    @property
    def fault(self):
        return self.outside or self.job.get("fault", "none")


def S(name, amount=(), attach="early", begin_s=5, fault_s=7, tracers="one", outside="", beside=None, **job):
    return Scenario(name, job, attach, begin_s, fault_s, tracers, outside, beside, amount)


PIPE = {"kind": "pipeline", "batch": 32768, "layers": 3}
OVERLAP = {**PIPE, "overlap": True}
FSDP = {"kind": "fsdp"}
TENSOR = {"kind": "tensor", "layers": 4}
EXPERTS = {"kind": "experts", "layers": 3}

SCENARIOS = [
    # Played first, with the build of the time: to develop against.
    S("ddp_host", (0.04, 0.09), fault="host"),
    S("ddp_host_late", (0.04, 0.09), attach="late", fault="host"),
    S("ddp_every7", (0.15, 0.25), attach="late", fault="host", period=7),
    S("ddp_gpu", (5, 9), fault="gpu"),
    S("ddp_stopped", (0.5, 0.8), outside="stopped"),
    S("ddp_checkpoint", fault="checkpoint", period=25, ballast_bytes=256 << 20),
    S("pipe_overlap", **OVERLAP),
    S("fsdp_plain", **FSDP),
    S("ddp_moving", (0.35, 0.55), fault="moving", begin_s=1, fault_s=10),
    S("ddp_evaluation", evaluate_every=25, evaluate_batches=6),
    S("nodes_sleep", (0.04, 0.08), tracers="nodes", fault="sleep"),
    S("pipe_host", (0.05, 0.09), fault="host", **PIPE),
    # Blind: faults and healthy jobs in turn.
    S("ddp_loader", (0.10, 0.16), fault="loader", decode_s=0.008),
    S("ddp_plain"),
    S("fsdp_host_late", (0.04, 0.09), attach="late", fault="host", **FSDP),
    S("nodes_host", (0.04, 0.08), tracers="nodes", fault="host"),
    S("pipe_overlap_host", (0.05, 0.09), fault="host", **OVERLAP),
    S("ddp_plain_late", attach="late"),
    S("tensor_host", (0.03, 0.06), fault="host", **TENSOR),
    S("ddp_quota", outside="quota"),
    S("pipe_uneven", last_extra=1, **{**PIPE, "layers": 6}),
    S("ddp_gpu_late", (5, 9), attach="late", fault="gpu"),
    S("experts_host", (0.03, 0.06), fault="host", **EXPERTS),
    S("accumulate_plain", accumulate=4),
    S("pipe_link", (2e8, 4e8), fault="link", **PIPE),
    S("ddp_always_late", (0.04, 0.09), begin_s=0, fault_s=10, attach="late", fault="sleep"),
    S("nodes_plain_late", tracers="nodes", attach="late"),
    S("ddp_hog", outside="hog"),
    S("fsdp_gpu", (5, 9), fault="gpu", **FSDP),
    S("tensor_plain", **TENSOR),
    S("ddp_every4_sleep", (0.12, 0.2), fault="sleep", period=4),
    S("pipe_late_sleep", (0.05, 0.09), attach="late", fault="sleep", **PIPE),
    S("experts_plain_late", attach="late", **EXPERTS),
    S("nodes_late_host", (0.04, 0.08), tracers="nodes", attach="late", fault="host"),
    S("fsdp_moving", (0.35, 0.55), fault="moving", begin_s=1, fault_s=10, **FSDP),
    S("ddp_loader_plain", decode_s=0.008),
    S("ddp_loader_late", (0.10, 0.16), attach="late", fault="loader", decode_s=0.008),
    S("ddp_always", (0.04, 0.09), begin_s=0, fault_s=10, fault="host"),
    S("pipe_overlap_late", attach="late", **OVERLAP),
    S("fsdp_checkpoint", fault="checkpoint", period=20, ballast_bytes=256 << 20, **FSDP),
    S("nodes_stopped", (0.5, 0.8), tracers="nodes", outside="stopped"),
    S("ddp_one_evaluates", evaluate_every=40, evaluate_batches=2, evaluate_all=False),
    S("tensor_gpu", (5, 9), fault="gpu", **TENSOR),
    S("ddp_every11", (0.2, 0.3), fault="host", period=11, fault_s=9),
    S("fsdp_plain_late", attach="late", **FSDP),
    S("accumulate_host", (0.05, 0.09), fault="host", accumulate=4),
    S("ddp_link", (6e8, 1.2e9), fault="link"),
    S("nodes_pipe", tracers="nodes", **PIPE),
    S("experts_sleep_late", (0.03, 0.06), attach="late", fault="sleep", **EXPERTS),
    S("pipe_overlap_gpu", (6, 10), fault="gpu", **OVERLAP),
    S("ddp_uneven", uneven=0.05),
    S("nodes_gpu", (5, 9), tracers="nodes", fault="gpu"),
    S("ddp_two_host", (0.04, 0.08), fault="host", ranks=2),
    S("pipe_plain_late", attach="late", **PIPE),
    S("nodes_checkpoint", tracers="nodes", fault="checkpoint", period=20, ballast_bytes=256 << 20),
    S("fsdp_host", (0.04, 0.09), fault="host", **FSDP),
    S("accumulate_late", attach="late", accumulate=8),
    S("ddp_stopped_late", (0.5, 0.8), attach="late", outside="stopped"),
    S("ddp_all_slow", (0.02, 0.03), fault="host", rank=-1),
    # These need the machine for themselves.
    S("ddp_eight_host", (0.05, 0.09), fault="host", ranks=8, batch=8192),
    S("pipe_data_plain", stages=2, ranks=4, **PIPE),
    S("tensor_data_host", (0.03, 0.06), attach="late", fault="host", tensor=2, ranks=4, **TENSOR),
    S("beside_host", (0.05, 0.09), fault="host", beside={"ranks": 3}),
    S("ddp_eight_plain", ranks=8, batch=8192, attach="late"),
    S("pipe_data_host", (0.05, 0.09), fault="host", stages=2, ranks=4, **PIPE),
    S("tensor_data_plain", tensor=2, ranks=4, **TENSOR),
    S("pipe_four_late", (0.05, 0.09), attach="late", fault="host", ranks=4, **OVERLAP),
    S("beside_plain", beside={"ranks": 3}),
    S("ddp_hang", fault="hang", fault_s=9, ranks=4),
    S("ddp_hang_late", attach="late", fault="hang", fault_s=9, ranks=4),
    S("pipe_hang", fault="hang", fault_s=9, ranks=4, **PIPE),
    S("ddp_mismatch", fault="mismatch", fault_s=6, ranks=4),
]
BY_NAME = {s.name: s for s in SCENARIOS}
NAMES = [s.name for s in SCENARIOS]
ALONE = NAMES[NAMES.index("ddp_eight_host"):]
DEVELOP = NAMES[:12]
BLIND = NAMES[12:-len(ALONE)]


def specification(scenario, seed, **more):
    """What ranks_job.py is given: defaults, the scenario's, sizes by chance."""
    chance = random.Random(f"{seed}/{scenario.name}")
    spec = {**DEFAULTS, **scenario.job, "seed": chance.randrange(1 << 30), **more}
    if "rank" not in scenario.job and scenario.fault != "checkpoint":
        spec["rank"] = chance.randrange(spec["ranks"])
    if scenario.amount:
        spec["amount"] = chance.uniform(*scenario.amount)
    if "batch" not in scenario.job and not scenario.job.get("uneven"):
        spec["batch"] = int(spec["batch"] * chance.choice([0.75, 1, 1.25])) // 512 * 512
    return spec
