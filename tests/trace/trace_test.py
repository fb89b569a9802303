#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The firmware's lanes and hops do what the models' do: random traces of the models, replayed by the firmware with real
frames. TAP. The seeds are fixed. The same traces must tell mutated firmware from the models.

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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from ndtest import all_checked, check  # noqa: E402
from planted import with_fault  # noqa: E402

TRACES = 1000  # for each model at least
EVENTS = 60  # of each trace
MET = 20  # of each kind of event at least
SHOWN = 1000  # lines of what a replay says

# Of each replay: the model, steps of spin for each set of knobs, the knobs, and kinds of events that it does not have.
REPLAYS = {
    "requests": ("lane.pml", 400000, [
        "-DN0=3 -DN1=2 -DG=3 -DKEYS=1",
        "-DN0=3 -DN1=1 -DG=3 -DKEYS=1 -DVALUES=1",
        "-DN0=2 -DN1=1 -DG=3 -DNR=2 -DVALUES=2",
        "-DN0=2 -DN1=2 -DG=3 -DKEYS=1 -DSUCCESSOR=1",
        "-DN0=2 -DN1=2 -DG=3 -DKEYS=1 -DVALUES=1",
    ], []),
    "hops": ("chain.pml", 600000, [
        "-DKEEP_ALL -DN0=2 -DN1=1 -DBUDGET=2 -DKEYS=3",
        "-DKEEP_ALL -DN0=2 -DG=3 -DBUDGET=3 -DOTHERS=1 -DFIRST=1",
        "-DKEEP_ALL -DH=3 -DN0=2 -DBUDGET=2 -DKEYS=7 -DOTHERS=1",
        "-DKEEP_ALL -DN0=2 -DV=2 -DOP0=LOAD -DKEYS=3 -DBUDGET=2",
        "-DKEEP_ALL -DH=3 -DN0=2 -DV=2 -DOP0=LOAD -DOP1=LOAD -DTRACK=1 -DKEYS=3 -DBUDGET=2",
        "-DKEEP_ALL -DH=3 -DN0=2 -DV=2 -DOP0=COMPARE -DKEYS=2 -DBUDGET=2",
        "-DKEEP_ALL -DN0=2 -DV=2 -DOP1=LOAD -DTRACK=1 -DKEYS=2 -DBUDGET=2",
        "-DKEEP_ALL -DN0=2 -DV=2 -DOP1=COMPARE -DTRACK=1 -DKEYS=2 -DBUDGET=2",
    ], ["read", "read-stale"]),
}

# What is wrong, the text to be found once, what stands there instead; white space is like any other.
LANE_MUTANTS = [
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
     "ndfw_count(fw, NETDAM_COUNTER_LANES_GIVEN_UP, given_up); ndfw_lane_new_epoch(fw);",
     "ndfw_count(fw, NETDAM_COUNTER_LANES_GIVEN_UP, given_up); fw->generation++;"),
    ("a READ that needs the node's epoch", "*right = lane != NULL ? lane->generation : fw->generation;",
     "*right = fw->generation;"),
]

GO_ON_AGAIN = "} else { go_on(fw, packet, hop, &result, memory, NETDAM_FLAG_AGAIN | ndfw_lane_wish(fw)); }"
HOP_MUTANTS = [
    ("a hop that has executed and does not pass on", GO_ON_AGAIN, "} else { not_forwarded(fw, packet); }"),
    ("a hop that has executed and answers instead of passing on", GO_ON_AGAIN,
     "} else { hop->last = true; go_on(fw, packet, hop, &result, memory, NETDAM_FLAG_AGAIN | ndfw_lane_wish(fw)); }"),
    ("reads of a storing chain without lane",
     "hop->with_lane = hop->stores_later && packet->opcode != NETDAM_OP_FORWARD;",
     "hop->with_lane = hop->stores_later && (netdam_op_flags(packet->opcode) & NETDAM_OPF_MODIFIES) != 0;"),
    ("a lane behind the last store", "hop->stores_later = stores && packet->hop <= last_store;",
     "hop->stores_later = stores;"),
    ("a repeated read that is refused", "not_forwarded(fw, packet); " + GO_ON_AGAIN,
     "ndfw_refuse_at(fw, packet, NETDAM_STATUS_BAD_KEY, result.generation, result.floor, 0); " + GO_ON_AGAIN),
    ("a repeated read that is not read", "look(fw, packet, &memory) != NETDAM_STATUS_OK)) {",
     "(memory = fw->loopback, false))) {"),
    ("a COMPARE that is compared again",
     "((packet->opcode == NETDAM_OP_LOAD || packet->opcode == NETDAM_OP_LOAD_REDUCE) &&",
     "((netdam_op_flags(packet->opcode) & NETDAM_OPF_MODIFIES) == 0 &&"),
    ("a refusal that leaves no trace", "ndfw_lane_consume(result.window, packet->number, result.status, packet->hop);",
     "if (result.status == 0) { ndfw_lane_consume(result.window, packet->number, 0, packet->hop); }"),
    ("a refused chain that goes on", "if (result.status != NETDAM_STATUS_OK) { ndfw_refuse_at",
     "if (false) { ndfw_refuse_at"),
    ("generations that nobody looks at behind the last store",
     "status = ndfw_lane_proves(fw, ndfw_lane_id(packet), packet->generation, &result.generation)",
     "status = ndfw_lane_proves(fw, ndfw_lane_id(packet), packet->generation, &result.generation) || true"),
    ("STALE that does not name the hop's generation",
     "ndfw_refuse_at(fw, packet, NETDAM_STATUS_STALE, result.generation, 0, 0);",
     "ndfw_refuse_at(fw, packet, NETDAM_STATUS_STALE, packet->generation, 0, 0);"),
    ("answers that go to the hop before", "packet->from = origin;", ";"),
]
# File, replay that must notice, mutants.
MUTANTS = ([("lane.c", "requests", *mutant) for mutant in LANE_MUTANTS]
           + [("hop.c", "hops", *mutant) for mutant in HOP_MUTANTS])

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / os.environ.get("O", "build") / "tests/trace"
COMPILER = shlex.split(os.environ.get("CC", "gcc"))
FLAGS = ["-std=c11", "-O1", "-w", "-ffreestanding", "-fbuiltin", "-fno-strict-aliasing", "-ffp-contract=off",
         "-Ifirmware/include", "-Ifirmware"]


