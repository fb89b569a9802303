#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts figures into a JSON file to which several benchmarks write.

    figures.py WHOLE PART...

merges the members of the JSON object in each file PART into the one in WHOLE, which need not exist."""

import json
import os
import sys


def merge(path, part):
    """Puts the members of `part` into the JSON object in the file, and replaces it at once."""
    whole = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump({**whole, **part}, file, indent=1)
        file.write("\n")
    os.replace(file.name, path)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    try:
        for part in sys.argv[2:]:
            with open(part, encoding="utf-8") as file:
                merge(sys.argv[1], json.load(file))
    except (OSError, ValueError) as error:
        sys.exit(f"figures.py: {error}")


if __name__ == "__main__":
    main()
