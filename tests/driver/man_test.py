#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages: each exported function and each option of each program is in one, and they are well formed (TAP)."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import ndtest  # noqa: E402

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
BUILD = os.path.join(ROOT, os.environ.get("O", "build"))
MAN = os.path.join(ROOT, "host-driver", "man")


def check(name, complaints):
    ndtest.check(not complaints, name, complaints)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def options_of(text):
    """Long and short options, without the backslashes that roff wants before a dash."""
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text.replace("\\-", "-").replace("\\fB", " ").replace("\\fR", " ")))


def functions(folder):
    complaints = []
    for function in re.findall(r"^\s+(netdam_\w+);", read(ROOT, "host-driver", "netdam.map"), re.M):
        path = os.path.join(folder, f"{function}.3")
        if not os.path.exists(path):
            complaints.append(f"no page {function}.3")
            continue
        text = read(path)
        if text.startswith(".so man3/"):
            text = read(folder, text.split("/")[1].strip())
        names = text[text.index(".SH NAME"):text.index(".SH SYNOPSIS")]
        if function not in re.findall(r"\w+", names) or f"{function}(" not in text:
            complaints.append(f"{function}.3 does not describe it")
    return complaints


def programs():
    """Name and path of each program that has a page, and complaints about those that have none."""
    found = {}
    for path in glob.glob(os.path.join(MAN, "*.[18]")):
        name = os.path.basename(path)[:-2]
        places = [os.path.join(BUILD, folder, name) for folder in ("host-driver", "host-driver/netdamd", "sim")]
        found[name] = (path, next((place for place in places if os.access(place, os.X_OK)), None))
    complaints = [f"no page for {name}" for name in ("netdam-info", "netdam-mem", "netdam-node") if name not in found]
    return found, complaints


def help_of(program):
    done = subprocess.run([program, "--help"], capture_output=True, timeout=60, check=False, encoding="utf-8")
    return done.stdout if done.returncode == 0 else None


def options(page, programs_of_it):
    """A page that several programs share has the options of all of them."""
    complaints = []
    told = set()
    text = read(page)
    for name, program in programs_of_it:
        if program is None:
            complaints.append(f"{name} has not been built")
            continue
        usage = help_of(program)
        if usage is None:
            complaints.append(f"{name} --help fails")
            continue
        if name not in text[:text.index(".SH SYNOPSIS")].replace("\\-", "-"):
            complaints.append(f"the page does not name {name}")
        mine = options_of("\n".join(line for line in usage.splitlines() if line.lstrip().startswith("-")))
        complaints += [f"the page lacks {option} of {name}" for option in sorted(mine - options_of(text))]
        told |= options_of(usage)
    start = text.index(".SH OPTIONS")
    written = options_of(text[start:text.find(".SH ", start + 4)])
    return complaints + [f"--help lacks {option}" for option in sorted(written - told)]


def warnings(paths, folder):
    if not shutil.which("groff"):
        return None
    complaints = []
    for path in paths:
        if re.search(r"^\.so ", read(path), re.M):
            continue  # another page, which is looked at by itself
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", path], capture_output=True, timeout=60, check=False,
                              encoding="utf-8", cwd=os.path.dirname(folder))
        complaints += done.stderr.splitlines()
    return complaints


def main():
    found, complaints = programs()
    pages = {}
    for name, (page, program) in sorted(found.items()):
        other = re.search(r"^\.so man\d/(.*)$", read(page), re.M)
        pages.setdefault(os.path.join(MAN, other.group(1)) if other else page, []).append((name, program))
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.join(temporary, "man3")
        subprocess.run([sys.executable, os.path.join(MAN, "api.py"), os.path.join(ROOT, "host-driver", "include"), folder],
                       check=True, timeout=60)
        check("each exported function has a page that describes it", functions(folder))
        check("the programs have pages", complaints)
        for page, sharing in sorted(pages.items()):
            check(f"{os.path.basename(page)}: page and --help name the same options", options(page, sharing))
        complaints = warnings(sorted(glob.glob(f"{folder}/*.3")) + [page for page, _ in found.values()], folder)
        if complaints is None:
            ndtest.skip("the pages are well formed", "no groff here")
        else:
            check("the pages are well formed", complaints)
    return ndtest.all_checked()


if __name__ == "__main__":
    sys.exit(main())