def trace(replay, seed):
    """Runs a model at random; returns a file with what its nodes did."""
    model, steps, knobs, _ = REPLAYS[replay]
    folder = OUT / ("%s-%d" % (replay, seed))  # spin leaves files where it runs
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with open(folder / "trace.txt", "w") as file:
        subprocess.run(["spin", "-T", "-n%d" % seed, "-u%d" % steps, "-DTRACE=%d" % EVENTS, *knobs[seed - 1].split(),
                        str(ROOT / "tests/model" / model)],
                       cwd=folder, stdout=file, stderr=subprocess.STDOUT, check=True)
    return folder / "trace.txt"


def run_replay(program, *arguments):
    """Returns the exit status, the counts, and what was said about divergences."""
    run = subprocess.run([str(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)
    counts = {name: int(n) for name, n in re.findall(r"^(\S+) (\d+)$", run.stdout, re.M)}
    return run.returncode, counts, [line for line in run.stdout.splitlines() if not re.match(r"\S+ \d+$", line)]


def notice(number, traces):
    """Builds a replay with one mutant and runs it; returns whether it was noticed, and what was said."""
    file, replay, _, old, new = MUTANTS[number]
    text, found = with_fault(file, old, new)
    if found != 1:
        return False, "found %d times in firmware/%s: %s" % (found, file, old)
    folder = OUT / ("mutant-%d" % number)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / file).write_text(text)
    objects = [str(OUT / name) for name in (replay + ".o", "trace.o", "../unit/unit.o", "../lib/libndtest.a")]
    library = str(OUT / "../../firmware/libndfw.a")
    for command in (["-c", str(folder / file), "-o", str(folder / "mutant.o")] + FLAGS,
                    ["-o", str(folder / replay), str(folder / "mutant.o"), *objects, library, "-lcmocka", "-lm"]):
        run = subprocess.run(COMPILER + command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode != 0:
            return False, run.stdout
    status, counts, told = run_replay(folder / replay, "--first", *traces[replay])
    return status == 1 and counts.get("diverged", 0) > 0, told[0] if told else "status %d" % status


def main():
    if shutil.which("spin") is None:
        print("Bail out! spin is missing: apt-get install spin")
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wanted = [(replay, seed + 1) for replay, about in REPLAYS.items() for seed in range(len(about[2]))]
        made = list(pool.map(trace, *zip(*wanted)))
        traces = {replay: [file for file, what in zip(made, wanted) if what[0] == replay] for replay in REPLAYS}
        for replay, (model, _, _, missing) in REPLAYS.items():
            status, counts, told = run_replay(OUT / replay, *traces[replay])
            check(status == 0 and counts.get("diverged") == 0,
                  "%s: the firmware does what %s does, event by event" % (replay, model), told, most=SHOWN)
            check(counts.get("traces", 0) >= TRACES,
                  "%s: %d traces, %d events" % (replay, counts.get("traces", 0), counts.get("events", 0)))
            rare = ["%s: %d" % (name, n) for name, n in counts.items()
                    if n < MET and name != "diverged" and name not in missing]
            met = ", ".join("%s %d" % item for item in counts.items())
            check(not rare, "%s: every kind of event was met # %s" % (replay, met), rare)
        for number, (fine, told) in enumerate(pool.map(lambda n: notice(n, traces), range(len(MUTANTS)))):
            check(fine, "noticed: %s # %s" % (MUTANTS[number][2], told.splitlines()[0]), told, most=SHOWN)
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
