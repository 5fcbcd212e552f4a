# SPDX-License-Identifier: Apache-2.0
"""machine.py - a Debian of its own with a real systemd, for tests of units: the bare root filesystem of
tools/rootfs with our programs, units and users put into it, booted by systemd-nspawn. It has its own processes,
network and cgroups, and this machine's kernel, so that BPF programs can be loaded.

    m = Machine()              # skips the test where one cannot be booted
    m.run("systemctl", "start", "ingero-trace")
"""
import atexit
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from rig import BUILD, SIM, SOURCE, scratch, start, wait_until

UNITS = SOURCE / "packaging" / "systemd"
PLACES = {".service": "systemd/system/{0}", ".sysusers": "sysusers.d/{1}.conf", ".tmpfiles": "tmpfiles.d/{1}.conf",
          ".generator": "systemd/system-generators/{1}"}
# What ingero-trace.service asks for must be the machine's to give, and nspawn gives less than a real one has.
CAPABILITIES = "CAP_BPF,CAP_PERFMON,CAP_SYS_PTRACE,CAP_CHECKPOINT_RESTORE,CAP_DAC_READ_SEARCH"
CALLS = "bpf perf_event_open process_vm_readv landlock_create_ruleset landlock_add_rule landlock_restrict_self"


def give_up(why):
    print(f"no machine with systemd can be booted here: {why}")
    sys.exit(77)


def install(root, bin_folder="usr/bin"):
    """As `make install` puts it."""
    for program in ("ingero", "ingero-cluster"):
        shutil.copy(BUILD / program, root / bin_folder)
    for file in UNITS.iterdir():
        if file.suffix in PLACES:
            target = root / "usr/lib" / PLACES[file.suffix].format(file.name, file.stem)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    shutil.copytree(SIM, root / "opt/sim", ignore=shutil.ignore_patterns("*.p", "*.a"))


def cgroups():
    """The folders of this process in the hierarchies that systemd keeps: its own of version 1, and version 2."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        number, name, path = line.split(":", 2)
        if name == "name=systemd":
            mounts = ["systemd"]
        elif number == "0":
            mounts = ["unified", "."]
        else:
            continue
        for mount in mounts:
            folder = pathlib.Path("/sys/fs/cgroup") / mount / path.lstrip("/")
            if (folder / "cgroup.procs").exists():
                yield folder
                break


class Machine:
    def __init__(self, install=install):
        """@install puts ours into its root before it boots."""
        self.name = f"ingero-test-{os.getpid()}"
        tar = BUILD / "rootfs-systemd.tar"
        if not tar.exists():
            give_up(f"there is no {tar.name} (tools/rootfs makes it)")
        self.root = pathlib.Path(scratch("machine"))
        self.root.mkdir()
        subprocess.run(["tar", "-C", self.root, "-xf", tar], check=True)
        install(self.root)
        self.log = scratch("nspawn.log")
        self.leader = self.process = None
        self.groups = [folder / self.name for folder in cgroups()]
        atexit.register(self._end)
        try:
            for group in self.groups:
                group.mkdir()
        except OSError as e:
            give_up(f"no cgroup can be made: {e}")
        self.process = start(
            ["setpriv", "--pdeathsig", "TERM", "systemd-nspawn", "--boot", "--directory", self.root, "--machine", self.name,
             "--register=no", "--keep-unit", "--private-network", "--resolv-conf=off", "--timezone=off",
             "--link-journal=no", "--console=pipe", f"--capability={CAPABILITIES}", f"--system-call-filter={CALLS}",
             "systemd.unit=multi-user.target"],
            stdin=subprocess.DEVNULL, stdout=open(self.log, "w"), stderr=subprocess.STDOUT, preexec_fn=self._move)
        if not wait_until(self._is_up, seconds=60):
            give_up(" / ".join(pathlib.Path(self.log).read_text(errors="replace").splitlines()[:4]) or "no word of nspawn")

    def _move(self):
        """Into a cgroup of its own, or two machines at a time would share one."""
        for group in self.groups:
            (group / "cgroup.procs").write_text("0")

    def _end(self):
        if self.leader:  # the end of nspawn alone would leave it running
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(self.leader), signal.SIGKILL)
        if self.process:
            self.process.kill()
            self.process.wait()
        for group in self.groups:
            for folder, _, _ in os.walk(group, topdown=False):
                if not wait_until(lambda folder=folder: self._gone(folder), seconds=10):
                    print(f"# {folder} is left behind")
        with contextlib.suppress(OSError):
            os.rmdir(f"/run/systemd/nspawn/propagate/{self.name}")

    @staticmethod
    def _gone(folder):
        """Its last processes may be on their way out."""
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        return not os.path.exists(folder)

    def _is_up(self):
        """Nothing of ours is enabled: a machine that does not come up is not our doing."""
        if self.process.poll() is not None:
            return True if self.leader else give_up(pathlib.Path(self.log).read_text(errors="replace")[:400])
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if not children:
            return False
        self.leader = children[0]
        return self.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")

    def run(self, *args, spaces="-a", **kw):
        """A command inside: .returncode, .stdout, .stderr."""
        kw.setdefault("timeout", 120)
        return subprocess.run(["nsenter", "-t", self.leader, spaces, *map(str, args)], text=True, capture_output=True, **kw)

    def start(self, *args):
        """One that goes on."""
        return start(["nsenter", "-t", self.leader, "-a", *args])

    def systemctl(self, *args):
        return self.run("systemctl", *args)

    def show(self, unit, name):
        return self.run("systemctl", "show", "--value", "-p", name, unit).stdout.strip()

    def journal(self, unit):
        """Lines of the unit's programs, oldest first: (priority, text)."""
        out = self.run("journalctl", "-o", "json", "--no-pager", f"_SYSTEMD_UNIT={unit}.service").stdout
        rows = [json.loads(line) for line in out.splitlines()]
        return [(int(r.get("PRIORITY", 6)), r["MESSAGE"]) for r in rows if isinstance(r["MESSAGE"], str)]

    def about(self, unit):
        """What systemd itself says of the unit."""
        return self.run("journalctl", "-o", "cat", "--no-pager", "_PID=1", f"UNIT={unit}.service").stdout

    def write(self, path, text, mode=0o644):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def status(self, pid):
        """/proc/PID/status of a process inside."""
        return dict(line.split(":\t", 1) for line in self.run("cat", f"/proc/{pid}/status").stdout.splitlines() if ":\t" in line)

    def python(self, text, *args):
        """Python of this machine in the other's network, as its root."""
        return self.run(sys.executable, "-c", text, *args, spaces="-n")
