#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""NetDAM, SoftRoCE and TCP between the same two guests, in turns, so that whatever else the machine does hits all of them.

Each guest has four cards (device to device by memif, the same with a payload CRC, through one switch of netdam-fabric, over
a QEMU netdev) and two virtio network cards of MTU 9000 (a netdev of datagrams; a tap and a bridge with segmentation
offload), with an RDMA device on each. SoftRoCE and TCP are measured on both of theirs, and the better one counts. Latencies
are full round trips on all sides: what perftest and qperf halve is doubled. Prints a table and writes the figures into
build/bench/fabric.json. Needs root, for a network namespace of its own with the taps and the bridge in it.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "guest"))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import boot  # noqa: E402
from figures import merge  # noqa: E402

O = os.path.join(ROOT, os.environ.get("O", "build"))
INITRD = os.path.join(O, "tests", "peers", "peers.cpio")
FABRIC = os.path.join(O, "sim", "netdam-fabric")
FIRMWARE = os.path.join(ROOT, "build", "firmware", "netdam-fw.so")
INSIDE = "NETDAM_PEERS_NAMESPACE"
SECONDS = 600
ONBOARD_BYTES = 32 << 20
KEY = "0x6e657464616d2121"
MTU = 9000
# Name, PCI slot; the number of the network follows from the position.
CARDS = [("memif", 0x10), ("memif_crc", 0x11), ("fabric", 0x12), ("netdev", 0x13)]
ETHERNETS = ["dgram", "tap"]
GOALS = {"write_8b_p50_us": 8, "write_64k_GBps": 3.5, "write_8b_mops": 1.5, "vs_rxe_read_lat_8b": 30, "vs_rxe_read_lat_4k": 30,
         "vs_rxe_bw": 80, "vs_tcp_lat": 20, "vs_tcp_bw": 25}
AT_MOST = {"write_8b_p50_us"}


def run(*command):
    subprocess.run(command, check=True)


class Guest:
    """A guest that does what it is told, line by line."""

    def __init__(self, number, directory, wires):
        self.number = number
        args = []
        for index, (name, slot) in enumerate(CARDS):
            port = {"memif": f"memif={directory}/memif.sock,role={('server', 'client')[number]}",
                    "memif_crc": f"memif={directory}/crc.sock,role={('server', 'client')[number]}",
                    "fabric": f"memif={directory}/{'ab'[number]}.sock,role=client",
                    "netdev": "netdev=net0"}[name]
            args += ["-device", f"netdam,memdev=mem{index},addr={slot:x}.0,ip={self.card(index)}/24,mtu={MTU},{port},"
                                f"mac=52:54:00:00:1{index}:0{number},"
                                f"payload-crc={'on' if name == 'memif_crc' else 'off'},firmware={FIRMWARE}"]
        args += ["-netdev", f"tap,id=tap,ifname=tap{number},script=no,downscript=no,vnet_hdr=on"]
        for netdev in ("net1", "tap"):
            args += ["-device", f"virtio-net-pci,romfile=,netdev={netdev},mac=52:54:00:00:0{int(netdev == 'tap')}:0{number}"]
        self.guest = boot.Guest(f"peers-{number}", f"peers-inside.sh {number + 1}", initrd=INITRD, args=args, wires=wires,
                                memories={f"mem{index}": ONBOARD_BYTES for index in range(len(CARDS))}, memory_mib=768)

    def card(self, index, number=None):
        return f"10.2.{index}.{(self.number if number is None else number) + 1}"

    def do(self, command):
        """Runs a command of the guest's shell; what it has printed."""
        first = len(self.guest.lines)
        self.guest.send_line(command)
        status = int(self.guest.wait_line(r"^did (\d+)$", SECONDS).group(1))
        text = "\n".join(self.guest.lines[first:])
        if status != 0:
            raise boot.GuestError(f"{self.guest.name}: {command}: {text}")
        return text


class Processors:
    """What the threads of some processes have computed since, and how long they have waited for a processor."""

    def __init__(self, pids):
        self.pids = pids
        self.before = dict(self.read())

    def read(self):
        for name, pid in self.pids.items():
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
                    path = f"/proc/{pid}/task/{task}"
                    with open(f"{path}/comm", encoding="ascii") as file:
                        part = file.read().strip()
                    with open(f"{path}/schedstat", encoding="ascii") as file:
                        computed, waited, _ = map(int, file.read().split())
                    kind = "vcpu" if part.startswith("CPU ") else "card" if part == "netdam" else "rest"
                    yield (task, name if name == "fabric" else f"{name} {kind}"), (computed, waited)

    def per(self, count):
        """{who: [us computed, us waited]} for one of `count` operations."""
        sums = {}
        for (task, who), after in self.read():
            before = self.before.get((task, who), (0, 0))
            total = sums.setdefault(who, [0, 0])
            for i in range(2):
                total[i] += (after[i] - before[i]) / 1e3 / count
        return sums


