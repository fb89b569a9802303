#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the manual agrees with the specification headers: tables, layouts, examples, links. Prints TAP."""

import filecmp
import os
import re
import subprocess
import sys
import tempfile

DOCS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(DOCS)
TABLES = os.path.join(TOP, os.environ.get("O", "build"), "docs", "gen", "tables")
GOLDEN = os.path.join(TOP, "tests", "golden")

results = []


def check(name, problems):
    results.append(not problems)
    print("%sok %d - %s" % ("not " if problems else "", len(results), name))
    for problem in problems:
        print("# " + problem)


def pages():
    names = [n for n in sorted(os.listdir(DOCS)) if n.endswith(".md")]
    return [(n, open(os.path.join(DOCS, n), encoding="utf-8").read()) for n in names]


def rows(text):
    """The rows of the Markdown table at the beginning of `text`, without its two lines of head."""
    lines = []
    for line in text.split("\n"):
        if not line.startswith("|"):
            break
        lines.append([cell.strip() for cell in line.strip("|").split("|")])
    return lines[2:]


def section(text, title):
    """The table below the heading `title` in a generated page."""
    start = text.index("\n## " + title) + 1
    return rows(text[text.index("\n|", start) + 1:])


def stale_tables(fresh):
    problems = []
    kept = os.path.join(DOCS, "tables")
    for name in sorted(set(os.listdir(fresh)) | set(os.listdir(kept))):
        a, b = os.path.join(fresh, name), os.path.join(kept, name)
        if not (os.path.exists(a) and os.path.exists(b) and filecmp.cmp(a, b, shallow=False)):
            problems.append("docs/tables/%s differs from what the headers say: run `make docs`" % name)
    return problems


def wrong_layouts(fresh):
    text = open(os.path.join(fresh, "layouts.md"), encoding="utf-8").read()
    problems, seen = [], set()
    for page, body in pages():
        for mark in re.finditer(r"<!-- layout: (\w+) -->\n", body):
            name = mark[1]
            seen.add(name)
            if "\n## %s:" % name not in text:
                problems.append("%s: no structure %s" % (page, name))
                continue
            right = section(text, name + ":")
            written = [row[:3] for row in rows(body[mark.end():])]
            if written != right:
                wrong = [str(w) for w in written if w not in right] + ["missing " + str(r) for r in right if r not in written]
                problems.append("%s: layout of %s: %s" % (page, name, "; ".join(wrong) or "order"))
    for name in re.findall(r"\n## (\w+):", text):
        if name not in seen:
            problems.append("no page explains the layout of %s" % name)
    return problems


def wrong_flags(fresh):
    text = open(os.path.join(fresh, "flags.md"), encoding="utf-8").read()
    body = dict(pages())["wire-format.md"]
    at = body.index("### 2.2")
    written = [[r[0], r[1], r[2].upper()] for r in rows(body[body.index("\n|", at) + 1:])]
    right = [r[:3] for r in section(text, "Flags of a packet")]
    return [] if written == right else ["wire-format.md, section 2.2: %s, not %s" % (written, right)]


def wrong_descriptor_flags(fresh):
    text = open(os.path.join(fresh, "flags.md"), encoding="utf-8").read()
    body = dict(pages())["rings.md"]
    at = body.index("### Flags")
    written = [r[:2] for r in rows(body[body.index("\n|", at) + 1:])]
    right = [r[:2] for r in section(text, "Flags of a descriptor")]
    return [] if written == right else ["rings.md, Flags: %s, not %s" % (written, right)]


def wrong_opcodes(fresh):
    text = open(os.path.join(fresh, "opcodes.md"), encoding="utf-8").read()
    table = {r[0]: r[1] for r in rows(text[text.index("\n|") + 1:])}
    body = dict(pages())["wire-format.md"]
    problems = []
    for name, value in re.findall(r"^### ([A-Z_]+) \((0x[0-9a-f]+)\)$", body, re.M):
        if table.get(name) != value:
            problems.append("wire-format.md: %s is %s, not %s" % (name, table.get(name), value))
    problems += ["wire-format.md does not mention " + name for name in table
                 if not re.search(r"\b%s\b" % name, body) and int(table[name], 16) < 0x80]
    return problems


def unknown_statuses(fresh):
    """Each code that the headers define is in the manual's prose at least once."""
    body = "".join(text for _, text in pages())
    problems = []
    for page, head in (("status.md", "\n|"), ("admin.md", "\n|")):
        text = open(os.path.join(fresh, page), encoding="utf-8").read()
        problems += ["%s is explained nowhere" % r[0] for r in rows(text[text.index(head) + 1:])
                     if not re.search(r"\b%s\b" % r[0], body)]
    return problems


def wrong_examples():
    problems, count = [], 0
    for page, body in pages():
        for name, block in re.findall(r"<!-- golden: ([\w-]+) -->\n(?:```\n(.*?)```)?", body, re.S):
            count += 1
            path = os.path.join(GOLDEN, name + ".hex")
            whole = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
            if not block or not whole.endswith(block):
                problems.append("%s: the example %s is not what tests/golden/%s.hex says" % (page, name, name))
    return problems or ([] if count else ["there is no example"])


def anchor(title):
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def broken_links():
    problems = []
    places = [(os.path.join(DOCS, n), t) for n, t in pages()]
    tables = os.path.join(DOCS, "tables")
    for name in sorted(os.listdir(tables)):
        with open(os.path.join(tables, name), encoding="utf-8") as file:
            places.append((os.path.join(tables, name), file.read()))
    readme = os.path.join(TOP, "README.md")
    if os.path.exists(readme):
        places.append((readme, open(readme, encoding="utf-8").read()))
    for path, body in places:
        for target in re.findall(r"\]\(([^)]+)\)", body):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, part = target.partition("#")
            full = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(full):
                problems.append("%s: no %s" % (os.path.relpath(path, TOP), target))
            elif part and part not in [anchor(t) for t in re.findall(r"^#+ (.*)$", open(full, encoding="utf-8").read(), re.M)]:
                problems.append("%s: no section %s" % (os.path.relpath(path, TOP), target))
    return problems


def main():
    with tempfile.TemporaryDirectory() as fresh:
        subprocess.run([TABLES, fresh], check=True)
        check("docs/tables is what the headers say", stale_tables(fresh))
        check("hand-written layout tables agree with the headers", wrong_layouts(fresh))
        check("the table of packet flags agrees with the headers", wrong_flags(fresh))
        check("the table of descriptor flags agrees with the headers", wrong_descriptor_flags(fresh))
        check("opcodes agree with the headers", wrong_opcodes(fresh))
        check("every status code and administration command is explained", unknown_statuses(fresh))
        check("examples are golden packets", wrong_examples())
        check("links lead somewhere", broken_links())
    print("1..%d" % len(results))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
