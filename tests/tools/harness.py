# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the tools share: running them, a node, and manual pages."""

import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import ndtest  # noqa: E402
from ndtest import BUILD, LIMIT_S, NODE, TOP, expect  # noqa: E402

TOOLS = os.path.join(BUILD, "host-driver")
MAN = os.path.join(TOP, "host-driver", "man")
KEY = "0x6b65794b45591234"


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("NETDAM_")}


def run(tool, *arguments, code=0, env=None, limit_s=LIMIT_S):
    """Runs a tool that must exit with `code`; returns what it printed on both outputs."""
    done = subprocess.run([os.path.join(TOOLS, tool)] + list(arguments), capture_output=True, timeout=limit_s,
                          env=dict(environment(), **(env or {})), text=True, check=False)
    expect(done.returncode == code, "%s %s: exit code %d instead of %d: %s" %
           (tool, " ".join(arguments), done.returncode, code, done.stderr))
    return done.stdout, done.stderr


started = []  # what must not outlive the tests, whatever happens in them


def start(tool, *arguments):
    process = subprocess.Popen([os.path.join(TOOLS, tool)] + list(arguments), stdout=subprocess.PIPE, text=True,
                               env=environment())
    started.append(process)
    return process


def stop(process, how=signal.SIGTERM):
    """Ends a program with a signal; returns its exit code and what it still printed."""
    if process.poll() is None:
        process.send_signal(how)
    rest, _ = process.communicate(timeout=LIMIT_S)
    return process.returncode, rest


class Node:
    """A headless node on loopback."""

    def __init__(self, *options):
        self.process = subprocess.Popen([NODE, "-l", "127.0.0.1:0", "-m", "16M", "-k", KEY] + list(options),
                                        stdout=subprocess.PIPE, text=True)
        started.append(self.process)
        ready = self.process.stdout.readline()
        expect("ready" in ready, "netdam-node: %r" % ready)
        self.address = "127.0.0.1:" + re.search(r"port(?:=|\": )(\d+)", ready).group(1)

    def stop(self):
        stop(self.process)


def one_line(stderr, tool, *parts):
    expect(stderr.count("\n") == 1 and stderr.startswith(tool + ": "), "not one line of %s: %r" % (tool, stderr))
    for part in parts:
        expect(part in stderr, "%r does not name %r" % (stderr, part))


def help_options(tool):
    """The options that --help lists, long and short."""
    text, _ = run(tool, "--help")
    return {option for line in re.findall(r"^  (?: {4})?(-.*)$", text, re.M)
            for option in re.findall(r"(?:^|, )(--?[\w-]+)", re.split(r"  +", line)[0])}


def page(name):
    with open(os.path.join(MAN, name + ".1"), encoding="utf-8") as f:
        return f.read()


def page_options(name):
    """The options that have a paragraph in a manual page."""
    return {option.replace("\\-", "-")
            for line in re.findall(r"^\.TP\n\.BR? (\\-.*)$", page(name), re.M)
            for option in re.findall(r"(?:^|\", \" ?|\", \")\s*((?:\\-){1,2}\w(?:\w|\\?-)*)", line)}


def check_page(name, tools):
    """A page and the help texts of its tools name the same options, and groff has nothing to complain about."""
    wanted = set().union(*(help_options(tool) for tool in tools))
    expect(len(wanted) > 4, "%s --help is not understood: %s" % (name, wanted))
    expect(page_options(name) == wanted, "%s(1) and --help differ: %s" % (name, page_options(name) ^ wanted))
    expect("\n.SH EXIT STATUS\n" in page(name), "%s(1) does not say what the exit status means" % name)


def check_version(tool):
    text, _ = run(tool, "--version")
    expect(re.fullmatch(re.escape(tool) + r" \d+\.\d+\.\d+\n", text), "--version: %r" % text)
    text, _ = run(tool, "--help")
    expect(text.startswith("Usage: " + tool + " "), "--help does not start with the usage")
    expect("Exit status: 0 done, 1 failed, 2 wrong usage." in text, "--help does not tell the exit status")


def main(module):
    """Runs a module's tests with a node; returns an exit status."""
    ndtest.tests_of(module)
    node = Node()
    try:
        return ndtest.run(node)
    finally:
        for process in started:
            if process.poll() is None:
                stop(process)


if __name__ == "__main__":
    sys.exit("this file holds no tests")
