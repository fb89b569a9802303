#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs test programs against a counted firmware and says by gcov which lines and branches they reach.

cover.py OUT PROGRAM...: OUT/firmware holds the objects. Exit status 0 if the goals are reached, every program passed
and gaps.txt names only lines that exist.
"""
import collections
import json
import pathlib
import subprocess
import sys

GOAL_LINES = 95.0
GOAL_BRANCHES = 90.0
ARGUMENTS = {"property": ["--seed", "1", "--packets", "200000"]}


def run_programs(programs):
    failed = []
    for program in programs:
        path = pathlib.Path(program)
        run = subprocess.run([program, *ARGUMENTS.get(path.name, [])], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
        if run.returncode != 0:
            print(run.stdout[-2000:])
            failed.append(path.name)
    return failed


def count(objects):
    """Lines and branches by file: executions of each, summed over the objects and functions that contain them."""
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    branches = collections.defaultdict(lambda: collections.defaultdict(int))
    for data in sorted(objects.glob("*.gcno")):
        said = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", str(data)],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        for file in json.loads(said)["files"]:
            name = file["file"]
            if not name.startswith("firmware/"):
                continue
            for line in file["lines"]:
                number = line["line_number"]
                lines[name][number] += line["count"]
                for index, branch in enumerate(line["branches"]):
                    branches[name][number, index] += branch["count"]
    return lines, branches


def read_gaps(path):
    """Entries of three lines: file, text of the line, why nothing reaches it. Returns {(file, text): why}."""
    gaps, wrong = {}, []
    for entry in path.read_text().split("\n\n"):
        parts = [line.strip() for line in entry.strip().splitlines() if not line.startswith("#")]
        if not parts:
            continue
        file, text, why = parts[0], parts[1], " ".join(parts[2:])
        if text not in [line.strip() for line in pathlib.Path(file).read_text().splitlines()]:
            wrong.append("%s: no such line: %s" % (file, text))
        gaps[file, text] = why
    return gaps, wrong


def percent(reached, all_):
    return 100.0 * reached / all_ if all_ else 100.0


def main():
    out = pathlib.Path(sys.argv[1])
    for old in (out / "firmware").glob("*.gcda"):
        old.unlink()
    failed = run_programs(sys.argv[2:])
    lines, branches = count(out / "firmware")
    gaps, wrong = read_gaps(pathlib.Path("tests/cover/gaps.txt"))

    sums = [0, 0, 0, 0]
    print("%-36s %15s %15s" % ("", "lines", "branches"))
    for name in sorted(lines):
        row = [sum(c != 0 for c in lines[name].values()), len(lines[name]),
               sum(c != 0 for c in branches[name].values()), len(branches[name])]
        sums = [a + b for a, b in zip(sums, row)]
        print("%-36s %4d/%-4d %5.1f%% %4d/%-4d %5.1f%%" % (name, row[0], row[1], percent(*row[:2]), row[2], row[3],
                                                           percent(*row[2:])))
    print("%-36s %4d/%-4d %5.1f%% %4d/%-4d %5.1f%%" % ("in all", sums[0], sums[1], percent(*sums[:2]), sums[2], sums[3],
                                                       percent(*sums[2:])))
    print("\ngaps:")
    for name in sorted(lines):
        text = pathlib.Path(name).read_text().splitlines()
        for number in sorted(lines[name]):
            missed = [i for (n, i), c in sorted(branches[name].items()) if n == number and c == 0]
            if lines[name][number] != 0 and not missed:
                continue
            code = text[number - 1].strip()
            what = "not reached" if lines[name][number] == 0 else "branch %s" % ",".join(map(str, missed))
            print("%s:%d: %s: %s\n    %s" % (name, number, what, code, gaps.get((name, code), "not answered")))
    for line in wrong:
        print("tests/cover/gaps.txt: %s" % line)
    for name in failed:
        print("failed: %s" % name)
    return bool(failed or wrong or percent(*sums[:2]) < GOAL_LINES or percent(*sums[2:]) < GOAL_BRANCHES)


if __name__ == "__main__":
    sys.exit(main())
