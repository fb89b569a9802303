#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the firmware with one mutation at a time and runs the test programs until one notices.

mutants.py OUT [FILE.c...]: OUT holds objects and programs of the firmware as it is; mutants get folders of their own
there. Exit status 0 if every text was found once, the unchanged firmware passes, and at least 90% of the mutants were
noticed: a failure, a crash, or a run far beyond the usual time.
"""
import collections
import concurrent.futures
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

from mutations import ANSWERED, MUTATIONS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from planted import with_fault  # noqa: E402

GOAL = 90.0
FLAGS = ["-std=c11", "-O0", "-fPIC", "-w", "-ffreestanding", "-fbuiltin", "-fno-strict-aliasing", "-ffp-contract=off",
         "-Ifirmware/include", "-Ifirmware"]
PROPERTY_ARGUMENTS = ["--seed", "1", "--packets", "200000"]
# Who is likely to notice, before all others.
LIKELY = {
    "shared.c": ["shared", "tenant_shared"],
    "requester.c": ["requester", "peer", "delivery", "frame"],
    "peer.c": ["peer", "requester", "delivery"],
    "path.c": ["path", "peer"],
    "responder.c": ["responder", "receive", "delivery"],
    "lane.c": ["lane", "responder", "transaction"],
    "memory.c": ["memory", "responder"],
    "frame.c": ["frame", "delivery", "responder"],
    "queue.c": ["queue", "flush", "receive", "delivery", "requester"],
    "buffer.c": ["delivery", "receive", "queue"],
    "admin.c": ["registers", "queue", "receive"],
    "merge.c": ["merge", "merge_end", "merge_wire"],
    "transaction.c": ["transaction", "transaction_post"],
    "tenant.c": ["tenant", "tenant_attack"],
    "hop.c": ["hop", "hop_copies"],
    "members.c": ["collective_refused", "collective_end", "collective"],
    "collective.c": ["collective_refused", "collective_end", "collective"],
    "raw.c": ["raw", "raw_receive"],
    "net.c": ["net", "raw_receive", "neighbour6"],
    "neighbour.c": ["net", "neighbour6", "raw_receive"],
    "firmware.c": ["raw", "raw_receive", "queue", "config"],
    "tour.c": ["tour_ends", "tour_lanes", "tour"],
}


class Bench:
    def __init__(self, out):
        self.out = out
        self.compiler = shlex.split(os.environ.get("CC", "gcc"))
        self.units = sorted(p.stem[5:] for p in pathlib.Path("tests/unit").glob("test_*.c"))
        self.usual_s = {}

    def names(self, file):
        likely = LIKELY[file]
        return likely + [u for u in self.units if u not in likely] + ["golden", "property"]

    def link_program(self, name):
        """One program against the firmware as a shared library, so that a mutant needs nothing else linked anew."""
        tests = self.out / "tests"
        if name == "property":
            objects, libraries = sorted((tests / "property").glob("*.o")), []
        elif name == "golden":
            objects, libraries = sorted((tests / "golden").glob("*.o")), ["-lcmocka"]
        else:
            objects = [tests / ("unit/test_%s.o" % name), tests / "unit/unit.o", tests / "unit/reference.o"]
            if name.startswith("tenant"):
                objects += [tests / "unit/tenant.o", self.out / "sim/ndcrypto.o"]
            libraries = ["-lcmocka", "-lm"]
        subprocess.run(self.compiler + [str(o) for o in [*objects, tests / "lib/libndtest.a"]]
                       + ["-o", str(self.out / name), "-L" + str(self.out), "-lndfw", *libraries], check=True)

    def link_firmware(self, folder, changed=None):
        objects = [changed if changed is not None and o.name == changed.name else o
                   for o in sorted((self.out / "firmware").glob("*.o"))]
        subprocess.run(self.compiler + ["-shared", "-o", str(folder / "libndfw.so"), *map(str, objects)], check=True)

    def notices(self, name, folder, limit_s):
        """What a program sees of the firmware in a folder, or None."""
        arguments = PROPERTY_ARGUMENTS if name == "property" else []
        try:
            run = subprocess.run([str(self.out / name), *arguments], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, timeout=limit_s, check=False,
                                 env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
        except subprocess.TimeoutExpired:
            return "time"
        return None if run.returncode == 0 else "signal" if run.returncode < 0 else "failure"

    def prepare(self):
        """The firmware as it is. False if a test fails."""
        self.link_firmware(self.out)
        good = True
        for name in self.names("lane.c"):
            self.link_program(name)
            start = time.monotonic()
            seen = self.notices(name, self.out, 600)
            self.usual_s[name] = time.monotonic() - start
            if seen is not None:
                print("%s: %s without any mutation" % (name, seen))
                good = False
        return good

    def try_mutant(self, number, file, old, new):
        """(program, what it saw) of the first that notices, or None."""
        folder = self.out / ("%03d" % number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        source, changed = folder / file, folder / (file[:-2] + ".o")
        source.write_text(with_fault(file, old, new)[0])
        subprocess.run(self.compiler + FLAGS + ["-c", str(source), "-o", str(changed)], check=True)
        self.link_firmware(folder, changed)
        for name in self.names(file):
            seen = self.notices(name, folder, 10 + 10 * self.usual_s[name])
            if seen is not None:
                return name, seen
        return None


def main():
    out = pathlib.Path(sys.argv[1])
    only = sys.argv[2:]
    chosen = [(n, *m) for n, m in enumerate(MUTATIONS, 1) if not only or m[0] in only]
    wrong = False
    for number, file, old, new, what in list(chosen):
        found = with_fault(file, old, new)[1]
        if found != 1 or old == new:
            print("%3d %s: text found %d times: %s" % (number, file, found, old))
            chosen.remove((number, file, old, new, what))
            wrong = True
    for what in ANSWERED:
        if what not in [m[3] for m in MUTATIONS]:
            print("answered, but not in the list: %s" % what)
            wrong = True
    bench = Bench(out)
    if not bench.prepare():
        return 1
    noticed, survivors = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = [pool.submit(bench.try_mutant, *m[:4]) for m in chosen]
        for (number, file, _, _, what), result in zip(chosen, results):
            seen = result.result()
            noticed[seen is not None] += 1
            if seen is None:
                survivors.append((number, file, what))
            print("%3d %-12s %-9s %s" % (number, file, "survived" if seen is None else "killed", what)
                  + ("" if seen is None else " (%s: %s)" % seen), flush=True)
    share = 100.0 * noticed[True] / len(chosen) if chosen else 0.0
    print("\n%d mutants, %d killed: %.1f%%" % (len(chosen), noticed[True], share))
    for number, file, what in survivors:
        print("survivor %d, %s: %s\n    %s" % (number, file, what, ANSWERED.get(what, "not answered")))
    return wrong or share < GOAL


if __name__ == "__main__":
    sys.exit(main())
