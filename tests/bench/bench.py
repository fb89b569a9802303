#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the firmware's benchmarks and writes $O/bench/firmware.json and tables.

bench.py [--quick]: with --quick everything runs once, briefly, to see that it works; the figures mean nothing then.
What each figure means is in docs/bench.md.
"""
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

RANKS = 4
ROUNDS = 5
SIZES = [4 << 10, 1 << 20, 64 << 20, 256 << 20]
QUICK_SIZES = SIZES[:2]
# Without these, Open MPI's buffers go back to the kernel after each use, and it is slower by a fifth.
MPI_TUNING = ["-x", "MALLOC_MMAP_MAX_=0", "-x", "MALLOC_TRIM_THRESHOLD_=34359738368", "-x", "MALLOC_ARENA_MAX=1"]


def output_of(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def machine():
    """What the figures were taken on."""
    model = None
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    compiler = output_of(os.environ.get("CC", "gcc").split()[0], "--version")
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(),
            "compiler": compiler.splitlines()[0] if compiler else None,
            "commit": output_of("git", "rev-parse", "HEAD"), "load": os.getloadavg()[0]}


def run_mpi(program, sizes):
    """Milliseconds of an all-reduce, by size."""
    run = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", *MPI_TUNING,
                          "-np", str(RANKS), str(program), "1", *map(str, sizes)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    if run.returncode != 0:
        raise RuntimeError("mpirun: " + run.stderr.strip()[-500:])
    return {int(line.split()[0]): float(line.split()[1]) for line in run.stdout.splitlines()}


def run_firmware(program, sizes, crc):
    """The same among four firmware instances."""
    run = subprocess.run([str(program), "1", crc, *map(str, sizes)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, timeout=600, check=False)
    if run.returncode != 0:
        raise RuntimeError("allreduce: " + run.stderr.strip()[-500:])
    return {int(line.split()[0]): float(line.split()[1]) for line in run.stdout.splitlines()}


def allreduce(bench, quick):
    """All-reduce by the devices and MPI_Allreduce over shared memory, in turns."""
    mpi = bench / "mpi_allreduce"
    sides = {"netdam_ms": lambda sizes: run_firmware(bench / "allreduce", sizes, "nocrc"),
             "netdam_crc_ms": lambda sizes: run_firmware(bench / "allreduce", sizes, "crc")}
    report = {"ranks": RANKS, "type": "F32", "sizes": []}
    if shutil.which("mpirun") and mpi.exists():
        sides["openmpi_ms"] = lambda sizes: run_mpi(mpi, sizes)
    else:
        report["skipped"] = "Open MPI is missing: apt-get install openmpi-bin libopenmpi-dev"
    sizes = QUICK_SIZES if quick else SIZES
    rounds = [{name: side(sizes) for name, side in sides.items()} for _ in range(1 if quick else ROUNDS)]
    for size in sizes:
        one = {"bytes": size, **{name: statistics.median(taken[name][size] for taken in rounds) for name in sides}}
        if "openmpi_ms" in one:
            one["speedup"] = one["openmpi_ms"] / one["netdam_ms"]
        report["sizes"].append(one)
    return report


def size_text(size):
    for unit, text in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return "%d %s" % (size // unit, text)
    return "%d B" % size


def number(value, digits=2):
    return "-" if value is None else "%.*f" % (digits, value)


def print_rows(title, columns, rows):
    print("\n%s" % title)
    table = [columns] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    for row in table:
        print("  " + "  ".join(row[0].ljust(widths[0]) if i == 0 else cell.rjust(widths[i])
                               for i, cell in enumerate(row)))


def print_alu(report):
    rows = [[size_text(one["bytes"]), number(one["device_gb_s"]), number(one["host_gb_s"]), number(one["ratio"])]
            for one in report["alu_add_f32_ratio"].values()]
    print_rows("a[i] += b[i], float32 (alu_add_f32_ratio)", ["arrays", "device GB/s", "host GB/s", "ratio"], rows)
    rows = [["%s %s" % (one["type"], one["operation"])]
            + [number(one[where][what]) for where in ("memory", "cache")
               for what in ("device_gb_s", "host_gb_s", "ratio")] for one in report["alu"]]
    first = report["alu"][0]
    print_rows("every operation and type: arrays of %s | of %s"
               % (size_text(first["memory"]["bytes"]), size_text(first["cache"]["bytes"])),
               ["", "device GB/s", "host GB/s", "ratio", "device GB/s", "host GB/s", "ratio"], rows)


def print_packets(report):
    small, large = report["loopback_mpps"], report["write_8k_vs_memcpy"]
    print_rows("WRITE of 8 B, descriptor to completion, one core (loopback_mpps)",
               ["", "M/s", "ns"], [["two firmware instances", number(small["mpps"]), number(small["ns"], 0)],
                                   ["UDP over the kernel's loopback, there and back", number(small["udp_mpps"]),
                                    number(small["udp_ns"], 0)]])
    print_rows("WRITE of 8 KiB over %s (write_8k_vs_memcpy)" % size_text(large["bytes"]),
               ["payload CRC", "GB/s", "memcpy GB/s", "ratio", "memcpy through frames GB/s"],
               [[name, number(large[key]["gb_s"]), number(large[key]["memcpy_gb_s"]), number(large[key]["ratio"]),
                 number(large[key]["double_gb_s"])]
                for name, key in (("without", "without_crc"), ("with", "with_crc"))])


def print_anatomy(report):
    for name, title in (("write_8", "anatomy of a WRITE of 8 B"), ("reduce_8k", "anatomy of a REDUCE of 8 KiB")):
        one = report["anatomy"][name]
        rows = [["requester: descriptor", number(one["descriptor_ns"], 0)],
                ["requester: request", number(one["request_ns"], 0)],
                ["target", number(one["target_ns"], 0)]]
        rows += [["    %s" % key[:-3].replace("_", " "), number(value, 0)] for key, value in one["target"].items()]
        rows += [["requester: completion", number(one["completion_ns"], 0)], ["together", number(one["total_ns"], 0)]]
        print_rows(title, ["stage", "ns"], rows)


def print_crypto(report):
    crypto = report["crypto"]
    if "skipped" in crypto:
        print("\ncrypto: skipped: %s" % crypto["skipped"])
        return
    print_rows("WRITE of %s, with payload CRC or a tenant's tag (crypto)" % size_text(crypto["bytes"]),
               ["tenant", "GB/s", "the library's sealing and opening GB/s", "ratio"],
               [[name, number(crypto[name]["gb_s"]), number(crypto[name].get("library_gb_s")),
                 number(crypto[name].get("ratio"))] for name in ("without", "authenticated", "encrypted")])


def print_report(report):
    print_alu(report)
    print_packets(report)
    print_crypto(report)
    state = report["state_bytes_per_peer"]
    print_rows("bytes of state per peer (state_bytes_per_peer)", ["", "bytes"],
               [[key.replace("_", " "), number(value, 0)] for key, value in state.items()])
    print_anatomy(report)
    peer = report["allreduce_vs_openmpi_shm"]
    print_rows("all-reduce of float32, %d nodes or ranks, shared memory (allreduce_vs_openmpi_shm)" % peer["ranks"],
               ["per node", "NetDAM ms", "with payload CRC", "Open MPI ms", "speed-up"],
               [[size_text(one["bytes"])] + [number(one.get(key), digits) for key, digits in (
                   ("netdam_ms", 3), ("netdam_crc_ms", 3), ("openmpi_ms", 3), ("speedup", 2))] for one in peer["sizes"]])
    if "skipped" in peer:
        print("Open MPI: skipped: %s" % peer["skipped"])


def main():
    quick = sys.argv[1:] == ["--quick"]
    if sys.argv[1:] and not quick:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    out = pathlib.Path(os.environ.get("O", "build"))
    bench = out / "tests/bench"
    report = {"machine": machine()}
    run = subprocess.run([str(bench / "bench-firmware"), *sys.argv[1:]], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        return 1
    report.update(json.loads(run.stdout))
    report["allreduce_vs_openmpi_shm"] = allreduce(bench, quick)
    path = out / "bench" / ("quick.json" if quick else "firmware.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    print_report(report)
    print("\n%s" % path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
