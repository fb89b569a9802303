#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Boots test guests in QEMU, talks to them and never leaves one behind.

As a module (one guest or several):

    import boot
    boot.exit_on_signals()
    with boot.Guest("a", "my-program --flag", initrd="build/guest/x.cpio", memories={"mem0": 64 << 20},
                    args=["-device", "netdam,memdev=mem0"]) as guest:
        guest.wait_line(r"ready (\\d+)")
        guest.send_line("go")
        status = guest.wait_exit()

The guest's second serial port (what the program prints and reads) is a socket pair, and so is QMP: no path on disk, no
limit on its length. Logs go to build/guest-logs/NAME/. As a program: see --help.
"""

import argparse
import atexit
import ctypes
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
BUILD = os.path.join(ROOT, "build")
FIRMWARE = os.path.join(BUILD, "firmware", "netdam-fw.so")
QEMU = os.environ.get("NETDAM_QEMU", os.path.join(BUILD, "qemu", "qemu-system-x86_64"))
ROM_DIRECTORIES = ["/usr/share/seabios", "/usr/share/qemu"]
KERNEL = os.path.join(BUILD, "guest", "vmlinux")
PROBE = os.path.join(BUILD, "guest", "probe.bin")
PROBE_EXIT = 0x2A * 2 + 1  # isa-debug-exit makes QEMU exit with twice the value written, plus one
PROBE_SECONDS = 2
# A boot takes 3 s on a quiet machine and 20 s on a loaded one.
DEADLINE_SECONDS = 180
POWER_OFF_SECONDS = 60
# On a loaded host the timer may tick too seldom for the kernel's check, which then panics: no_timer_check.
KERNEL_ARGS = "console=ttyS0 quiet panic=-1 tsc=reliable clocksource=tsc no_timer_check"

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class GuestError(Exception):
    """A guest did not do what was waited for; the message says what it said last."""


def _end_with_parent():
    # Linux sends this when the *thread* that started QEMU ends: start guests from a thread that outlives them.
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


_running = set()


@atexit.register
def stop_all():
    for guest in list(_running):
        guest.stop()


def exit_on_signals():
    """SIGTERM, SIGINT and SIGHUP leave through SystemExit, so that `with` and atexit do their work."""

    def leave(number, _frame):
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)


def _roms():
    return [arg for directory in ROM_DIRECTORIES for arg in ("-L", directory)]


def run_probe(accel, seconds=PROBE_SECONDS):
    """True when the probe firmware ran to its end in time under this accelerator. Always returns."""
    command = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-accel", accel, "-m", "64M",
               *_roms(), "-bios", PROBE, "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=_end_with_parent)
    try:
        return process.wait(seconds) == PROBE_EXIT
    except subprocess.TimeoutExpired:
        return False
    finally:
        process.kill()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            pass  # stuck in the kernel; it dies when the kernel lets go


def accelerator():
    """"kvm" when this machine's KVM has proved itself, else "tcg". NETDAM_ACCEL overrides; the answer is kept."""
    for path, target in ((QEMU, "qemu"), (PROBE, os.path.relpath(PROBE, ROOT))):
        if not os.path.exists(path):
            raise GuestError(f"no {path}: make {target}")
    forced = os.environ.get("NETDAM_ACCEL")
    if forced:
        return forced
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
        if not stat.S_ISCHR(os.stat("/dev/kvm").st_mode) or not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return "tcg"
    except OSError:
        return "tcg"
    cache = os.path.join(BUILD, "guest", "accelerator.json")
    key = f"{boot_id} {os.stat(QEMU).st_mtime_ns} {os.stat(PROBE).st_mtime_ns}"
    try:
        with open(cache, encoding="ascii") as file:
            kept = json.load(file)
        if kept["key"] == key:
            return kept["accelerator"]
    except (OSError, ValueError, KeyError):
        pass
    answer = "kvm" if run_probe("kvm") else "tcg"
    with open(f"{cache}.{os.getpid()}", "w", encoding="ascii") as file:
        json.dump({"key": key, "accelerator": answer}, file)
    os.replace(file.name, cache)
    return answer


def iommu():
    """An IOMMU, for QEMU's command line: it has to be there before the devices that it stands in front of."""
    machine = ["-machine", "kernel-irqchip=split"] if accelerator() == "kvm" else []
    return [*machine, "-device", "intel-iommu,intremap=on"]


