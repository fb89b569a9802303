#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Types into the guests of `make guest` and `make pair` as a person would, through a pseudo terminal, and looks at the
captures with tshark (TAP)."""

import os
import shutil
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from terminal import ANSWER_SECONDS, ROOT, Terminal  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from ndtest import all_checked, check  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
HAND = os.path.join(HERE, "hand.py")
NODE = os.path.join("build", "sim", "netdam-node")
BOOT_SECONDS = 240


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def process_id(terminal, name):
    """QEMU's, as it is printed at the start; 0 if it is not."""
    match = terminal.expect(rf"guest {name}: QEMU is process (\d+)", 60)
    return int(match[1]) if match else 0


def left_behind(pids, directory):
    """What should not be there after the end: processes and sockets."""
    deadline = time.monotonic() + 60
    while any(is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [pid for pid in pids if pid and is_alive(pid)] + \
        [name for name in os.listdir(directory) if name.endswith((".console", ".qmp", ".hmp"))]


def tshark_lines(pcap, display_filter):
    command = ["tshark", "-n", "-2", "-X", "lua_script:docs/wireshark/netdam.lua", "-r", pcap, "-Y", display_filter]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300).stdout.splitlines()


def reach_by_kernel(terminal):
    """As docs/by-hand.md has it: a line from a program outside comes through netdam-tap."""
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outside.settimeout(ANSWER_SECONDS)
        terminal.type("netdamd 2>/dev/null & while [ ! -S /run/netdamd.sock ]; do sleep 0.1; done; netdam-tap &")
        if not terminal.expect(r"netdam0: .*, MTU 1500, on broker:"):
            return False
        terminal.type("ip addr add 10.0.2.16/24 dev netdam0")
        terminal.type(f"nc 10.0.2.2 {outside.getsockname()[1]}; echo came=$?")
        try:
            connection, _ = outside.accept()
        except OSError:
            return False
        with connection:
            connection.sendall(b"from outside\n")
        return terminal.expect(r"\nfrom outside\ncame=0")


