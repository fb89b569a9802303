#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs gcc's static analyzer over the sources given and compares what it says with what has been answered.

Exit status 0 if every finding has an answer and every answer still has its finding.
"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

FIRMWARE = ["-Ifirmware/include", "-ffreestanding", "-fbuiltin"]
HOST = ["-Ihost-driver/include", "-Ihost-driver/src", "-Ifirmware/include", "-Ifirmware", "-Isim"]


def analyze(source):
    """The findings in one file as (file, function, warning, line, message), and whether it compiled."""
    flags = FIRMWARE if source.startswith("firmware/") else HOST
    run = subprocess.run([*shlex.split(os.environ.get("CC", "gcc")), "-std=c11", "-O2", "-fanalyzer",
                          "-fdiagnostics-plain-output", *flags, "-S", "-o", "/dev/null", source],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                         env={**os.environ, "LC_ALL": "C"})
    if run.returncode != 0:
        print(run.stdout)
    function, findings = "", []
    for line in run.stdout.splitlines():
        inside = re.match(r"\S+: In function '(.*)':", line)
        function = inside.group(1) if inside else function
        found = re.match(r"([^:\s]+):(\d+):\d+: warning: (.*)\[-W(analyzer[-a-z]*)\]", line)
        if found:
            findings.append((found.group(1), function, found.group(4), found.group(2), found.group(3)))
    return findings, run.returncode == 0


def read_answers(path):
    """Entries of a line with file, function and warning, and lines that say why it is not a mistake."""
    answers = {}
    for entry in path.read_text().split("\n\n"):
        lines = [line.strip() for line in entry.strip().splitlines() if not line.startswith("#")]
        if lines:
            answers[tuple(lines[0].split())] = " ".join(lines[1:])
    return answers


def main():
    sources = sys.argv[1:]
    answers = read_answers(pathlib.Path("tests/analyze/answers.txt"))
    seen, wrong = set(), False
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for findings, compiled in pool.map(analyze, sources):
            wrong |= not compiled
            for file, function, warning, line, message in findings:
                answer = answers.get((file, function, warning))
                seen.add((file, function, warning))
                wrong |= answer is None
                print("%s:%s: %s: %s[%s]\n    %s" % (file, line, function, message, warning, answer or "not answered"))
    for unseen in sorted(set(answers) - seen):
        print("answered, but not found any more: %s" % " ".join(unseen))
        wrong = True
    print("%d files, %d findings, %d answers" % (len(sources), len(seen), len(answers)))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
