# SPDX-License-Identifier: BSD-3-Clause
"""A command on a pseudo terminal, typed into and read from as a person would."""

import os
import pty
import re
import select
import signal
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
ANSWER_SECONDS = 120
END_SECONDS = 30


class Terminal:
    """A command on a pseudo terminal."""

    def __init__(self, *command, environment=None):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.environ.update(environment or {})
            os.execv(command[0], command)
        self.status = None

    def read(self, seconds):
        """More text; False when there is none any more or none in time."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.text += data.decode("utf-8", "replace").replace("\r", "")
        return bool(data)

    def expect(self, pattern, seconds=ANSWER_SECONDS):
        """Takes text up to the pattern away; the match, or None."""
        deadline = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.text)
            if match:
                self.seen, self.text = self.text[:match.end()], self.text[match.end():]
                return match
            left = deadline - time.monotonic()
            if left <= 0 or not self.read(left):
                self.seen = self.text
                return None

    def type(self, line):
        os.write(self.fd, line.encode() + b"\r")

    def wait(self, seconds=ANSWER_SECONDS):
        """The exit status, or None when it does not end."""
        deadline = time.monotonic() + seconds
        while self.status is None and time.monotonic() < deadline:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def session(self):
        """The processes that were started in this terminal and are still there."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            # State, parent, group, session.
            if fields[0] != "Z" and int(fields[3]) == self.pid:
                found.append(int(name))
        return found

    def end(self):
        """Ends what still runs in it, in the background too."""
        for number, seconds in ((signal.SIGTERM, 0), (signal.SIGHUP, END_SECONDS), (signal.SIGKILL, END_SECONDS)):
            for pid in self.session():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            deadline = time.monotonic() + seconds
            while self.session() and time.monotonic() < deadline:
                self.read(0.1)
        if self.status is None:
            self.wait()
        os.close(self.fd)
