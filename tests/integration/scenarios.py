# SPDX-License-Identifier: Apache-2.0
"""scenarios.py - runs one file of sim/scenarios: a workload on the stand-in GPU with one fault, traced,
and explained. Keys beyond problem, not, culprit, workload, neighbours, env and seconds:

fails         true: the workload is expected to end with an error
gpu           [[second, {key: value}], ...]: what NVML says from then on (sim/NVML.md)
attach_after  trace only so many seconds after the workload began
kill          [second, "KILL"]: the signal the workload gets then
annotate      {"key": …, "every": seconds, "values": […]}: sent by `ingero annotate`, one after another
"""
import json
import os
import signal
import time
import rig
from rig import SIM, SOURCE, Trace, Workload, run, scratch, start

FOLDER = SOURCE / "sim/scenarios"
SEVERE = ("MEDIUM", "HIGH", "CRITICAL")
DEFAULT_GPU = {"gpus": 1, "gpu0.util_gpu": 90, "gpu0.throttle": 0}


def names():
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def _say(path, values):
    with open(path + ".next", "w") as file:
        file.writelines(f"{key} {value}\n" for key, value in {**DEFAULT_GPU, **values}.items())
    os.chmod(path + ".next", 0o644)
    os.rename(path + ".next", path)


def _timeline(s, trace_env, work):
    """What happens meanwhile, as (second, function)."""
    acts = []
    for at, values in s.get("gpu", []):
        acts.append((at, lambda v=values: _say(trace_env["SIM_NVML_STATE"], v)))
    if "kill" in s:
        at, name = s["kill"]
        acts.append((at, lambda: os.kill(work.pid, getattr(signal, "SIG" + name))))
    if "annotate" in s:
        a = s["annotate"]
        for i, value in enumerate(a["values"]):
            acts.append((0.5 + i * a["every"], lambda v=value: run(
                "annotate", "--label", f"{a['key']}={v}", "--pid", str(work.pid))))
    return sorted(acts, key=lambda act: act[0])


def explain(name):
    """The incidents of a run of @name; `rows` is how many rows the SQL of each found."""
    s = load(name)
    program, *args = s["workload"]
    if "--steps" in args and args[args.index("--steps") + 1] == "1000000":
        args += ["--duration", s["seconds"]]
    env = {}
    if "gpu" in s:
        state = scratch(name + ".nvml")
        os.chmod(os.path.dirname(state), 0o711)  # the sampling process is another user
        env = {"SIM_NVML_STATE": state, "INGERO_NVML_LIB": str(SIM / "libnvidia-ml.so.1")}
        _say(state, s["gpu"][0][1])
    os.environ.update(env)
    work = Workload(program, *args, env=s.get("env"), tally=False)
    if s.get("attach_after"):
        work.go()
        time.sleep(s["attach_after"])
    extra = ["--annotate"] if "annotate" in s else []
    trace = Trace("--pid", work.pid, *extra)
    begin = time.monotonic()
    if not s.get("attach_after"):
        work.go()
    others = [start([SIM / n[0], *n[1:]]) for n in s.get("neighbours", [])]
    for at, act in _timeline(s, env, work):
        time.sleep(max(0.0, begin + at - time.monotonic()))
        act()
    try:
        work.process.communicate(timeout=s["seconds"] + 30)
    finally:
        for other in others:
            other.terminate()
    if not s.get("fails") and work.process.returncode != 0:
        raise RuntimeError(f"{name}: the workload failed")
    time.sleep(0.5)
    trace.stop()
    for key in env:
        os.environ.pop(key)
    answer = run("explain", "--db", trace.db, "--json")
    incidents = json.loads(answer.stdout)
    for i in incidents:
        i["rows"] = len(trace.sql(i["evidence_sql"])) if i["evidence_sql"] else 0
    return incidents


def judge(s, incidents):
    """What is wrong with @incidents as the answer to scenario @s; [] if nothing."""
    found = {i["problem"] for i in incidents}
    severe = [i["summary"] for i in incidents if i["severity"] in SEVERE]
    wrong = []
    if s["problem"] and s["problem"] not in found:
        wrong.append(f"{s['problem']} was not found, but {sorted(found)}")
    if not s["problem"] and severe:
        wrong.append(f"healthy, but: {severe}")
    for problem in s["not"]:
        if [i for i in incidents if i["problem"] == problem and i["severity"] in SEVERE]:
            wrong.append(f"{problem} was reported")
    return wrong


def disturbed(s, incidents):
    """Whether the CPU or the disk was taken by what is no part of @s: then the machine was not quiet, and
    saying so is right."""
    severe = [i for i in incidents if i["severity"] in SEVERE]
    own = {n[0] for n in s.get("neighbours", [])}
    return bool(severe) and all(i["problem"] in ("slow-call", "cpu-contention", "noisy-neighbour") and
                                not own & {c["culprit"] for c in i["causes"]} for i in severe)
