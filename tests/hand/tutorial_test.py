#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Follows tutorials to the letter (TAP): types what their `console` blocks show and compares the answers.

In such a block "$ " begins a line typed into a shell at the top of the tree, "guest# " into the guest that `make guest`
has started there, and "a# ", "b# " into the guests of `make pair`; "^C" is that key. Other lines are the answer, in
which "..." stands for anything, and a line of nothing else for any lines. A block behind "<!-- file: PATH -->" is
written to that file first.
"""

import os
import re
import sys
import time

sys.dont_write_bytecode = True
from terminal import ROOT, Terminal  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from ndtest import all_checked, check  # noqa: E402

DOCS = os.path.join(ROOT, "docs")
BOOT_SECONDS = 900
COMMAND_SECONDS = 240
ATTEMPTS = 3
PROMPT = "HOST>"
# This one changes the tree: opcode_test.sh follows it.
IN_A_COPY = ("tutorial-add-an-opcode.md",)


def blocks(text):
    """(file or None, language, lines) of each fenced block."""
    for match in re.finditer(r"(?:<!-- file: (\S+) -->\n)?^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield match[1], match[2], match[3].splitlines()


def steps(lines):
    """(prompt, command, expected lines)."""
    found = []
    for line in lines:
        match = re.match(r"(\$|guest#|[ab]#) (.*)$", line)
        if match:
            found.append((match[1], match[2], []))
        elif found:
            found[-1][2].append(line)
    return found


def as_pattern(expected):
    """An answer that holds these lines, one behind the other."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += "^[ \\t]*" + r"[ \t]*".join(re.escape(part).replace(r"\.\.\.", ".*") for part in line.split()) + r"[ \t]*\n"
            pattern = pattern.replace(r"[ \t]*\n", "\\s*\\n")
    return pattern


class Follower:
    """The terminals of one tutorial."""

    def __init__(self):
        environment = {"PS1": PROMPT, "ENV": "", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "O", "TMUX", "CMOCKA_MESSAGE_OUTPUT"):
            os.environ.pop(name, None)
        self.host = Terminal("/bin/sh", environment=environment)
        self.host.expect(PROMPT)
        self.consoles = {}
        self.pair_runs = False

    def console(self, name):
        """A guest of `make pair`, through its socket."""
        if name not in self.consoles:
            path = os.path.join("build", "pair", f"{name}.console")
            deadline = time.monotonic() + BOOT_SECONDS
            while not os.path.exists(os.path.join(ROOT, path)) and time.monotonic() < deadline:
                self.host.read(0.5)
            terminal = Terminal(os.path.join(ROOT, "tests", "hand", "hand.py"), "attach", path)
            while not terminal.expect(f"{name}# ", 5) and time.monotonic() < deadline:
                terminal.type("")
            # As many prompts as lines were typed: the one behind this answer is the last.
            terminal.type("echo in-$((40 + 2))-step")
            terminal.expect("\nin-42-step\n")
            terminal.expect(f"{name}# ")
            self.consoles[name] = terminal
        return self.consoles[name]

    def follow(self, prompt, command, expected):
        """Types the command; None if the answer is the expected one, else what came."""
        if prompt == "$":
            terminal, end = self.host, PROMPT
            if self.pair_runs and not terminal.expect(PROMPT, COMMAND_SECONDS):
                return f"make pair does not end\n{terminal.seen}"
            self.pair_runs = command.startswith("make pair")
            if command.startswith("make guest"):
                end = "guest# "
            elif self.pair_runs:
                end = "Ctrl-C here ends both guests"
        elif prompt == "guest#":
            terminal, end = self.host, "guest# "
        else:
            terminal, end = self.console(prompt[0]), f"{prompt[0]}# "
        if command == "exit" and prompt != "$":
            if prompt == "guest#":
                terminal.type(command)
                return None if terminal.expect(PROMPT, COMMAND_SECONDS) else terminal.seen
            terminal.type(command)
            terminal.wait(COMMAND_SECONDS)
            return None if terminal.status == 0 else terminal.text
        if command == "^C":
            os.write(terminal.fd, b"\x03")
        else:
            terminal.type(command)
        if not terminal.expect(re.escape(end), BOOT_SECONDS if command.startswith("make") else COMMAND_SECONDS):
            return terminal.seen
        answer = terminal.seen
        if not expected or re.search(as_pattern(expected), answer, re.M):
            return None
        return f"{answer}\n--- does not match\n" + "\n".join(expected)

    def end(self):
        for terminal in (*self.consoles.values(), self.host):
            terminal.end()


def follow_page(name):
    """(what was typed, what was wrong) of each step, up to the first that is wrong."""
    with open(os.path.join(DOCS, name), encoding="utf-8") as file:
        text = file.read()
    follower = Follower()
    done = []
    try:
        for path, language, lines in blocks(text):
            if path:
                full = os.path.join(ROOT, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write("\n".join(lines) + "\n")
            elif language == "console":
                for prompt, command, expected in steps(lines):
                    done.append((f"{prompt} {command}", follower.follow(prompt, command, expected)))
                    if done[-1][1] is not None:
                        return done
    finally:
        follower.end()
    return done


def test_page(name):
    # Some answers count repetitions, and a machine that stalls for 50 ms at the wrong moment adds one: not three times.
    for attempt in range(1 if name in IN_A_COPY else ATTEMPTS):
        done = follow_page(name)
        if done and done[-1][1] is None:
            break
        print(f"# {name}: attempt {attempt + 1} failed")
    for step, wrong in done:
        check(wrong is None, f"{name}: {step[:80]}".replace("#", ">"), wrong)
    check(len(done) > 3, f"{name}: there is something to follow")


def main():
    for name in sys.argv[1:] or sorted(n for n in os.listdir(DOCS) if n.startswith("tutorial-") and n.endswith(".md") and
                                       n not in IN_A_COPY):
        test_page(name)
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