def netdam(client, index, tool, size, iterations):
    """One result of a netdam tool."""
    slot = CARDS[index][1]
    text = client.do(f"netdam-perf {tool} -d pci:0000:00:{slot:x}.0 -p {client.card(index, 1)} -k {KEY} -s {size} -n {iterations} "
                     "-j >result 2>error || { cat error; false; } && tr '\\n' ' ' <result && echo")
    return json.loads(text.splitlines()[0])["results"][0]


def netdam_latency(client, index, tool, size, iterations):
    return netdam(client, index, tool, size, iterations)["latency_ns"]["median"] / 1e3


def netdam_gbytes(client, index, tool, size, iterations):
    return netdam(client, index, tool, size, iterations)["bytes_per_second"] / 1e9


def netdam_mops(client, index, tool, size, iterations):
    return netdam(client, index, tool, size, iterations)["requests_per_second"] / 1e6


def perftest(server, client, index, tool, size, iterations):
    """The columns of the line of figures."""
    arguments = f"-d rxe{index} -x $(gid rxe{index}) -s {size} -n {iterations} -F"
    server.do(f"serve 18515 {tool} {arguments}")
    text = client.do(f"{tool} {arguments} 10.1.{index}.2 2>&1")
    server.do("wait $!")
    columns = next((line.split() for line in text.splitlines() if re.match(rf" *{size} +{iterations} ", line)), None)
    if columns is None:
        raise boot.GuestError(f"{tool} has no figures: {text}")
    return columns


def rxe_latency(server, client, index, tool, size, iterations):
    """The median of round trips in us: of writes perftest tells half."""
    return float(perftest(server, client, index, tool, size, iterations)[4]) * (2 if "write" in tool else 1)


def rxe_gbytes(server, client, index, tool, size, iterations):
    """perftest's MB are MiB."""
    return float(perftest(server, client, index, tool, size, iterations)[3]) * (1 << 20) / 1e9


UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "sec": 1e6, "KB/sec": 1e-6, "MB/sec": 1e-3, "GB/sec": 1}


def qperf(client, index, test, size, seconds):
    text = client.do(f"qperf -t {seconds} -m {size} 10.1.{index}.2 {test} 2>&1")
    match = re.search(r"(?:latency|bw) += +([\d.]+) (\S+)", text)
    if not match or match.group(2) not in UNITS:
        raise boot.GuestError(f"qperf {test}: {text}")
    return float(match.group(1)) * UNITS[match.group(2)]


