#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""netdam-plot draws what the bench of many paths has measured, and says what is wrong where it cannot. Prints TAP."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import ndtest  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = pathlib.Path(os.environ.get("O", "build")).resolve()
PLOT = ROOT / "sim/plot/netdam-plot"
PICTURES = ["latency-cdf", "goodput-over-loss", "queue-depth", "paths"]


def check(name, complaints):
    ndtest.check(not complaints, name, complaints)


def plot(*arguments, path=None):
    environment = dict(os.environ, **({"PATH": path} if path is not None else {}))
    return subprocess.run([sys.executable, str(PLOT), *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False, env=environment)


def png_complaints(path):
    data = path.read_bytes()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return ["%s is no PNG" % path.name]
    size = struct.unpack(">II", data[16:24])
    return [] if size == (900, 560) else ["%s has %d by %d" % (path.name, *size)]


def svg_complaints(path, curves):
    root = xml.etree.ElementTree.parse(path).getroot()
    drawn = [one for one in root.iter() if one.tag.endswith("path") and len(re.findall("[ML]", one.get("d", ""))) >= 4
             or one.tag.endswith("polyline")]
    return [] if len(drawn) >= curves else ["%s shows %d curves, not %d" % (path.name, len(drawn), curves)]


def measure():
    environment = dict(os.environ, O=str(OUT))
    for name in ("fabric-quick.json",):
        (OUT / "bench" / name).unlink(missing_ok=True)
    (OUT / "bench").mkdir(parents=True, exist_ok=True)
    (OUT / "bench/fabric-quick.json").write_text('{"kept": 1}')
    run = subprocess.run([sys.executable, str(ROOT / "tests/paths/bench.py"), "--quick"], capture_output=True, text=True,
                         timeout=600, check=False, env=environment)
    report = json.loads((OUT / "bench/fabric-quick.json").read_text())
    complaints = [] if run.returncode == 0 else ["exit status %d: %s" % (run.returncode, run.stderr)]
    if report.get("kept") != 1:
        complaints.append("what was in the file is gone")
    if not 0.9 <= report["goodput_at_1pct_loss"] <= 1:
        complaints.append("goodput_at_1pct_loss is %s" % report["goodput_at_1pct_loss"])
    if not 3 <= report["spray_gain"] <= 4.01:
        complaints.append("spray_gain is %s" % report["spray_gain"])
    check("the bench writes its figures beside what is in the file, and they reach their goals", complaints)


def main():
    measure()
    source = OUT / "bench/fabric-quick.json"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary, "a folder's")
        done = plot("-o", folder, source)
        complaints = [] if done.returncode == 0 else [done.stderr]
        complaints += [c for name in PICTURES for c in png_complaints(folder / (name + ".png"))] if not complaints else []
        if done.stdout.split("\n")[:-1] != [str(folder / (name + ".png")) for name in PICTURES]:
            complaints.append("printed: %s" % done.stdout)
        check("four pictures as PNG, named on stdout", complaints)

        done = plot("--format", "svg", "--picture", "queue-depth", "--picture", "latency-cdf", "--output", folder, source)
        complaints = [] if done.returncode == 0 else [done.stderr]
        if not complaints:
            complaints = svg_complaints(folder / "queue-depth.svg", 2) + svg_complaints(folder / "latency-cdf.svg", 3)
        if (folder / "paths.svg").exists():
            complaints.append("a picture that nobody asked for")
        check("chosen ones as SVG, with a curve for each series", complaints)

        report = json.loads(source.read_text())
        del report["virtual_time"]["queue"]
        partial, nothing, torn = (folder / name for name in ("partial.json", "nothing.json", "torn.json"))
        partial.write_text(json.dumps(report))
        nothing.write_text("{}")
        torn.write_text(source.read_text()[:100])
        for name, arguments, status, expected in (
                ("a file that is not there", [folder / "none.json"], 1, "No such file"),
                ("a file that is no JSON", [torn], 1, "not JSON"),
                ("a file without figures", [nothing], 1, "make bench-fabric"),
                ("a file that lacks a series", ["-p", "queue-depth", partial], 1, "queue-depth"),
                ("a picture that there is not", ["-p", "nonsense", source], 2, "nonsense")):
            done = plot(*arguments)
            told = done.returncode == status and expected in done.stderr and "Traceback" not in done.stderr
            check("%s: status %d and a line that says so" % (name, status),
                  [] if told else ["status %d: %s" % (done.returncode, done.stderr)])
        done = plot(source, path="/nonexistent")
        check("without gnuplot the package is named", [] if done.returncode == 1 and "gnuplot-nox" in done.stderr else
              ["status %d: %s" % (done.returncode, done.stderr)])

    page = (ROOT / "sim/man/netdam-plot.1").read_text().replace("\\-", "-")
    usage, version = plot("--help"), plot("--version")
    options = set(re.findall(r"--[a-z]+", usage.stdout))
    complaints = ["the page lacks %s" % option for option in sorted(options) if option not in page]
    if usage.returncode != 0 or version.returncode != 0 or not version.stdout.startswith("netdam-plot "):
        complaints.append("--help or --version fails")
    check("the manual page has all options", complaints)
    return ndtest.all_checked()


if __name__ == "__main__":
    sys.exit(main())