def wire(kind="stream"):
    """A wire between two guests without a path on disk: returns two Wire ends for Guest(wires=[...]).

    "stream" loses nothing and pushes back; "dgram" keeps frames apart but queues only net.unix.max_dgram_qlen of them.
    """
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM if kind == "stream" else socket.SOCK_DGRAM)
    return Wire(pair[0], kind), Wire(pair[1], kind)


class Wire:
    """One end of a wire: -netdev with the id that the guest's position in its list gives it (net0, net1, ...)."""

    def __init__(self, end, kind):
        self.socket = end
        self.kind = kind

    def netdev(self, name):
        number = self.socket.fileno()
        if self.kind == "stream":
            return f"stream,id={name},server=off,addr.type=fd,addr.str={number}"
        return f"dgram,id={name},local.type=fd,local.str={number}"


class Guest:
    """One QEMU with one test guest.

    run        shell command for PID 1 (no double quotes in it)
    initrd     made by mkinitramfs.sh
    args       more QEMU arguments, e.g. ["-device", "netdam,memdev=mem0"]
    memories   {id: bytes} of memory backends to make; main memory is always there as "ram"
    wires      ends from wire(); the guest's -netdev ids are net0, net1, ...
    hub        True: the first wire is behind hub 0, so that plug() can add ends while the guest runs. It has to be "dgram":
               QEMU's hub, when its other end cannot take more, sends a newer frame into the middle of an older one, and a
               stream never recovers from that
    memory_mib size of main memory
    echo       prefix with which the program's lines are shown on stdout as they come; None: not shown
    """

    def __init__(self, name, run, *, initrd, args=(), memories=None, wires=(), hub=False, memory_mib=512, cpus=1, accel=None, append="",
                 kernel=KERNEL, echo=None, log_directory=None):
        if '"' in run:
            raise ValueError("the guest's command may hold no double quote")
        self.name = name
        self.lines = []
        self.pid = None
        self._process = None
        self._seen = 0
        self._partial = b""
        self._ended = False
        self._changed = threading.Condition()
        self._echo = echo
        self._qmp_buffer = b""
        self._wires = list(wires)
        self._memories = {"ram": memory_mib << 20, **(memories or {})}
        self._directory = log_directory or os.path.join(BUILD, "guest-logs", name)
        self.console_path = os.path.join(self._directory, "console.log")
        self.output_path = os.path.join(self._directory, "output.log")
        accel = accel or accelerator()
        # libc's memcpy with `rep movsb` is 6x slower under TCG.
        cpu = ["-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm"] if accel == "tcg" else ["-accel", accel, "-cpu", "host"]
        self._command = [
            QEMU, "-name", f"{name},debug-threads=on", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", *_roms(),
            "-machine", "q35,memory-backend=ram", *cpu, "-smp", str(cpus), "-m", f"{memory_mib}M",
            "-kernel", kernel, "-initrd", initrd, "-append", f'{KERNEL_ARGS} {append} netdam.run="{run}"',
            "-chardev", f"file,id=console,path={self.console_path.replace(',', ',,')}", "-serial", "chardev:console",
        ]
        for number, end in enumerate(self._wires):
            if hub and number == 0:
                if end.kind == "stream":
                    raise ValueError("a hub corrupts a stream")
                self._command += ["-netdev", end.netdev("wire0"), "-netdev", "hubport,id=trunk0,hubid=0,netdev=wire0",
                                  "-netdev", "hubport,id=net0,hubid=0"]
            else:
                self._command += ["-netdev", end.netdev(f"net{number}")]
        self._args = list(args)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        shutil.rmtree(self._directory, ignore_errors=True)
        os.makedirs(self._directory)
        self._port, port_end = socket.socketpair()
        self._monitor, monitor_end = socket.socketpair()
        fds = [port_end.fileno(), monitor_end.fileno(), *(end.socket.fileno() for end in self._wires)]
        command = list(self._command)
        # memory-backend-memfd gives all its files one name; made here, each has the name by which memfds() finds it.
        memory_fds = []
        for name, size in self._memories.items():
            memory_fds.append(os.memfd_create(name))
            os.ftruncate(memory_fds[-1], size)
            command += ["-object", f"memory-backend-file,id={name},size={size},share=on,mem-path=/proc/self/fd/{memory_fds[-1]}"]
        fds += memory_fds
        command += [
            "-chardev", f"socket,id=port,fd={fds[0]}", "-serial", "chardev:port",
            "-chardev", f"socket,id=monitor,fd={fds[1]}", "-mon", "chardev=monitor,mode=control",
        ] + self._args
        self._errors = open(os.path.join(self._directory, "qemu.log"), "wb")
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors,
                                             pass_fds=fds, preexec_fn=_end_with_parent)
        except OSError as error:
            raise GuestError(f"guest {self.name}: cannot start {QEMU}: {error.strerror} (make qemu)") from None
        _running.add(self)
        self.pid = self._process.pid
        # Only QEMU holds the far ends now, so its end is seen as end of file here.
        for end in (port_end, monitor_end, *(end.socket for end in self._wires)):
            end.close()
        for fd in memory_fds:
            os.close(fd)
        self._output = open(self.output_path, "wb")
        self._reader = threading.Thread(target=self._read, name=f"guest {self.name}", daemon=True)
        self._reader.start()
        try:
            self._qmp_receive(60)  # the greeting
            self.qmp("qmp_capabilities")
        except GuestError:
            self._process.poll()
            self.stop()
            raise GuestError(f"guest {self.name}: QEMU did not start: {self._tail('qemu.log', 5)}") from None

    def stop(self):
        """Ends QEMU, whatever state it is in. May be called any number of times."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        process.wait()
        self._reader.join(10)
        self._port.close()
        self._monitor.close()
        self._errors.close()
        self._output.close()
        _running.discard(self)

    # What the program in the guest says and hears

    def _read(self):
        while True:
            try:
                data = self._port.recv(65536)
            except OSError:
                data = b""
            with self._changed:
                if data:
                    self._output.write(data)
                    self._output.flush()
                    parts = (self._partial + data).split(b"\n")
                    self._partial = parts.pop()
                    for part in parts:
                        line = part.rstrip(b"\r").decode("utf-8", "replace")
                        self.lines.append(line)
                        if self._echo is not None and line and not line.startswith(("netdam-up:", "netdam-exit:")):
                            print(f"{self._echo}{line}", flush=True)
                else:
                    self._ended = True
                self._changed.notify_all()
            if not data:
                return

    def wait_line(self, pattern, seconds=DEADLINE_SECONDS):
        """The match of the next line, from behind the last one returned, that matches the regular expression."""
        deadline = time.monotonic() + seconds
        expression = re.compile(pattern)
        with self._changed:
            while True:
                while self._seen < len(self.lines):
                    line = self.lines[self._seen]
                    self._seen += 1
                    match = expression.search(line)
                    if match:
                        return match
                    if line.startswith("netdam-exit:") and not pattern.startswith("^netdam-exit:"):
                        raise GuestError(self._report(f"ended ({line}) before it said /{pattern}/"))
                if self._ended:
                    raise GuestError(self._report(f"QEMU ended before the guest said /{pattern}/"))
                left = deadline - time.monotonic()
                if left <= 0:
                    raise GuestError(self._report(f"did not say /{pattern}/ within {seconds} s"))
                self._changed.wait(left)

    def send_line(self, text):
        """One line to the program's standard input (the port has no flow control beyond its FIFO: keep lines short)."""
        self._port.sendall(text.encode() + b"\n")

    def wait_exit(self, seconds=DEADLINE_SECONDS):
        """The program's exit status; returns when the guest has powered off."""
        status = int(self.wait_line(r"^netdam-exit: (\d+)$", seconds).group(1))
        try:
            self._process.wait(POWER_OFF_SECONDS)
        except subprocess.TimeoutExpired:
            raise GuestError(self._report(f"did not power off within {POWER_OFF_SECONDS} s of its end")) from None
        if self._process.returncode != 0:
            raise GuestError(self._report(f"QEMU exited with {self._process.returncode}"))
        return status

    def _tail(self, name, lines):
        try:
            with open(os.path.join(self._directory, name), "rb") as file:
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.replace("\r", "").splitlines()[-lines:])

    def _report(self, what):
        parts = [f"guest {self.name}: {what}"]
        for name in ("output.log", "console.log", "qemu.log"):
            tail = self._tail(name, 10)
            if tail:
                parts.append(f"--- {name}, last lines\n{tail}")
        return "\n".join(parts)

    # QMP

    def _qmp_receive(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\n" not in self._qmp_buffer:
            ready, _, _ = select.select([self._monitor], [], [], max(0, deadline - time.monotonic()))
            try:
                data = self._monitor.recv(65536) if ready else b""
            except OSError:
                data = b""
            if not data:
                raise GuestError(f"guest {self.name}: no answer on QMP" + ("" if ready else f" within {seconds} s"))
            self._qmp_buffer += data
        line, self._qmp_buffer = self._qmp_buffer.split(b"\n", 1)
        return json.loads(line)

    def qmp(self, command, seconds=60, **arguments):
        """One QMP command, its "return" value back. Underscores in argument names stand for dashes."""
        request = {"execute": command}
        if arguments:
            request["arguments"] = {key.replace("_", "-"): value for key, value in arguments.items()}
        try:
            self._monitor.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise GuestError(f"guest {self.name}: QEMU has ended") from None
        while True:
            answer = self._qmp_receive(seconds)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise GuestError(f"guest {self.name}: {command}: {answer['error']['desc']}")

    def plug(self, name, path, peer_path):
        """Connects the unix datagram socket `peer_path` to the guest's hub; QEMU binds `path`."""
        self.qmp("netdev_add", type="dgram", id=name, local={"type": "unix", "path": path},
                 remote={"type": "unix", "path": peer_path})
        self.qmp("netdev_add", type="hubport", id=f"{name}-port", hubid=0, netdev=name)

    def pause(self):
        self.qmp("stop")

    def resume(self):
        self.qmp("cont")

    def scan(self, memory_id, marker):
        """Occurrences of the marker in one of this guest's memories ("ram" or one of `memories`)."""
        return scan_memfd(self.pid, memory_id, marker)


def memfds(pid):
    """{name: path of the open file} of the memfds that a process holds; a Guest's are named by their ids."""
    directory = f"/proc/{pid}/fd"
    found = {}
    for number in os.listdir(directory):
        path = os.path.join(directory, number)
        try:
            target = os.readlink(path)
        except OSError:
            continue
        match = re.fullmatch(r"/memfd:(.+?)(?: \(deleted\))?", target)
        if match:
            found[match.group(1)] = path
    return found


def scan_memfd(pid, memory_id, marker, chunk_bytes=16 << 20):
    """Counts (non-overlapping) occurrences of the bytes `marker` in a process's memfd with this name.

    Reads only pages that exist: a hole cannot hold a marker, and reading it through a mapping would allocate it. Pause
    the guest first if it may be writing. Raises KeyError when there is no such memory.
    """
    if len(marker) < 8 or not any(marker):
        raise ValueError("a marker needs 8 bytes, not all zero, to mean anything")
    count = 0
    fd = os.open(memfds(pid)[memory_id], os.O_RDONLY)
    try:
        end = os.fstat(fd).st_size
        position = 0
        while position < end:
            try:
                position = os.lseek(fd, position, os.SEEK_DATA)
            except OSError:
                break  # nothing but a hole up to the end
            extent_end = os.lseek(fd, position, os.SEEK_HOLE)
            carried = b""
            while position < extent_end:
                data = os.pread(fd, min(chunk_bytes, extent_end - position), position)
                if not data:
                    break
                position += len(data)
                window = carried + data
                start = 0
                while (place := window.find(marker, start)) >= 0:
                    count += 1
                    start = place + len(marker)
                # Keep what may be the marker's beginning, but nothing that has been counted.
                carried = window[max(start, len(window) - len(marker) + 1):]
    finally:
        os.close(fd)
    return count


def main():
    parser = argparse.ArgumentParser(
        description="Boots one test guest, shows what its program prints and exits with its exit status "
                    "(125 when the guest did not get that far).",
        epilog="Arguments behind -- go to QEMU.")
    parser.add_argument("--initrd", required=True, help="made by mkinitramfs.sh")
    parser.add_argument("--run", required=True, help="shell command to run in the guest")
    parser.add_argument("--name", default="guest", help="names the log folder build/guest-logs/NAME (default: guest)")
    parser.add_argument("--kernel", default=KERNEL)
    parser.add_argument("--memory", type=int, default=512, help="MiB of main memory")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--append", default="", help="more kernel arguments")
    parser.add_argument("--timeout", type=float, default=DEADLINE_SECONDS, help="seconds from start to exit status")
    parser.add_argument("--memfd", action="append", default=[], metavar="ID=MIB",
                        help="a memory backend with this id (may be repeated)")
    parser.add_argument("qemu_args", nargs="*", metavar="QEMU-ARG")
    options = parser.parse_args()
    exit_on_signals()
    try:
        memories = {name: int(size) << 20 for name, size in (item.split("=") for item in options.memfd)}
        with Guest(options.name, options.run, initrd=options.initrd, kernel=options.kernel, memory_mib=options.memory,
                   cpus=options.cpus, append=options.append, memories=memories, args=options.qemu_args, echo="") as guest:
            return guest.wait_exit(options.timeout)
    except (GuestError, OSError, ValueError) as error:
        print(f"boot: {error}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main())
