#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The firmware's lanes do what the model's do: random traces of the model, replayed by the firmware with real frames.
TAP. The seeds are fixed. The same traces must tell mutated lanes from the model's.

O: build directory, default build; CC: the compiler.
"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

TRACES = 1000
EVENTS = 60  # of each trace
STEPS = "400000"  # of spin, for each set of knobs
MET = 20  # of each kind of event at least

KNOBS = ["-DN0=3 -DN1=2 -DG=3 -DKEYS=1", "-DN0=3 -DN1=1 -DG=3 -DKEYS=1 -DVALUES=1",
         "-DN0=2 -DN1=1 -DG=3 -DNR=2 -DVALUES=2", "-DN0=2 -DN1=2 -DG=3 -DKEYS=1 -DSUCCESSOR=1",
         "-DN0=2 -DN1=2 -DG=3 -DKEYS=1 -DVALUES=1"]

# What is wrong, the text in firmware/lane.c to be found once, what stands there instead; white space is like any other.
MUTANTS = [
    ("a floor without a bitmap", "window->bits[place / 64] |= UINT64_C(1) << place % 64;", ";"),
    ("a known lane that executes any generation",
     "if (packet->generation != (lane != NULL ? lane->generation : fw->generation)) {",
     "if (lane == NULL && packet->generation != fw->generation) {"),
    ("an unknown lane that executes any generation",
     "if (packet->generation != (lane != NULL ? lane->generation : fw->generation)) {",
     "if (lane != NULL && packet->generation != lane->generation) {"),
    ("STALE that names the node's generation for a known lane",
     "result->generation = lane != NULL ? lane->generation : fw->generation; return NDFW_LANE_STALE;",
     "result->generation = fw->generation; return NDFW_LANE_STALE;"),
    ("a floor that is not looked at", "if (packet->number < result->floor) {", "if (false) {"),
    ("a floor that goes back", "if (claim <= floor) {", "if (claim == floor) {"),
    ("a floor that takes the next number with it", "for (uint64_t n = floor; n < claim; n++) {",
     "for (uint64_t n = floor; n <= claim; n++) {"),
    ("a refusal that is remembered as an execution", "window->statuses[place] = status;",
     "window->statuses[place] = 0;"),
    ("cached replies that are not kept", "window->values[place] = value;", "window->values[place] = 0;"),
    ("a busy node that makes a lane", "if (lane == NULL && fw->window_free == NDFW_NONE) {", "if (false) {"),
    ("a window released while something is unfinished", "if (window->above <= result->floor) {", "if (true) {"),
    ("a lane that never comes to rest", "if (window->above <= result->floor) {",
     "if (window->above < result->floor) {"),
    ("a confirmation that an unknown lane does not remember",
     "lane = create_lane(fw, packet, packet->number, &verdict); result->generation = fw->generation; "
     "if (lane == NULL) { return verdict; }",
     "result->floor = packet->number; (void)verdict; return NDFW_LANE_EXECUTE;"),
    ("lanes forgotten without a new generation", "fw->generation++;", ";"),
    ("a given-up lane under the same epoch",
     "ndfw_count(fw, NETDAM_COUNTER_LANES_GIVEN_UP, given_up); new_epoch(fw);",
     "ndfw_count(fw, NETDAM_COUNTER_LANES_GIVEN_UP, given_up); fw->generation++;"),
    ("a READ that needs the node's epoch", "*right = lane != NULL ? lane->generation : fw->generation;",
     "*right = fw->generation;"),
]

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / os.environ.get("O", "build") / "tests/trace"
COMPILER = shlex.split(os.environ.get("CC", "gcc"))
FLAGS = ["-std=c11", "-O1", "-w", "-ffreestanding", "-fbuiltin", "-fno-strict-aliasing", "-ffp-contract=off",
         "-Ifirmware/include", "-Ifirmware"]


def trace(seed):
    """Runs the model at random; returns a file with what its node did."""
    folder = OUT / ("seed-%d" % seed)  # spin leaves files where it runs
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with open(folder / "trace.txt", "w") as file:
        subprocess.run(["spin", "-T", "-n%d" % seed, "-u" + STEPS, "-DTRACE=%d" % EVENTS, *KNOBS[seed - 1].split(),
                        str(ROOT / "tests/model/lane.pml")],
                       cwd=folder, stdout=file, stderr=subprocess.STDOUT, check=True)
    return folder / "trace.txt"


def replay(program, *arguments):
    """Returns the exit status, the counts, and what was said about divergences."""
    run = subprocess.run([str(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)
    counts = {name: int(n) for name, n in re.findall(r"^(\S+) (\d+)$", run.stdout, re.M)}
    return run.returncode, counts, [line for line in run.stdout.splitlines() if line.startswith("trace ")]


def mutant(number):
    """Builds the replay with one mutated lane.c; returns the program, or why there is none."""
    _, old, new = MUTANTS[number]
    pattern = r"\s+".join(re.escape(word) for word in old.split())
    text, found = re.subn(pattern, lambda _: new, (ROOT / "firmware/lane.c").read_text())
    if found != 1:
        return None, "found %d times in firmware/lane.c: %s" % (found, old)
    folder = OUT / ("mutant-%d" % number)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "lane.c").write_text(text)
    objects = [str(OUT / name) for name in ("replay.o", "../unit/unit.o", "../lib/libndtest.a")]
    library = str(OUT / "../../firmware/libndfw.a")
    for command in (["-c", str(folder / "lane.c"), "-o", str(folder / "lane.o")] + FLAGS,
                    ["-o", str(folder / "replay"), str(folder / "lane.o"), *objects, library, "-lcmocka", "-lm"]):
        run = subprocess.run(COMPILER + command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode != 0:
            return None, run.stdout
    return folder / "replay", ""


def main():
    tests = 0
    failed = False

    def report(fine, name, why=()):
        nonlocal tests, failed
        tests += 1
        failed = failed or not fine
        print("%s %d - %s" % ("ok" if fine else "not ok", tests, name))
        for line in why:
            print("# " + line)
        sys.stdout.flush()

    if shutil.which("spin") is None:
        print("Bail out! spin is missing: apt-get install spin")
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        traces = list(pool.map(trace, range(1, len(KNOBS) + 1)))
        status, counts, told = replay(OUT / "replay", *traces)
        report(status == 0 and not counts.get("diverged", 1), "the firmware does what the model does, event by event",
               told)
        report(counts.get("traces", 0) >= TRACES,
               "%d traces, %d events" % (counts.get("traces", 0), counts.get("events", 0)))
        rare = ["%s: %d" % (name, n) for name, n in counts.items() if n < MET and name != "diverged"]
        report(not rare, "every kind of event was met # " + ", ".join("%s %d" % item for item in counts.items()), rare)
        for number, (program, why) in enumerate(pool.map(mutant, range(len(MUTANTS)))):
            name = "noticed: " + MUTANTS[number][0]
            if program is None:
                report(False, name, why.splitlines())
                continue
            status, counts, told = replay(program, "--first", *traces)
            report(status != 0, "%s # %s" % (name, told[0] if told else "status %d" % status))
    print("1..%d" % tests)
    return failed


if __name__ == "__main__":
    sys.exit(main())