def test_guest():
    """One guest, and a node on this machine that its card reaches through QEMU's user network."""
    directory = os.path.join(ROOT, "build", "hand")
    node = subprocess.Popen([os.path.join(ROOT, NODE), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    terminal = Terminal(HAND, "guest", "--pcap")
    try:
        ready = dict(item.split("=") for item in node.stdout.readline().split() if "=" in item)
        pids = [process_id(terminal, "guest")]
        if not check(terminal.expect("guest# ", BOOT_SECONDS), "guest: a prompt appears", terminal.text):
            return
        qmp = os.path.join(directory, "guest.qmp")
        check(os.path.exists(qmp) and os.path.exists(os.path.join(directory, "guest.hmp")), "guest: QMP and HMP are there")
        terminal.type("netdam-info")
        check(terminal.expect(r"device +pci:.*\n(.*\n)*generation +0x[0-9a-f]{16}") and terminal.expect("guest# "),
              "guest: netdam-info prints the card", terminal.text)
        terminal.type("netdam-regs status; echo regs=$?")
        check(terminal.expect(r"\nregs=0"), "guest: netdam-regs prints a register", terminal.text)
        terminal.type(f"netdam-mem fetch-add -d pci -p 10.0.2.2:{ready['port']} -k {ready['key']} -v 5; echo added=$?")
        check(terminal.expect(r"\n0\nadded=0"), "guest: the card works on a node outside", terminal.text)
        check(reach_by_kernel(terminal), "guest: its kernel reaches this machine over the same card", terminal.text)
        terminal.type("sleep 1000")
        time.sleep(1)
        os.write(terminal.fd, b"\x03")
        check(terminal.expect("guest# ", 60), "guest: Ctrl-C interrupts what runs in it", terminal.text)
        terminal.type("exit")
        check(terminal.wait() == 0, "guest: exit powers it off, and the command ends with 0", terminal.text)
        left = left_behind(pids, directory)
        check(all(pids) and not left, "guest: nothing is left behind", left)
        lines = tshark_lines(os.path.join(directory, "guest.pcap"), "netdam")
        check(any("OK to FETCH_ADD" in line for line in lines), "guest: the capture has the addition", "\n".join(lines))
    finally:
        terminal.end()
        node.terminate()
        node.wait()


def test_guest_left():
    """Leaving with Ctrl-] in the middle of the boot."""
    directory = os.path.join(ROOT, "build", "hand")
    terminal = Terminal(HAND, "guest")
    try:
        pids = [process_id(terminal, "guest")]
        terminal.expect(r"properly\.", 60)
        deadline = time.monotonic() + ANSWER_SECONDS
        while terminal.status is None and time.monotonic() < deadline:
            os.write(terminal.fd, b"\x1d")
            terminal.wait(1)
        left = left_behind(pids, directory)
        check(terminal.status is not None and all(pids) and not left, "guest: Ctrl-] leaves nothing behind", left)
    finally:
        terminal.end()


def test_pair():
    directory = os.path.join(ROOT, "build", "pair")
    pair = Terminal(HAND, "pair", "--pcap", "--no-tmux")
    consoles = {}
    try:
        pids = []
        for name in "ab":
            pids.append(process_id(pair, name))
            command = pair.expect(r"console  (\S+) (attach) (\S+)").groups()
            consoles[name] = Terminal(os.path.join(ROOT, command[0]), *command[1:])
        for name in "ab":
            # A prompt that came before somebody was there to see it has gone by.
            deadline = time.monotonic() + BOOT_SECONDS
            while not consoles[name].expect(f"{name}# ", 5) and time.monotonic() < deadline:
                consoles[name].type("")
            consoles[name].type("")
            if not check(consoles[name].expect(f"{name}# "), f"pair: {name}'s prompt appears", consoles[name].text):
                return
        a, b = consoles["a"], consoles["b"]
        b.type("netdam-share 1234 >/tmp/said & sleep 3; cat /tmp/said; echo shared=$?")
        check(b.expect(r"netdam-share ready address=10\.78\.0\.2 port=20036 bytes=16777216 key=0x1234\n"),
              "pair: b shares its card's memory", b.text)
        a.type("head -c 100000 /dev/urandom >/tmp/file; netdam-mem write -d pci -p $OTHER -k 0x1234 /tmp/file; echo wrote=$?")
        check(a.expect(r"\nwrote=0"), "pair: a writes into it", a.text)
        a.type("netdam-mem compare -d pci -p $OTHER -k 0x1234 /tmp/file; echo same=$?")
        check(a.expect(r"\nsame=0"), "pair: and reads the same", a.text)
        a.type("netdam-mem fetch-add -d pci -p $OTHER -k 0x1234 --address 8M --value 7; echo added=$?")
        check(a.expect(r"\n0\nadded=0"), "pair: and counts in it", a.text)
        b.type("netdam-info -c | grep requests-executed; kill %1; wait; exit")
        a.type("exit")
        check(pair.wait() == 0, "pair: it ends when both guests are off", pair.text)
        left = left_behind(pids, directory)
        check(all(pids) and not left, "pair: nothing is left behind", left)
    finally:
        for console in consoles.values():
            console.end()
        pair.end()
    for name in "ab":
        pcap = os.path.join(directory, f"{name}.pcap")
        lines = tshark_lines(pcap, "netdam.kind == 1")
        matched = tshark_lines(pcap, "netdam.kind == 1 and netdam.response_in")
        check(len(lines) > 100 and len(matched) == len(lines), f"pair: in {name}'s capture every request has its answer",
              f"{len(matched)} of {len(lines)}")
        wrong = tshark_lines(pcap, "netdam and (_ws.malformed or netdam.malformed or netdam.header_crc.status != 1 or "
                             "netdam.payload_crc.status != 1 or _ws.lua.error)")
        check(not wrong, f"pair: and nothing in it is wrong", "\n".join(wrong))


def tmux(path, *arguments):
    return subprocess.run(["tmux", "-S", path, *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_tmux():
    """The two panes, through tmux's own eyes."""
    directory = os.path.join(ROOT, "build", "pair")
    path = os.path.join("build", "pair", "tmux")
    environment = {"TERM": "vt100", "LINES": "40", "COLUMNS": "120"}
    os.environ.pop("TMUX", None)
    pair = Terminal(HAND, "pair", environment=environment)
    try:
        pids = [process_id(pair, name) for name in "ab"]
        for pane, name in enumerate("ab"):
            deadline = time.monotonic() + BOOT_SECONDS
            while f"{name}#\n" not in tmux(path, "capture-pane", "-p", "-t", f"netdam.{pane}") and \
                    time.monotonic() < deadline:
                pair.read(1)
                tmux(path, "send-keys", "-t", f"netdam.{pane}", "Enter")
            shown = tmux(path, "capture-pane", "-p", "-t", f"netdam.{pane}")
            check(f"{name}#" in shown, f"tmux: {name}'s prompt is in its pane", shown)
        for pane in (1, 0):
            tmux(path, "send-keys", "-t", f"netdam.{pane}", "exit", "Enter")
        check(pair.wait() == 0, "tmux: it ends when both guests are off", pair.text)
        left = left_behind(pids, directory)
        check(all(pids) and not left and not tmux(path, "list-sessions"), "tmux: nothing is left behind", left)
    finally:
        tmux(path, "kill-server")
        pair.end()


def main():
    for tool in ("tshark", "tmux"):
        if not shutil.which(tool):
            print(f"Bail out! no {tool}: install the Debian package {tool}")
            return 1
    test_guest()
    test_guest_left()
    test_pair()
    test_tmux()
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
