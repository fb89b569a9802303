#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two guests whose kernels use their NetDAM cards as network cards, over a QEMU netdev and over memif, beside WRITEs (TAP).

The kernels' addresses are in the cards' network, under the cards' MAC addresses."""

import functools
import json
import os
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
for folder in ("guest", "lib"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import boot  # noqa: E402
import ndtest  # noqa: E402

INITRD = os.path.join(ROOT, "build", "tests", "tap", "tap.cpio")
SECONDS = 600
BYTES = 2 << 20

check = functools.partial(ndtest.check, most=1000)  # all that a guest has said


class Host:
    """A guest that does what it is told, line by line."""

    def __init__(self, name, index, mtu, wire, memif):
        port = f"memif={memif},role={('server', 'client')[index]}" if memif else "netdev=net0"
        card = f"netdam,memdev=mem0,ip=10.0.0.{index + 1}/24,mtu={mtu},{port},firmware={boot.FIRMWARE}"
        self.card = f"10.0.0.{index + 1}"
        self.address = f"10.0.0.{index + 11}"
        self.guest = boot.Guest(f"tap-{name}-{index}", f"tap-inside.sh {self.address}", initrd=INITRD,
                                memories={"mem0": 32 << 20}, wires=[wire] if wire else [], args=[*boot.iommu(), "-device", card],
                                append="intel_iommu=on no_timer_check")

    def wait_ready(self):
        return json.loads(self.guest.wait_line(r'^(\{"event": "ready".*)$', SECONDS).group(1))

    def do(self, command):
        """Runs a command of its shell; its exit status, and what it has printed."""
        first = len(self.guest.lines)
        self.guest.send_line(command)
        status = int(self.guest.wait_line(r"^did (\d+)$", SECONDS).group(1))
        return status, "\n".join(self.guest.lines[first:])

    def must(self, command):
        status, text = self.do(command)
        if status != 0:
            raise boot.GuestError(f"{self.guest.name}: {command}: {text}")
        return text


def transfer(name, server, client):
    server.must("receive sum & soon listens 5001")
    client.must(f"head -c {BYTES} /dev/urandom >data && [ $(stat -c %s data) = {BYTES} ] && nc {server.address} 5001 <data")
    arrived = server.must("wait $!; cat sum").split()[0]
    sent = client.must("sha256sum <data").split()[0]
    check(arrived == sent, f"{name}: {BYTES} bytes by TCP to {server.address} arrive as they are", (arrived, sent))


def work(name, a, b, mtu):
    ready = [host.wait_ready() for host in (a, b)]
    check(all(r["mtu"] == mtu and r["interface"] == "netdam0" for r in ready), f"{name}: the interface has the card's MTU", ready)
    b.must("netdam_write_bw --serve 1M -d pci -j >serve.log & soon grep -q key serve.log")
    key = json.loads(b.must("cat serve.log").splitlines()[0])["key"]
    a.must(f"write_on {b.card} {key} & writer=$!")
    for one, other in ((a, b), (b, a)):
        status, text = one.do(f"ping -c 3 -w 100 -s {mtu - 28} {other.address}")
        check(status == 0, f"{name}: ping from {one.address} with whole packets", text)
        status, text = one.do(f"ping -c 1 -w 100 {other.card}")
        check(status == 0, f"{name}: the other card itself answers, beside its kernel", text)
        transfer(name, one, other)
    b.must("iperf3 -s -D -p 5201 && soon listens 5201")
    status, text = a.do(f"iperf3 -c {b.address} -n 2M -f m | grep -E 'receiver|error'")
    print("# " + text.replace("\n", "\n# "))
    check(status == 0 and "receiver" in text, f"{name}: iperf3", text)
    b.must("mkdir -p /root/.ssh; dropbearkey -t ed25519 -f host >/dev/null 2>&1; dropbear -r host -p 22 2>/dev/null; soon listens 22")
    public = a.must("dropbearkey -t ed25519 -f key 2>/dev/null | grep ^ssh-").splitlines()[0]
    b.must(f"echo '{public}' >/root/.ssh/authorized_keys; chmod -R go-rwx /root")
    status, text = a.do(f"dbclient -y -i key root@{b.address} 'ip -4 addr show netdam0' 2>/dev/null")
    check(status == 0 and b.address in text, f"{name}: ssh", text)
    text = a.must("touch stop; wait $writer; cat writes")
    writes = [line for line in text.splitlines() if line.startswith("writes ")]
    check(writes and int(writes[0].split()[1]) > 0 and "WRITE:" not in text, f"{name}: meanwhile WRITEs went over the same cards", text)
    for host in (a, b):
        text = host.must("kill $tap; wait $tap; tail -n 1 tap.log")
        last = json.loads([line for line in text.splitlines() if line.startswith("{")][-1])
        print(f"# {host.address}: {last}")
        check(last["refused"] == 0 and last["received_bytes"] > BYTES and host.do("ip link show netdam0")[0] != 0,
              f"{name}: the card has refused nothing, and the interface is gone", last)
        host.must("netdam-stat -d pci -c 1 -i 0.01 -a | grep main_memory_bytes | grep -q ' 0 '")
        host.guest.send_line("exit 0")
        check(host.guest.wait_exit(SECONDS) == 0, f"{name}: the guest ends")


def run(name, mtu, memif):
    with tempfile.TemporaryDirectory() as directory:
        wires = (None, None) if memif else boot.wire("stream")
        path = os.path.join(directory, "wire") if memif else None
        a, b = (Host(name, index, mtu, wires[index], path) for index in (0, 1))
        with a.guest, b.guest:
            work(name, a, b, mtu)


def main():
    boot.exit_on_signals()
    try:
        run("netdev", 1500, False)
        run("memif", 9000, True)
    except boot.GuestError as error:
        check(False, "the guests do what they are told", error)
    return ndtest.all_checked()


if __name__ == "__main__":
    sys.exit(main())
