# SPDX-License-Identifier: Apache-2.0
"""charts.py - the charts of packaging/helm, rendered (tools/helm-render), and what tests ask of the objects."""
import json
import os
import subprocess
import sys
from rig import BUILD, SOURCE, scratch

CHARTS = SOURCE / "packaging/helm"
AGENT, CLUSTER = "ingero", "ingero-cluster"
# What has no default because only the operator knows it.
NEEDED = ["storage.className=gold", "storage.encrypted=true", "tls.secretName=ingero-tls",
          "auth.aclSecret.secretName=ingero-acl", "echo.libraryImage=registry.example.org/ingero-duckdb:1.5.5-0.1.0"]
IMAGE = "registry.example.org/ingero"


def render(chart, *settings, values=None, args=(), json_output=True, image=IMAGE):
    """(objects, sentence): one of them is None. @settings are of --set; @values is a dict, given as a file. @image is
    the operator's, unless it is None."""
    command = [SOURCE / "tools/helm-render", "--strict", "--namespace", "gpu", *args]
    command += ["--json"] if json_output else []
    if values is not None:
        with open(scratch("values.yaml"), "w") as f:
            json.dump(values, f)
        command += ["-f", scratch("values.yaml")]
    for one in ([f"image.repository={image}"] if image else []) + list(settings):
        command += ["--set", one]
    done = subprocess.run([*command, "rel", CHARTS / chart], capture_output=True, text=True,
                          env=dict(os.environ, BUILD=str(BUILD)))
    if done.returncode == 69:
        print(done.stderr.strip())
        sys.exit(77)
    if done.returncode:
        return None, done.stderr
    return (json.loads(done.stdout) if json_output else done.stdout), None


def objects(chart, *settings, **kw):
    found, sentence = render(chart, *settings, **kw)
    assert found is not None, sentence
    return found


def one(found, kind):
    (match,) = [o for o in found if o["kind"] == kind]
    return match


def pod_of(found):
    return next(o["spec"]["template"]["spec"] for o in found if o["kind"] in ("DaemonSet", "StatefulSet"))


def container(found, name):
    return next(c for c in pod_of(found)["containers"] if c["name"] == name)


def leaves(value, path=""):
    """(path, value) of everything in a tree that is neither map nor list."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}")
    elif isinstance(value, list):
        for n, below in enumerate(value):
            yield from leaves(below, f"{path}[{n}]")
    else:
        yield path, value
