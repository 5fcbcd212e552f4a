# SPDX-License-Identifier: Apache-2.0
"""pages.py - what the tests of docs/ share: the shell blocks of a page and their marks, the commands in them, what the
programs' own help knows, and what a page points to."""
import functools
import os
import re
import shlex
import subprocess
from rig import BUILD, SOURCE

PROGRAMS = ("ingero", "ingero-cluster")
FENCE = re.compile(r"^(?:<!-- ([\w:,. -]+?) -->\n)?```(\w*)\n(.*?)^```$", re.M | re.S)
WRAPPERS = ("sudo", "srun", "systemd-run", "taskset")
WORD = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-zA-Z])\b")


def blocks(text, language="sh"):
    """[(mark or '', text)] of the fenced blocks in @language; the mark is the comment in the line before."""
    return [(mark, body) for mark, kind, body in FENCE.findall(text) if kind == language]


def lines(body):
    """The commands of a block: continued lines joined, comments left out."""
    joined = body.replace("\\\n", " ")
    return [" ".join(line.split()) for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@functools.cache
def help_of(program, command):
    r = subprocess.run([BUILD / program, command, "--help"], capture_output=True, text=True, timeout=30)
    return r.stdout if r.returncode == 0 and "Flags:" in r.stdout else ""


@functools.cache
def commands_of(program):
    text = subprocess.run([BUILD / program, "help"], capture_output=True, text=True, timeout=30).stdout
    return set(re.findall(r"^  ([a-z][a-z-]*)  ", text[text.index("Commands:"):], re.M)) | {"help", "version"}


@functools.cache
def flags_of(program, command):
    text = help_of(program, command)
    listed = [line.strip().split("  ")[0] for line in text[text.index("Flags:"):].split("\n\n")[0].splitlines()[1:]]
    return {flag for line in listed for flag in WORD.findall(line)}


def calls(line):
    """[(program, words)] of our programs where a shell line runs them: first in a command, or behind what runs others."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    found, state, before = [], "begin", ""
    for word in lexer:
        if re.fullmatch(r"[|&;()]+", word):
            state = "begin"
        elif isinstance(state, list):
            state.append(word)
        elif before == "--" or state == "begin":
            if os.path.basename(word) in PROGRAMS:
                state = []
                found.append((os.path.basename(word), state))
            elif word in WRAPPERS or re.match(r"\w+=", word):
                state = "begin"
            elif not word.startswith("-") and not before.startswith("-"):  # neither a wrapper's flag nor its value
                state = "other"
        before = word
    return found


def faults(line):
    """What our programs would not understand in a shell line: [] if all of it."""
    said = []
    for program, words in calls(line):
        if not words:
            continue
        command = words[0]
        if command.startswith("-"):
            said += [] if command in ("--help", "-h") else [f"{program} {command}: no command"]
        elif command not in commands_of(program):
            said.append(f"{program} {command}: no such command")
        elif command not in ("help", "version"):
            own = words[1:words.index("--")] if "--" in words else words[1:]  # behind it stands another program
            for word in own:
                flag = word.split("=")[0]
                if re.fullmatch(r"--[a-z].*|-[a-zA-Z]", flag) and flag not in flags_of(program, command):
                    said.append(f"{program} {command} {flag}: no such flag")
    return said


def missing(name):
    """What a page links to, or names as a path of the tree, and does not exist."""
    text = (SOURCE / name).read_text()
    links = [l for l in re.findall(r"\]\(([^)#:\s]+)\)", text)]
    paths = re.findall(r"`((?:src|sim|tests|tools|docs|bench|packaging|deploy)/[\w./*-]+)`", text)
    return ([l for l in links if not (SOURCE / name).parent.joinpath(l).exists()] +
            [p for p in paths if not list(SOURCE.glob(p.rstrip("/"))) and "NN" not in p])
