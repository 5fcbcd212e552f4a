# SPDX-License-Identifier: Apache-2.0
"""names.py - a hundred names that want to be code, and a recording that is full of them."""
import json
import sqlite3

RUN = "window.ran=(window.ran||0)+1"
TAGS = [
    f"<script>{RUN}</script>", f"</script><script>{RUN}</script>", f"<img src=x onerror='{RUN}'>",
    f'<img src="data:," onerror="{RUN}">', f"<svg onload='{RUN}'></svg>", f"<svg><script>{RUN}</script></svg>",
    f"<body onload='{RUN}'>", f"<details open ontoggle='{RUN}'>x</details>", f"<video><source onerror='{RUN}'></video>",
    f"<input autofocus onfocus='{RUN}'>", "<iframe srcdoc='<script>parent.ran=(parent.ran||0)+1</script>'></iframe>",
    f"<a href='javascript:{RUN}'>x</a>", f"<math><mtext><img src=x onerror='{RUN}'></mtext></math>",
    "<style>*{display:none!important}</style>", "<link rel=stylesheet href=//evil.test/x.css>", "<base href=//evil.test/>",
    "<meta http-equiv=refresh content='0;url=//evil.test'>", "<form action=//evil.test><button>x</button></form>",
    "<object data=//evil.test></object>", "<embed src=//evil.test>", f"<template><img src=x onerror='{RUN}'></template>",
    f"\"><img src=x onerror='{RUN}'>", f"'><svg onload='{RUN}'>", f"--><script>{RUN}</script>", f"]]><script>{RUN}</script>",
    f"</title><script>{RUN}</script>", f"</style><script>{RUN}</script>", f"</textarea><img src=x onerror='{RUN}'>",
    f"<marquee onstart='{RUN}'>x</marquee>", f"<audio src=x onerror='{RUN}'></audio>",
]
WORDS = [
    f"javascript:{RUN}", f"{{{{constructor.constructor('{RUN}')()}}}}", f"${{{RUN}}}", f"`;{RUN};`", f"';{RUN};//", f'";{RUN};//',
    "__proto__", "constructor", "hasOwnProperty", "toString", "undefined", "null", "NaN", "0x0", "-1", "../../etc/passwd",
    "#main", "?since=all", "a&b=c", "%3Cscript%3E", "&lt;script&gt;", "&#60;script&#62;", "\\u003cscript\\u003e", "url(//evil.test)",
    "expression(alert(1))", "@import '//evil.test'", "'; DROP TABLE events; --", "=cmd|' /C calc'!A0", "+1+1", "*/ x /*",
]
MARKS = [
    "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b[31mred\x1b[0m", "\x9b31m", "\x07\x08\x7f", "a\x00b", "\u202egpj.exe", "\u2066x\u2069", "\u2067evil\u2069",
    "\u202dabc", "\u200f\u200e", "a\u200bb", "\ufeffbom", "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301", "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d",
    "\u2028line", "\u2029para", "\r\nSet-Cookie: x=1", "tab\tbed", "line\nbroken", "\u00ad\u00ad", "\u3164", "\u115f", "\U000e0041\U000e0042", "\ufe0f",
    "\uff1cscript\uff1e", "x" * 600, "\u202e" * 50, "\U0001f4a9" * 40, "\u0627\u0644\u0639\u0631\u0628\u064a\u0629", "\u05d0\u05d1\u05d2 (1)", "a\u061cb",
]
NAMES = TAGS + WORDS + MARKS
NAMES += [f"<img src=x onerror='{RUN}'>{i}" for i in range(100 - len(NAMES))]


def fill(db):
    """Names of processes, commands, functions, files, GPUs, labels, sessions and of the node become hostile."""
    c = sqlite3.connect(db)
    found = c.execute("SELECT * FROM processes LIMIT 1")
    row = dict(zip([d[0] for d in found.description], found.fetchone()))
    text = [n.replace("\x00", "\\0") for n in NAMES]
    for n, name in enumerate(text):
        new = dict(row, pid=100000 + n, comm=name, cmdline=name, start_time=n)
        c.execute(f"INSERT INTO processes ({', '.join(new)}) VALUES ({', '.join('?' * len(new))})", list(new.values()))
        c.execute("INSERT OR REPLACE INTO process_names VALUES (?, ?, 0)", (100000 + n, name))
    c.execute("DELETE FROM process_names WHERE pid < 100000")
    for n, (pid,) in enumerate(c.execute("SELECT DISTINCT pid FROM events").fetchall()):
        c.execute("UPDATE events SET comm = ? WHERE pid = ?", (text[n % 30], pid))
    for n, (pid,) in enumerate(c.execute("SELECT DISTINCT peer_pid FROM events WHERE peer_pid > 0").fetchall()):
        c.execute("UPDATE events SET peer_comm = ? WHERE peer_pid = ?", (text[(n + 5) % len(text)][:15], pid))
    k = 0
    for h, frames in c.execute("SELECT hash, frames FROM stack_traces").fetchall():
        frames = json.loads(frames)
        for f in frames:
            for key in ("s", "f", "pf", "pfn"):
                if key in f:
                    f[key] = text[k % len(text)]
                    k += 1
        c.execute("UPDATE stack_traces SET frames = ? WHERE hash = ?", (json.dumps(frames), h))
    c.execute("UPDATE gpu_samples SET name = ? WHERE gpu = 0", (text[2],))
    c.execute("UPDATE gpu_samples SET name = ?, uuid = ? WHERE gpu = 1", (text[66], text[1]))
    c.execute("UPDATE sessions SET gpu_model = ?, ingero_ver = ?", (text[0], text[3]))
    node = text[2]
    for table in ("events", "collectives", "gpu_samples", "system_snapshots", "sessions", "processes", "accounting", "coverage"):
        c.execute(f"UPDATE {table} SET node = ?", (node,))
    c.commit()
    c.close()
    return text
