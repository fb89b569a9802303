# SPDX-License-Identifier: BSD-3-Clause
"""What the tests with several machines share: network namespaces, each of which lives as long as a process that dies with the
test."""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from ndtest import LIMIT_S  # noqa: E402

CLONE_NEWNET = 0x40000000
PACKAGES = {"ip": "iproute2", "nft": "nftables", "conntrack": "conntrack", "unshare": "util-linux", "nsenter": "util-linux",
            "setpriv": "util-linux"}
LIBC = ctypes.CDLL(None, use_errno=True)


class Machine:
    """A network namespace, by the process that keeps it."""

    def __init__(self, name):
        self.name = name
        self.keeper = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo here; exec sleep infinity"],
                                       stdout=subprocess.PIPE)
        if self.keeper.stdout.readline() != b"here\n":
            raise OSError("no network namespace for %s" % name)
        self.path = "/proc/%d/ns/net" % self.keeper.pid
        self.run("ip", "link", "set", "lo", "up")

    def close(self):
        self.keeper.kill()
        self.keeper.wait()
        self.keeper.stdout.close()

    def command(self, *command):
        return ["nsenter", "--net=" + self.path, "--", *command]

    def run(self, *command, code=0, text=""):
        done = subprocess.run(self.command(*command), input=text, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != code:
            raise AssertionError("%s: %s: exit status %d: %s" % (self.name, " ".join(command), done.returncode, done.stderr))
        return done.stdout + done.stderr

    @contextlib.contextmanager
    def inside(self):
        """What is opened meanwhile, such as a socket, is there, and stays."""
        with open("/proc/self/ns/net", "rb") as here, open(self.path, "rb") as there:
            self._enter(there)
            try:
                yield
            finally:
                self._enter(here)

    @staticmethod
    def _enter(namespace):
        if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def enter_user_namespace():
    """Without root: root of a user namespace is enough for all of this, where the system allows it."""
    if os.geteuid() != 0:
        trial = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "true"], capture_output=True, text=True, check=False)
        if trial.returncode != 0:
            print("1..0 # SKIP not root, and no user namespaces: %s" % trial.stderr.strip())
            sys.exit(0)
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--net", sys.executable, os.path.abspath(sys.argv[0])])


def check_programs(*programs):
    for program in programs:
        if shutil.which(program) is None:
            sys.exit("%s: %s is missing: apt-get install %s" % (os.path.basename(sys.argv[0]), program, PACKAGES[program]))
