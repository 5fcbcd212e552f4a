# SPDX-License-Identifier: Apache-2.0
"""pods.py - runs containers of rendered pods as kubelet would, with runc: user, capabilities, seccomp, read-only root,
volumes and Secrets are those of the pod's own description. The image is the two programs with the libraries they need.
All pods are in one network of their own, where every Service has the address of the pods."""
import atexit
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
from rig import BUILD, SOURCE, scratch, start, wait_until

IP = "10.98.0.2"
PROFILE = pathlib.Path("/usr/share/containers/seccomp.json")
# As in the profiles of containerd and Docker, which Debian's older one lacks.
FINE = {"CAP_BPF": ["bpf"], "CAP_PERFMON": ["perf_event_open"]}
_running = []


def image():
    """The root folder of the image."""
    root = pathlib.Path(scratch("image"))
    if root.exists():
        return root
    for folder in ("usr/bin", "usr/lib/ingero", "etc", "proc", "sys", "dev", "tmp", "run/ingero", "var/lib/ingero",
                   "etc/ingero", "etc/ingero-secrets"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    duckdb = BUILD / "duckdb/libduckdb.so"
    files = [BUILD / "ingero", BUILD / "ingero-cluster"]
    for program in files:
        shutil.copy(program, root / "usr/bin")
    if duckdb.exists():
        shutil.copy(duckdb, root / "usr/lib/ingero")
        files.append(duckdb)
    for library in set(re.findall(r"(/\S+\.so\S*)", "".join(
            subprocess.run(["ldd", f], capture_output=True, text=True).stdout for f in files))):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/none\nnobody:x:65534:65534::/:/none\nnonroot:x:65532:65532::/:/none\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\nnonroot:x:65532:\n")
    return root


def serve_name(*names):
    """What the cluster's DNS would say."""
    (image() / "etc/hosts").write_text(f"127.0.0.1 localhost\n{IP} {' '.join(names)}\n")


class Network:
    def __init__(self):
        self.holder = start(["unshare", "--net", "sleep", "600"])
        wait_until(lambda: os.readlink(self.path()) != os.readlink("/proc/self/ns/net"))
        for words in (("link", "set", "lo", "up"), ("address", "add", f"{IP}/32", "dev", "lo")):
            subprocess.run([*self.enter(), "ip", *words], check=True)

    def path(self):
        return f"/proc/{self.holder.pid}/ns/net"

    def enter(self):
        return ["nsenter", f"--net={self.path()}"]

    def get(self, url, *args, timeout_s=8):
        """(status, body); status 0: no answer."""
        r = subprocess.run([*self.enter(), "curl", "-sk", "-m", str(timeout_s), "-w", "\n%{http_code}", *args, url],
                           capture_output=True, text=True)
        body, _, status = r.stdout.rpartition("\n")
        return int(status or 0), body


def seccomp(capabilities):
    """The runtime's default profile for a container with these, as OCI wants it; None: it is not installed."""
    if not PROFILE.exists():
        return None
    profile = json.loads(PROFILE.read_text())
    machine = {"aarch64": ("arm64", "SCMP_ARCH_AARCH64"), "x86_64": ("amd64", "SCMP_ARCH_X86_64")}[platform.machine()]
    rules = []
    for rule in profile["syscalls"]:
        only, never = rule.get("includes") or {}, rule.get("excludes") or {}
        if ("arches" in only and machine[0] not in only["arches"] or machine[0] in never.get("arches", [])
                or not set(only.get("caps", [])) <= set(capabilities) or set(never.get("caps", [])) & set(capabilities)):
            continue
        names = [n for n in rule["names"] if not any(n in calls and cap in capabilities for cap, calls in FINE.items())]
        rules.append({key: rule[key] for key in ("action", "args", "errnoRet") if rule.get(key) is not None} | {"names": names})
    rules += [{"names": calls, "action": "SCMP_ACT_ALLOW"} for cap, calls in FINE.items() if cap in capabilities]
    return {"defaultAction": profile["defaultAction"], "defaultErrnoRet": 1, "architectures": [machine[1]],
            "syscalls": [r for r in rules if r["names"]]}


class Pod:
    """One pod: its volumes are folders of the test. @secrets: {Secret: {key: text}}."""

    count = 0

    def __init__(self, network, spec, secrets, config=None):
        Pod.count += 1
        self.network, self.spec = network, spec
        self.folder = pathlib.Path(scratch(f"pod{Pod.count}"))
        self.group = spec.get("securityContext", {}).get("fsGroup")
        for volume in spec["volumes"] + [{"name": "data", "persistentVolumeClaim": {}}]:
            self.make_volume(volume, secrets, config or {})

    def make_volume(self, volume, secrets, config):
        folder = self.volume(volume["name"])
        folder.mkdir(parents=True)
        texts, mode = {}, 0o644
        if "secret" in volume:
            secret = volume["secret"]
            held = secrets[secret["secretName"]]
            items = secret.get("items") or [{"key": k, "path": k} for k in held]
            texts = {item["path"]: held[item["key"]] for item in items}
            # kubelet gives files of a Secret to root, and to the pod's group if it has one.
            mode = secret["defaultMode"] | (0o440 if self.group else 0)
        elif "configMap" in volume:
            texts = config
        else:
            os.chmod(folder, 0o2775 if self.group else 0o755)
            os.chown(folder, 0, self.group or 0)
        if texts:
            (folder / "..1").mkdir()
            (folder / "..data").symlink_to("..1")
        for name, text in texts.items():
            (folder / "..1" / name).write_text(text)
            os.chmod(folder / "..1" / name, mode)
            os.chown(folder / "..1" / name, 0, self.group or 0)
            (folder / name).symlink_to(f"..data/{name}")

    def volume(self, name):
        return self.folder / "volumes" / name

    def run(self, name, node="node-1", without=(), args=None):
        found = next(c for c in self.spec["containers"] if c["name"] == name)
        return Container(self, found, node, without, args)


class Container:
    """@without: capabilities that are taken away; @args: other arguments than the pod's."""

    count = 0

    def __init__(self, pod, spec, node, without, args):
        Container.count += 1
        self.id = f"ingero-{os.getpid()}-{Container.count}"
        self.pod, self.spec = pod, spec
        self.bundle = pod.folder / self.id
        self.bundle.mkdir()
        context = {**pod.spec.get("securityContext", {}), **spec["securityContext"]}
        caps = [f"CAP_{c}" for c in context["capabilities"].get("add", []) if c not in without]
        env = {e["name"]: e.get("value", node) for e in spec.get("env", [])}
        argv = [re.sub(r"\$\((\w+)\)", lambda m: env[m[1]], a) for a in args or spec["args"]]
        (self.bundle / "config.json").write_text(json.dumps(self.config(context, caps, env, argv)))
        self.log = self.bundle / "log"
        self.process = start(["runc", "--root", scratch("runc"), "run", "--bundle", self.bundle,
                              "--pid-file", self.bundle / "pid", self.id], stdout=open(self.log, "w"),
                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        _running.append(self)

    def config(self, context, caps, env, argv):
        profile = seccomp(caps) if context["seccompProfile"]["type"] == "RuntimeDefault" else None
        binds = [{"destination": m["mountPath"], "type": "bind", "source": str(self.pod.volume(m["name"])),
                  "options": ["bind", "ro" if m.get("readOnly") else "rw"]} for m in self.spec["volumeMounts"]]
        linux = {"namespaces": [{"type": "mount"}, {"type": "ipc"}, {"type": "uts"},
                                {"type": "network", "path": self.pod.network.path()}],
                 "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
                 "readonlyPaths": ["/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]}
        if not self.pod.spec.get("hostPID"):
            linux["namespaces"].append({"type": "pid"})
        if profile:
            linux["seccomp"] = profile
        return {"ociVersion": "1.0.2", "hostname": "pod", "linux": linux,
                "root": {"path": str(image()), "readonly": context["readOnlyRootFilesystem"]},
                "process": {"terminal": False, "cwd": "/", "args": [f"/usr/bin/{self.spec['command'][0]}", *argv],
                            "env": ["PATH=/usr/bin", *(f"{k}={v}" for k, v in env.items())],
                            "noNewPrivileges": not context["allowPrivilegeEscalation"],
                            "user": {"uid": context["runAsUser"], "gid": context["runAsGroup"],
                                     "additionalGids": [self.pod.group] if self.pod.group else []},
                            "capabilities": {s: caps for s in ("bounding", "effective", "permitted")}},
                "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                           {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro", "nosuid", "noexec"]},
                           {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755", "nosuid"]},
                           *binds]}

    def pid(self):
        return int((self.bundle / "pid").read_text())

    def output(self):
        return self.log.read_text(errors="replace")

    def probe(self, kind):
        """Status of what the pod's description has kubelet ask; 0: no answer."""
        ask = self.spec[kind]["httpGet"]
        port = next(p["containerPort"] for p in self.spec["ports"] if p["name"] == ask["port"])
        return self.pod.network.get(f"{ask.get('scheme', 'HTTP').lower()}://{IP}:{port}{ask['path']}",
                                    timeout_s=self.spec[kind].get("timeoutSeconds", 1))[0]

    def stop(self, number=15, timeout=40):
        """The exit code."""
        if self.process.poll() is None:
            os.kill(self.pid(), number)
        return self.process.wait(timeout)


@atexit.register
def _clean():
    for c in _running:
        subprocess.run(["runc", "--root", scratch("runc"), "delete", "-f", c.id],
                       capture_output=True)


def image_settings():
    """As whom and with what the image starts, by the words of what makes it."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(SOURCE / "packaging"))
    import image as maker
    said = maker.settings("0")
    return {"entrypoint": said["Entrypoint"][0].rpartition("/")[2], "user": int(said["User"].partition(":")[0]),
            "env": dict(item.split("=", 1) for item in said["Env"])}


DOCKER_CAPS = {"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
               "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"}
FINE_CAPS = {"BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "CHECKPOINT_RESTORE", "SYS_ADMIN"}


def docker_run(network, line, folders):
    """A Container for a line `docker run …`, with the same rights. @folders: {path of the machine: the test's}."""
    words = line.split()
    assert words[:2] == ["docker", "run"], line
    said = image_settings()
    user, privileged, host, read_only, entry = said["user"], False, False, False, said["entrypoint"]
    escalate, caps, mounts, volumes, words = True, set(DOCKER_CAPS), [], [], words[2:]
    while words[0].startswith("-"):
        flag, _, value = words.pop(0).partition("=")
        if flag in ("-v", "-p", "--user", "--entrypoint", "--security-opt") and not value:
            value = words.pop(0)
        if flag == "-v":
            source, target, *rest = value.split(":")
            name = f"v{len(mounts)}"
            mounts.append({"name": name, "mountPath": target, "readOnly": rest == ["ro"]})
            volumes.append((name, folders[source]))
        elif flag == "--user":
            user = int(value)
        elif flag == "--entrypoint":
            entry = value
        elif flag == "--cap-add":
            caps.add(value)
        elif flag == "--cap-drop":
            caps = set() if value == "ALL" else caps - {value}
        elif flag == "--security-opt":
            escalate = escalate and value != "no-new-privileges"
        else:
            assert flag in ("--rm", "--privileged", "--pid", "--read-only", "-p"), line
            privileged, host = privileged or flag == "--privileged", host or (flag, value) == ("--pid", "host")
            read_only = read_only or flag == "--read-only"
    caps |= FINE_CAPS if privileged else set()
    spec = {"containers": [{
        "name": "c", "command": [entry], "args": words[1:], "volumeMounts": mounts,
        "env": [{"name": k, "value": v} for k, v in said["env"].items()],
        "securityContext": {"runAsUser": user, "runAsGroup": user, "readOnlyRootFilesystem": read_only,
                            "allowPrivilegeEscalation": escalate, "capabilities": {"add": sorted(caps) if user == 0 else []},
                            "seccompProfile": {"type": "Unconfined" if privileged else "RuntimeDefault"}}}],
        "volumes": [], "hostPID": host}
    pod = Pod(network, spec, {})
    for name, folder in volumes:
        pod.volume(name).symlink_to(folder)
    return pod.run("c")
