# SPDX-License-Identifier: Apache-2.0
"""corpus.py - recordings reduced to some kB each, what is true of them, and what the engine says.

A file NAME.xz is text (corpus.h) that corpus-reduce made of a recording. verdicts.json says of each:

  set       "dev": looked at while the engine is worked on; "holdout": only counted, to report
  truth     what is right:
    problem   "" if the program is healthy: then nothing of MEDIUM or above may be said
    problems  ids of problems that are right names for it
    words     or regular expressions of which one must be in the summary or the root cause
    culprit   who must be named: a command, or "rank N"; "": nobody in particular
    place     "file.py", "file.py:LINE" or "file.py:function": where in the program; "": not asked for
    low       true: that problem is never more than LOW
    also      ids that may be said beside it, because they are true as well
    aside     a regular expression: who else was busy on that machine and is set aside, by culprit
  said      what the engine said when `INGERO_CORPUS=write` was last run: for review, not judged

Judged is the first incident of MEDIUM or above that is not set aside: right (cause, and the culprit or the
place if the truth has one), half (the cause only, or right but not first or LOW), wrong (something else),
silent (nothing), and of a healthy program quiet or alarm.
"""
import json
import lzma
import os
import pathlib
import re
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", FOLDER.parents[1] / "build"))
VERDICTS = FOLDER / "verdicts.json"
OUTCOMES = ["right", "half", "wrong", "silent", "quiet", "alarm"]


def load():
    return json.loads(VERDICTS.read_text())


def save(verdicts):
    """One file a line, so that a change of one is a change of one line."""
    files = ",\n".join(f"  {json.dumps(name)}: {json.dumps(verdicts['files'][name], ensure_ascii=False)}"
                       for name in sorted(verdicts["files"]))
    VERDICTS.write_text(f'{{\n "floor": {json.dumps(verdicts["floor"])},\n "files": {{\n{files}\n }}\n}}\n')


def chosen(verdicts, holdout=False):
    return sorted(n for n, f in verdicts["files"].items() if (f["set"] == "holdout") == holdout)


def replay(texts, *options):
    """What corpus-replay prints of {name: text}."""
    joined = "".join(f"file {name}\n{text}" for name, text in texts.items())
    r = subprocess.run([BUILD / "tests" / "corpus" / "corpus-replay", *options], input=joined,
                       capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"corpus-replay: {r.stderr.strip()}")
    return [json.loads(line) for line in r.stdout.splitlines()]


def text_of(name):
    return lzma.decompress((FOLDER / f"{name}.xz").read_bytes()).decode()


def is_aside(incident, truth):
    return bool(truth.get("aside") and incident["culprit"] and re.search(truth["aside"], incident["culprit"])
                and incident["problem"] not in truth.get("problems", []))


def words_of(incident):
    return f"{incident['summary']} {incident['root_cause']}"


def names_cause(incident, truth):
    return incident["problem"] in truth.get("problems", []) or \
        any(re.search(w, words_of(incident), re.I) for w in truth.get("words", []))


def names_place(text, place):
    file, _, at = place.partition(":")
    return place in text if not at or at.isdigit() else file in text and at in text


def names_who(incident, truth):
    """The culprit or the place, if the truth has one of them."""
    culprit, place = truth.get("culprit", ""), truth.get("place", "")
    rank = re.fullmatch(r"rank (\d+)", culprit)
    if not culprit and not place:
        return True
    if rank and incident["culprit_rank"] == int(rank[1]):
        return True
    text = words_of(incident)
    return bool(culprit and not rank and (incident["culprit"] == culprit or culprit in text)
                or place and names_place(f"{incident['place']} {text}", place))


def heard_of(incidents, truth):
    """Those of MEDIUM or above that count; a truth that is told with LOW by design ("low") counts as well."""
    return [i for i in incidents if not is_aside(i, truth) and i["problem"] not in truth.get("also", [])
            and (i["severity"] != "LOW" or truth.get("low") and i["problem"] in truth["problems"])]


def judge(incidents, truth):
    heard = [i for i in incidents if not is_aside(i, truth)]
    loud = heard_of(incidents, truth)
    if not truth["problem"]:
        return "alarm" if loud else "quiet"
    if loud and names_cause(loud[0], truth):
        return "right" if names_who(loud[0], truth) else "half"
    if any(names_cause(i, truth) for i in heard):
        return "half"
    return "wrong" if loud else "silent"


def said(incidents, truth):
    loud = [i for i in incidents if i["severity"] != "LOW" and not is_aside(i, truth)]
    return f"{loud[0]['severity']} {loud[0]['problem']}: {loud[0]['summary']}" if loud else ""


def play(verdicts, holdout=False):
    """{name: (outcome, what corpus-replay said)} of the files of a set."""
    names = chosen(verdicts, holdout)
    answers = {a["file"]: a for a in replay({n: text_of(n) for n in names})}
    return {n: (judge(answers[n]["incidents"], verdicts["files"][n]["truth"]), answers[n])
            for n in names}


def forgotten(verdicts):
    """Of the files that are looked at, cut off again and again as somebody who watches sees them: how many incidents were
    said with MEDIUM or above on the way, those that the answer in the end does not say, and the files of which the answer
    was right on the way and is not in the end."""
    names = chosen(verdicts)
    count, gone, lost = 0, [], []
    for answer in replay({n: text_of(n) for n in names}, "--live"):
        name, truth = answer["file"], verdicts["files"][answer["file"]]["truth"]
        count += len(answer["said"])
        gone += [(name, i) for i in answer["said"] if not i["is_told"]]
        if truth["problem"] and judge(answer["incidents"], truth) not in ("right", "half") and \
                any(judge([i], truth) == "right" for i in answer["said"]):
            lost.append(name)
    return count, gone, lost


def print_calibration(played, verdicts):
    """Of first incidents of MEDIUM or above: how sure, and how often right, by thirds of the confidence; the error is
    the mean distance of the two, by the number in each."""
    pairs = sorted((loud[0]["confidence"], outcome == "right") for name, (outcome, answer) in played.items()
                   for loud in [heard_of(answer["incidents"], verdicts["files"][name]["truth"])] if loud)
    error = 0
    for low, high in ((0, 0.6), (0.6, 0.75), (0.75, 0.9), (0.9, 1.01)):
        within = [p for p in pairs if low <= p[0] < high]
        if not within:
            continue
        sure = sum(c for c, _ in within) / len(within)
        right = sum(r for _, r in within) / len(within)
        error += abs(sure - right) * len(within) / len(pairs)
        print(f"said with {low:.0%} to {min(high, 1):.0%}: {len(within)}, {sure:.0%} on average, {right:.0%} right")
    print(f"calibration error: {100 * error:.0f} points of {len(pairs)}")


def count(played):
    return {o: sum(1 for outcome, _ in played.values() if outcome == o) for o in OUTCOMES}
