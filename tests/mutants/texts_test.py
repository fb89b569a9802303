#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each text of the firmware that a planted fault replaces is found exactly once, in every list of faults (TAP).

The faults themselves take minutes to try; a text that has drifted away is told of at once."""

import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def faults():
    """(list, file, its text, text to be found, what stands there instead)."""
    for file, old, new, _ in load("tests/mutants/mutations.py").MUTATIONS:
        yield "mutants", file, (ROOT / "firmware" / file).read_text(), old, new
    for name in ("property", "oracle"):
        module = load(f"tests/{name}/mutants.py")
        for _, file, old, new in module.MUTANTS:
            yield name, file, module.source(ROOT, file), old, new
    for file, _, _, old, new in load("tests/trace/trace_test.py").MUTANTS:
        yield "trace", file, (ROOT / "firmware" / file).read_text(), old, new


def main():
    lost = {}
    for name, file, text, old, new in faults():
        times = len(re.findall(r"\s+".join(re.escape(word) for word in old.split()), text))
        lost.setdefault(name, [])
        if times != 1 or old == new:
            lost[name].append(f"found {times} times in {file}: {old}")
    for number, (name, texts) in enumerate(lost.items(), 1):
        for text in texts:
            print(f"# {text}")
        print(f"{'not ok' if texts else 'ok'} {number} - {name}: each text is there once")
    print(f"1..{len(lost)}")
    return any(lost.values())


if __name__ == "__main__":
    raise SystemExit(main())
