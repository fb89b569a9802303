#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""All-reduce of float32 among nodes in processes of their own, without any host beside them. Prints one JSON object.

    tests/ring/ring.py --members 4,8 --bytes 4K,1M,16M
    tests/ring/ring.py --members 4,8 --topology tests/ring/star.conf
    tests/ring/ring.py --members 4 --device 'udp:127.0.0.%d:20036,mtu=1500'

Each member has a free port of 127.0.0.1, or with --topology one of the memif ports of netdam-fabric. In a device's name %d is the
member's number from 1."""

import argparse
import contextlib
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from ndtest import BUILD, FABRIC, Failed, Program  # noqa: E402

MEMBER = os.path.join(BUILD, "tests", "ring", "member")
MPI = os.path.join(BUILD, "tests", "bench", "mpi_allreduce")
MPI_TUNING = ["-x", "MALLOC_MMAP_MAX_=0", "-x", "MALLOC_TRIM_THRESHOLD_=34359738368", "-x", "MALLOC_ARENA_MAX=1"]
MTU, ROUNDS, REPEATS, LIMIT_S = 9000, 5, 3, 900


class Member(Program):
    def __init__(self, rank, device, key, bytes_, names):
        super().__init__(MEMBER, "--device", device, "--rank", str(rank), "--key", hex(key), "--bytes", str(bytes_), *names,
                         limit_s=LIMIT_S, stdin=subprocess.PIPE)
        self.name = "member %d" % rank
        self.rank = rank

    def close(self):
        """It ends by itself when nobody tells it anything any more."""
        self.process.stdin.close()
        self.process.wait(LIMIT_S)
        self.kill()


class Ring:
    """A group of members, each of which can be killed and started again."""

    def __init__(self, devices, bytes_):
        self.devices, self.bytes, self.key = devices, bytes_, secrets.randbits(63) + 1
        self.names = [name.split(",")[0].removeprefix("udp:") for name in devices]
        self.members = []
        for rank in range(len(devices)):
            self.members.append(self._start(rank))
        try:
            for member in self.members:
                member.json()
        except Failed:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.close()

    def _start(self, rank):
        return Member(rank, self.devices[rank], self.key, self.bytes, self.names)

    def restart(self, rank):
        self.members[rank].close()
        self.members[rank] = self._start(rank)
        self.members[rank].json()

    def all(self, command, members=None):
        """One command for all at the same moment; what each answers."""
        members = self.members if members is None else members
        for member in members:
            member.tell(command)
        return [member.json() for member in members]

    def group(self):
        for answer in self.all("group"):
            if answer["status"] != "OK":
                raise Failed("no group: " + answer["status"])

    def all_reduce(self, bytes_, rounds):
        """Milliseconds of each round, which is over when the last member has the sum."""
        answers = self.all("run %d %d" % (bytes_, rounds))
        for rank, answer in enumerate(answers):
            if answer["status"] != "OK" or answer["wrong"] != 0:
                raise Failed("member %d: %s because of member %d, %d elements wrong" % (
                    rank, answer["status"], answer["member"], answer["wrong"]))
        return [max(times) for times in zip(*(answer["ms"] for answer in answers))]


def free_devices(count, mtu, bytes_):
    """Devices on free ports of this machine: all are taken at once, so that they differ."""
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            taken = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            taken.bind(("127.0.0.1", 0))
            ports.append(taken.getsockname()[1])
    return ["udp:127.0.0.1:%d,mtu=%d,memory=%d" % (port, mtu, memory_of(bytes_)) for port in ports]


def memory_of(bytes_):
    return (2 * bytes_ + (8 << 20) + 4095) // 4096 * 4096


def named_devices(template, count, bytes_):
    return [template.replace("%d", str(i + 1)) + ",memory=%d" % memory_of(bytes_) for i in range(count)]