def measure(server, client, fabric_pid, quick):
    """One round: {figure: value}, latencies in us, throughputs in GB/s, rates in millions a second; {figure: Processors.per}."""
    found = {}
    where = {}
    pids = {"A": client.guest.pid, "B": server.guest.pid, "fabric": fabric_pid}

    def watch(name, act, client, index, tool, size, iterations):
        processors = Processors(pids)
        found[name] = act(client, index, tool, size, iterations)
        where[name] = processors.per(iterations)

    many = 200 if quick else 20000
    for index, (name, _) in enumerate(CARDS):
        slow = 20 if name == "netdev" else 1
        watch(f"netdam_{name}_write_8b_us", netdam_latency, client, index, "write_lat", 8, many // slow)
        found[f"netdam_{name}_read_8b_us"] = netdam_latency(client, index, "read_lat", 8, many // slow)
        found[f"netdam_{name}_read_4k_us"] = netdam_latency(client, index, "read_lat", 4096, many // slow)
        watch(f"netdam_{name}_write_64k_GBps", netdam_gbytes, client, index, "write_bw", 65536, many // slow)
        found[f"netdam_{name}_read_64k_GBps"] = netdam_gbytes(client, index, "read_bw", 65536, many // slow)
        watch(f"netdam_{name}_write_8b_mops", netdam_mops, client, index, "write_bw", 8, many * 10 // slow)
    few = 50 if quick else 1000
    for index, name in enumerate(ETHERNETS):
        found[f"rxe_{name}_read_8b_us"] = rxe_latency(server, client, index, "ib_read_lat", 8, few)
        found[f"rxe_{name}_read_4k_us"] = rxe_latency(server, client, index, "ib_read_lat", 4096, few)
        found[f"rxe_{name}_write_8b_us"] = rxe_latency(server, client, index, "ib_write_lat", 8, few)
        found[f"rxe_{name}_write_64k_GBps"] = rxe_gbytes(server, client, index, "ib_write_bw", 65536, few)
        found[f"rxe_{name}_read_64k_GBps"] = rxe_gbytes(server, client, index, "ib_read_bw", 65536, few)
        found[f"tcp_{name}_8b_us"] = 2 * qperf(client, index, "tcp_lat", 8, 1 if quick else 2)
        found[f"tcp_{name}_64k_GBps"] = qperf(client, index, "tcp_bw", 65536, 1 if quick else 2)
    return found, where


def middle(wheres):
    """Medians over the rounds: {figure: {who: [us computed, us waited]}}; who had next to no part in it is left out."""
    result = {}
    for figure in wheres[0]:
        everybody = {who: [statistics.median(one[figure].get(who, (0, 0))[i] for one in wheres) for i in range(2)]
                     for who in wheres[0][figure]}
        least = sum(computed for computed, _ in everybody.values()) / 50
        result[figure] = {who: pair for who, pair in everybody.items() if pair[0] > least}
    return result


def figures(rounds):
    """Medians over the rounds, and the ratios of medians. Of two networks of a peer the better one counts."""
    median = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}

    def best(pick, peer, what):
        return pick(median[f"{peer}_{name}_{what}"] for name in ETHERNETS)

    result = {"write_8b_p50_us": median["netdam_memif_write_8b_us"], "write_64k_GBps": median["netdam_memif_write_64k_GBps"],
              "write_8b_mops": median["netdam_memif_write_8b_mops"]}
    for name in ("memif_crc", "fabric", "netdev"):
        result |= {f"write_8b_p50_us_{name}": median[f"netdam_{name}_write_8b_us"],
                   f"write_64k_GBps_{name}": median[f"netdam_{name}_write_64k_GBps"],
                   f"write_8b_mops_{name}": median[f"netdam_{name}_write_8b_mops"]}
    result |= {
        "vs_rxe_read_lat_8b": best(min, "rxe", "read_8b_us") / median["netdam_memif_read_8b_us"],
        "vs_rxe_read_lat_4k": best(min, "rxe", "read_4k_us") / median["netdam_memif_read_4k_us"],
        "vs_rxe_write_lat_8b": best(min, "rxe", "write_8b_us") / median["netdam_memif_write_8b_us"],
        "vs_rxe_bw": median["netdam_memif_write_64k_GBps"] / best(max, "rxe", "write_64k_GBps"),
        "vs_rxe_read_bw": median["netdam_memif_read_64k_GBps"] / best(max, "rxe", "read_64k_GBps"),
        "vs_tcp_lat": best(min, "tcp", "8b_us") / median["netdam_memif_write_8b_us"],
        "vs_tcp_bw": median["netdam_memif_write_64k_GBps"] / best(max, "tcp", "64k_GBps"),
    }
    return median, result


@contextlib.contextmanager
def fabric(directory):
    """One switch between the third cards."""
    path = os.path.join(directory, "switch.conf")
    with open(path, "w", encoding="ascii") as file:
        file.write('ports = ( { name = "a"; }, { name = "b"; } );\n'
                   'shapes = ( { kind = "star"; name = "s"; members = ( "a", "b" ); } );\n')
    process = subprocess.Popen([FABRIC, "--json", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        if not process.stdout.readline():
            raise boot.GuestError("netdam-fabric has ended")
        yield process.pid
    finally:
        process.terminate()
        process.communicate()


def bridge():
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "bridge", "mtu", "9000", "type", "bridge")
    run("ip", "link", "set", "bridge", "up")
    for number in range(2):
        run("ip", "tuntap", "add", "dev", f"tap{number}", "mode", "tap", "vnet_hdr")
        run("ip", "link", "set", f"tap{number}", "mtu", "9000", "master", "bridge", "up")


def run_rounds(rounds, quick):
    bridge()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        fabric_pid = stack.enter_context(fabric(directory))
        wires = list(zip(boot.wire("stream"), boot.wire("dgram")))
        guests = [Guest(number, directory, wires[number]) for number in (0, 1)]
        for guest in guests:
            stack.enter_context(guest.guest)
        for guest in guests:
            guest.guest.wait_line("^ready$", SECONDS)
        client, server = guests
        # What has made a region may sleep: the target's processor has no part in what follows.
        for index, (_, slot) in enumerate(CARDS):
            server.do(f"netdam-perf write_lat --serve 8M -d pci:0000:00:{slot:x}.0 -k {KEY} -j >serve{index} 2>&1 & "
                      f"soon grep -q key serve{index} && kill -STOP $!")
        server.do("serve 19765 qperf")
        return zip(*[measure(server, client, fabric_pid, quick) for _ in range(rounds)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one brief round, into fabric-quick.json: to see that it works")
    options = parser.parse_args()
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        try:
            os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
        except OSError as error:
            sys.exit(f"peers.py: unshare: {error.strerror}")
    boot.exit_on_signals()
    try:
        rounds, wheres = run_rounds(1 if options.quick else options.rounds, options.quick)
    except (boot.GuestError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"peers.py: {error}")
    median, result = figures(rounds)
    for name, value in median.items():
        print(f"{name:32} {value:12.3f}")
    print()
    for name, value in result.items():
        goal = GOALS.get(name)
        print(f"{name:32} {value:12.3f}" + ("" if goal is None else f"   goal {'<=' if name in AT_MOST else '>='} {goal}"))
    where = middle(wheres)
    print("\nProcessor time of each operation, us, and in brackets how long whoever could have run waited for a processor:")
    for name, everybody in where.items():
        print(f"{name:32} " + ", ".join(f"{who} {computed:.2f} ({waited:.2f})" for who, (computed, waited) in everybody.items()))
    path = os.path.join(O, "bench", "fabric-quick.json" if options.quick else "fabric.json")
    merge(path, result | {"guests": {"accelerator": boot.accelerator(), "rounds": rounds, "medians": median,
                                        "processor_us": where}})
    print(f"\n{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
