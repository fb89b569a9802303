#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Guests to work in by hand: `make guest` (one, on this terminal) and `make pair` (two on one wire).

Consoles, monitors (HMP) and QMP are unix sockets under build/. Without tmux, or without a terminal, the commands to
attach are printed. The command ends when the guests have been powered off (`exit` in their shells), and ends them when
it is ended itself.
"""

import argparse
import fcntl
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
import tty

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "guest"))
sys.dont_write_bytecode = True
import boot  # noqa: E402

INITRD = os.path.join(boot.BUILD, "hand", "hand.cpio")
# The kernel's messages go to a file: the first serial port is the shell's.
KERNEL_ARGS = boot.KERNEL_ARGS.replace("ttyS0", "ttyS1")
PAIR = {"a": ("10.78.0.1/24", "10.78.0.2"), "b": ("10.78.0.2/24", "10.78.0.1")}
# QEMU's user network: 10.0.2.2 is the machine that QEMU runs on.
SINGLE = ("10.0.2.15/24", "10.0.2.2")
ONBOARD_BYTES = 64 << 20
LEAVE = b"\x1d"
SOCKET_SECONDS = 60
END_SECONDS = 10
SELF = os.path.relpath(os.path.realpath(__file__), boot.ROOT)


class Machine:
    """One QEMU with a shell. Paths are relative to the top of the tree: a unix socket's path may hold 107 bytes only."""

    def __init__(self, name, directory, address, other, wire, options, fds=()):
        """`wire`: a netdev, or the property of -device that says which memif link it is."""
        self.name = name
        self.base = os.path.join(directory, name)
        rows, columns = size_of_terminal()
        term = os.environ.get("TERM", "vt100") if sys.stdin.isatty() else "dumb"
        accel = boot.accelerator()
        # Not exec: PID 1 waits for a shell that is no session leader, whose child then gets the terminal.
        run = f"setsid -c shell-inside.sh {name} {other} {rows} {columns} {term} </dev/ttyS0 >/dev/ttyS0 2>&1; exit 0"
        # QEMU would give the first card of each process the same address.
        mac = "02:00:" + ":".join(f"{int(part):02x}" for part in address.partition("/")[0].split("."))
        fast = wire.startswith("memif=")
        device = (f"netdam,id=card,memdev=onboard,{wire if fast else 'netdev=net0'},ip={address},mac={mac},mtu={options.mtu},"
                  f"firmware={boot.FIRMWARE}")
        command = [
            boot.QEMU, "-name", name, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            *(arg for path in boot.ROM_DIRECTORIES for arg in ("-L", path)), "-machine", "q35",
            *(["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm"] if accel == "tcg" else ["-accel", accel, "-cpu", "host"]),
            "-m", "512M", "-kernel", boot.KERNEL, "-initrd", INITRD, "-append", f'{KERNEL_ARGS} netdam.run="{run}"',
            "-object", f"memory-backend-memfd,id=onboard,size={ONBOARD_BYTES},share=on",
            *([] if fast else ["-netdev", wire]), "-device", device,
            "-chardev", f"socket,id=shell,path={self.base}.console,server=on,wait=off,logfile={self.base}.log",
            "-serial", "chardev:shell", "-serial", f"file:{self.base}.kernel.log",
            "-qmp", f"unix:{self.base}.qmp,server=on,wait=off", "-monitor", f"unix:{self.base}.hmp,server=on,wait=off",
        ]
        if options.pcap:
            command += ["-object", f"filter-dump,id=dump,netdev=net0,file={self.base}.pcap"]
        command += shlex.split(options.qemu_args)
        self.remove_sockets()
        with open(f"{self.base}.qemu.log", "wb") as errors:
            # A process group of its own: what is typed in the terminal is for the guest.
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=fds,
                                            cwd=boot.ROOT, preexec_fn=start_of_child)
        self.options = options

    def remove_sockets(self):
        for kind in ("console", "qmp", "hmp"):
            try:
                os.unlink(f"{self.base}.{kind}")
            except FileNotFoundError:
                pass

    def wait_sockets(self):
        deadline = time.monotonic() + SOCKET_SECONDS
        while not all(os.path.exists(f"{self.base}.{kind}") for kind in ("console", "qmp", "hmp")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(f"{self.base}.qemu.log", encoding="utf-8", errors="replace") as file:
                    raise boot.GuestError(f"guest {self.name}: QEMU did not start: {file.read().strip()}")
            time.sleep(0.02)

    def describe(self):
        print(f"guest {self.name}: QEMU is process {self.process.pid}")
        print(f"  console  {SELF} attach {self.base}.console")
        print(f"  monitor  {SELF} attach {self.base}.hmp        QMP  {self.base}.qmp")
        if self.options.pcap:
            print(f"  capture  {self.base}.pcap")
        sys.stdout.flush()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.remove_sockets()


def start_of_child():
    os.setpgid(0, 0)
    boot._end_with_parent()


def size_of_terminal():
    try:
        size = os.get_terminal_size(sys.stdin.fileno())
        return (size.lines or 24, size.columns or 80)
    except OSError:
        return 24, 80


def connect(path):
    end = socket.socket(socket.AF_UNIX)
    end.connect(path)
    return end


def relay(end, prompt):
    """Copies between the terminal and a socket until the socket ends (True) or Ctrl-] is typed (False)."""
    source = sys.stdin.fileno()
    seen = b""
    inputs = [end] if prompt else [end, source]
    while True:
        for ready in select.select(inputs, [], [])[0]:
            try:
                data = end.recv(65536) if ready is end else os.read(source, 256)
            except OSError:
                data = b""
            if ready is end:
                if not data:
                    return True
                os.write(sys.stdout.fileno(), data)
                seen = (seen + data)[-64:] if prompt else b""
                # What is piped in waits for the shell, which would lose it.
                if prompt and prompt in seen and source not in inputs:
                    inputs.append(source)
            elif not data:
                inputs.remove(source)
            elif LEAVE in data and os.isatty(source):
                return False
            else:
                end.sendall(data)


def attach(path, prompt=None):
    """Puts the terminal in raw mode for the time of the relay."""
    end = connect(path)
    source = sys.stdin.fileno()
    kept = termios.tcgetattr(source) if os.isatty(source) else None
    try:
        if kept:
            tty.setraw(source)
        return relay(end, prompt if kept is None else None)
    finally:
        if kept:
            termios.tcsetattr(source, termios.TCSADRAIN, kept)
        end.close()


def run_guest(directory, options, machines):
    machines.append(Machine("guest", directory, *SINGLE, "user,id=net0", options))
    machines[0].wait_sockets()
    machines[0].describe()
    print("Ctrl-] ends the guest at once, exit or Ctrl-D properly.", flush=True)
    if attach(f"{machines[0].base}.console", b"guest# "):
        machines[0].process.wait(boot.POWER_OFF_SECONDS)
    else:
        print("\nended")


def tmux_windows(directory, machines):
    """Both consoles side by side. Returns when the windows are there, or, outside of tmux, when they are left."""
    inside = bool(os.environ.get("TMUX"))
    tmux = ["tmux"] if inside else ["tmux", "-f", "/dev/null", "-S", os.path.join(directory, "tmux")]
    first, second = (shlex.join([sys.executable, SELF, "attach", f"{m.base}.console"]) for m in machines)
    rows, columns = size_of_terminal()
    subprocess.run([*tmux, *(["new-window"] if inside else ["new-session", "-d", "-x", str(columns), "-y", str(rows)]),
                    "-n", "netdam", first, ";", "split-window", "-h", second], check=True, cwd=boot.ROOT)
    if not inside:
        subprocess.run([*tmux, "attach-session"], check=False, cwd=boot.ROOT)


def run_pair(directory, options, machines):
    if options.memif:
        for path, (name, (address, other)) in zip(options.memif, PAIR.items()):
            machines.append(Machine(name, directory, address, other, f"memif={path},role=client", options))
    else:
        for end, (name, (address, other)) in zip(boot.wire("stream"), PAIR.items()):
            machines.append(Machine(name, directory, address, other, end.netdev("net0"), options, [end.socket.fileno()]))
            end.socket.close()
    for machine in machines:
        machine.wait_sockets()
        machine.describe()
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if has_terminal and not options.no_tmux and shutil.which("tmux"):
        tmux_windows(directory, machines)
    if any(machine.process.poll() is None for machine in machines):
        print("Attach from other terminals (Enter shows the prompt, Ctrl-] leaves). Ctrl-C here ends both guests.", flush=True)
    for machine in machines:
        machine.process.wait()


def lock(directory, what):
    """One at a time: the sockets have fixed names. The lock goes with the process."""
    os.makedirs(directory, exist_ok=True)
    file = open(os.path.join(directory, "lock"), "w", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"hand: {directory} is in use: another make {what} runs")
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("guest", "pair", "attach"))
    parser.add_argument("path", nargs="?", help="attach: the console's or monitor's socket")
    parser.add_argument("--pcap", action="store_true", help="capture the wire, in a file for each guest")
    parser.add_argument("--memif", type=lambda text: text.split(","), metavar="A,B",
                        help="pair: no wire between the two, but each connects to a memif socket, such as a fabric's")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--qemu-args", default="", help="more arguments for QEMU, as in a shell")
    parser.add_argument("--no-tmux", action="store_true", help="pair: print how to attach, even where there is tmux")
    options = parser.parse_args()
    if options.memif and (len(options.memif) != 2 or options.what != "pair" or options.pcap):
        parser.error("--memif: two paths, for pair, and without --pcap: the fabric captures")
    if options.what == "attach":
        try:
            attach(options.path)
        except (OSError, TypeError) as error:
            sys.exit(f"hand: cannot attach to {options.path}: {error}")
        return 0
    os.chdir(boot.ROOT)
    boot.exit_on_signals()
    directory = os.path.join("build", "hand" if options.what == "guest" else "pair")
    held = lock(directory, options.what)
    machines = []
    try:
        (run_guest if options.what == "guest" else run_pair)(directory, options, machines)
        return max((machine.process.poll() or 0 for machine in machines), default=0)
    except (boot.GuestError, OSError, subprocess.SubprocessError) as error:
        print(f"hand: {error}", file=sys.stderr)
        return 1
    finally:
        # Nothing may come between here and the end of the guests.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for machine in machines:
            machine.stop()
        held.close()


if __name__ == "__main__":
    sys.exit(main())