class Fabric:
    """netdam-fabric, and devices at its memif ports."""

    def __init__(self, topology):
        self.directory = tempfile.TemporaryDirectory(prefix="netdam-ring-")
        self.control = os.path.join(self.directory.name, "control")
        self.topology = topology
        try:
            self.start()
        except Failed:
            self.directory.cleanup()
            raise

    def start(self):
        self.program = Program(FABRIC, "--json", "--control", self.control, self.topology)
        self.program.line()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.end()
        self.directory.cleanup()

    def kill(self):
        self.program.kill()

    def ask(self, command):
        done = subprocess.run([FABRIC, "ctl", self.control, command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed("netdam-fabric: %s: %s" % (command, done.stdout or done.stderr))
        return json.loads(done.stdout)

    def devices(self, count, mtu, bytes_):
        paths = [port["path"] for port in self.ask("list")["ports"] if port["type"] == "memif"]
        if len(paths) < count:
            raise Failed("the topology has %d memif ports" % len(paths))
        return ["udp:10.0.0.%d:20036,mtu=%d,memory=%d,memif=%s" % (i + 1, mtu, memory_of(bytes_), paths[i]) for i in range(count)]


def size(text):
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
    return int(text[:-1] if shift else text) << shift


def mpi_over_tcp(ranks, sizes):
    """Milliseconds of Open MPI's all-reduce over loopback TCP, by size."""
    run = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,tcp", *MPI_TUNING, "-np", str(ranks), MPI,
                          "1", *map(str, sizes)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if run.returncode != 0:
        raise Failed("mpirun: " + run.stderr.strip()[-500:])
    return {int(line.split()[0]): float(line.split()[1]) for line in run.stdout.splitlines()}


def wire_of(options):
    if options.topology:
        return "netdam-fabric, %s, mtu %d" % (os.path.basename(options.topology), options.mtu)
    return options.device or "udp, loopback, mtu %d" % options.mtu


def measure(count, sizes, options):
    bytes_ = max(sizes)
    taken = {one: [] for one in sizes}
    peer = {one: [] for one in sizes}
    has_mpi = shutil.which("mpirun") and os.path.exists(MPI)
    with contextlib.ExitStack() as stack:
        if options.topology:
            devices = stack.enter_context(Fabric(options.topology)).devices(count, options.mtu, bytes_)
        elif options.device:
            devices = named_devices(options.device, count, bytes_)
        else:
            devices = free_devices(count, options.mtu, bytes_)
        ring = stack.enter_context(Ring(devices, bytes_))
        ring.group()
        for _ in range(options.repeats):
            for one in sizes:
                taken[one] += ring.all_reduce(one, options.rounds)
            if options.mpi and has_mpi:
                for one, milliseconds in mpi_over_tcp(count, sizes).items():
                    peer[one].append(milliseconds)
    report = {"members": count, "type": "F32", "wire": wire_of(options), "sizes": []}
    if options.mpi and not has_mpi:
        report["skipped"] = "Open MPI, or build/tests/bench/mpi_allreduce, is missing: apt-get install openmpi-bin libopenmpi-dev"
    for one in sizes:
        median = statistics.median(taken[one])
        entry = {"bytes": one, "ms": round(median, 4), "least_ms": min(taken[one]), "GBps": round(one / median / 1e6, 4)}
        if peer[one]:
            entry["openmpi_tcp_ms"] = round(statistics.median(peer[one]), 4)
            entry["speedup"] = round(entry["openmpi_tcp_ms"] / median, 3)
        report["sizes"].append(entry)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", default="4,8", help="how many, one group after the other (default %(default)s)")
    parser.add_argument("--bytes", default="4K,1M,16M", help="sizes of a vector (default %(default)s)")
    parser.add_argument("--topology", help="file of a network with as many memif ports")
    parser.add_argument("--device", help="name of each member's device")
    parser.add_argument("--mtu", type=int, default=MTU, help="without --device (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="per size and repetition (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="in turn with Open MPI (default %(default)s)")
    parser.add_argument("--mpi", action="store_true", help="Open MPI over TCP beside it, where it is installed")
    options = parser.parse_args()
    sizes = [size(text) for text in options.bytes.split(",")]
    try:
        report = {"all_reduce_nodes": [measure(int(count), sizes, options) for count in options.members.split(",")]}
    except Failed as error:
        print("ring.py: %s" % error, file=sys.stderr)
        return 1
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
