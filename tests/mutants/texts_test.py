#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each text of the firmware that a planted fault replaces is found exactly once, in every list of faults (TAP).

The faults themselves take minutes to try; a text that has drifted away is told of at once."""

import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import planted  # noqa: E402
from ndtest import all_checked, check  # noqa: E402


def load(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def faults():
    """(list, file, text to be found, what stands there instead)."""
    for file, old, new, _ in load("tests/mutants/mutations.py").MUTATIONS:
        yield "mutants", file, old, new
    for name in ("property", "oracle"):
        for _, file, old, new in load(f"tests/{name}/mutants.py").MUTANTS:
            yield name, file, old, new
    for file, _, _, old, new in load("tests/trace/trace_test.py").MUTANTS:
        yield "trace", file, old, new


def main():
    lost = {}
    for name, file, old, new in faults():
        times = planted.with_fault(file, old, new)[1]
        lost.setdefault(name, [])
        if times != 1 or old == new:
            lost[name].append(f"found {times} times in {file}: {old}")
    for name, texts in lost.items():
        check(not texts, f"{name}: each text is there once", texts)
    return all_checked()


if __name__ == "__main__":
    raise SystemExit(main())
