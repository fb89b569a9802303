#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the manual pages of section 3 from the comments in netdam*.h, which is where the functions are described.

    api.py INCLUDE FOLDER

INCLUDE is where the headers are. One page per topic, and for each function that it describes a link of the function's
name. A function that belongs to no topic is an error.
"""

import glob
import os
import re
import sys

# Page, what it is about, and which functions and structs it describes, in this order.
TOPICS = [
    ("netdam_open", "open a NetDAM device and look at it",
     ["netdam_log_level", "netdam_open_flag", "netdam_open_config", "netdam_open", "netdam_close", "netdam_device_name", "netdam_device_info", "netdam_query",
      "netdam_opcode_query", "netdam_reset", "netdam_counter_read", "netdam_lease", "netdam_leases", "netdam_version"]),
    ("netdam_memory", "on-board memory, and the regions through which requests name it",
     ["netdam_memory", "netdam_memory_bytes", "netdam_alloc", "netdam_free", "netdam_region_create",
      "netdam_region_config", "netdam_region_create_config", "netdam_region_destroy", "netdam_region_key",
      "netdam_region_index", "netdam_region_pointer", "netdam_region_bytes"]),
    ("netdam_peer", "the nodes that requests go to",
     ["netdam_peer_open", "netdam_peer_open_tenant", "netdam_peer_open_paths", "netdam_peer_close", "netdam_neighbour_set", "netdam_tenant_set"]),
    ("netdam_queue", "queue pairs, and sleeping until something has completed",
     ["netdam_queue_config", "netdam_queue_create", "netdam_queue_destroy", "netdam_queue_outstanding",
      "netdam_queue_receive_key", "netdam_queue_receives", "netdam_queue_fd", "netdam_queue_arm"]),
    ("netdam_post", "post requests and receive buffers, take completions",
     ["netdam_remote", "netdam_local", "netdam_piece", "netdam_request", "netdam_post", "netdam_receive",
      "netdam_post_receive", "netdam_poll", "netdam_wait"]),
    ("netdam_raw", "ordinary Ethernet frames, beside NetDAM",
     ["netdam_frame", "netdam_raw_post", "netdam_raw_steer"]),
    ("netdam_blocking", "operations on another node's memory that wait for their end",
     ["netdam_write", "netdam_read", "netdam_reduce", "netdam_fetch_add", "netdam_fetch_op", "netdam_swap", "netdam_cas",
      "netdam_send", "netdam_echo"]),
    ("netdam_transaction", "several operations on one node, all or nothing",
     ["netdam_transaction", "netdam_transaction_begin", "netdam_transaction_compare", "netdam_transaction_fetch",
      "netdam_transaction_write", "netdam_transact"]),
    ("netdam_chain", "requests that visit several nodes one after the other",
     ["netdam_hop", "netdam_chain_create", "netdam_chain_destroy", "netdam_chain_run"]),
    ("netdam_collectives", "operations of several nodes together",
     ["netdam_group_member", "netdam_group_create", "netdam_group_destroy", "netdam_all_reduce", "netdam_reduce_scatter",
      "netdam_all_gather", "netdam_broadcast", "netdam_barrier"]),
    ("netdam_names", "names of statuses, opcodes, types and counters; datagrams in words",
     ["netdam_status_name", "netdam_status_text", "netdam_op_name", "netdam_alu_name", "netdam_type_name",
      "netdam_counter_name", "netdam_counter_text", "netdam_op_by_name", "netdam_alu_by_name", "netdam_type_by_name",
      "netdam_counter_by_name", "netdam_describe_datagram"]),
]

# Comments that speak about more than the declaration behind them: first words, page.
GENERAL = [("Conventions", None), ("On-board memory.", "netdam_memory"), ("Blocking operations:", "netdam_blocking"),
           ("Ordinary frames:", "netdam_raw"),
           ("Collectives, each", "netdam_collectives"), ("Names, from", "netdam_names")]


class Item:
    """A declaration and its comment, as paragraphs of lines."""

    def __init__(self, name, declaration, comment):
        self.name = name
        self.declaration = declaration
        self.comment = comment
        self.is_function = declaration.endswith(")") or declaration.endswith(");")


def comment_lines(text):
    lines = []
    for line in text.splitlines():
        line = re.sub(r"^\s*(/\*\*?|\*/|\*)\s?", "", line)
        lines.append(re.sub(r"\s*\*/\s*$", "", line))
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def parse(header):
    """The items of a header by name, and its general comments."""
    items = {}
    general = {}
    token = re.compile(r"/\*.*?\*/|^NETDAM_API [^;]*;|^(?:struct|enum) \w+ \{.*?^\};", re.S | re.M)
    comment = ""
    end = 0
    for match in token.finditer(header):
        text = match.group(0)
        if text.startswith("/*"):
            lines = comment_lines(text)
            described = header[match.end():].lstrip("\n").startswith(("struct", "enum"))
            comment = text if text.startswith("/**") or described else ""
            for start, page in GENERAL:
                if lines[0].startswith(start):
                    general[page] = lines
            end = match.end()
            continue
        # A comment counts for the declarations that follow it without an empty line.
        if "\n\n" in header[end:match.start()]:
            comment = ""
        end = match.end()
        if text.startswith(("struct", "enum")):
            name = re.match(r"\w+ (\w+)", text).group(1)
            declaration = text
        else:
            name = re.search(r"\**(\w+)\(", text).group(1)
            declaration = re.sub(r"\n\s+", " ", text.replace("NETDAM_API ", ""))
        items[name] = Item(name, declaration, comment_lines(comment))
    return items, general


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"@(\w+)", r"\\fI\1\\fR", text)
    text = re.sub(r"\b(netdam_\w+)\(\)", r"\\fB\1\\fR()", text)
    return "\\&" + text if text.startswith((".", "'")) else text


def wrap(declaration, width=76):
    """A prototype over as many lines as it takes, its arguments below one another."""
    if len(declaration) <= width:
        return [declaration]
    lines = []
    indent = " " * 8
    line = ""
    for argument in re.split(r"(?<=,) ", declaration):
        if line and len(line) + 1 + len(argument) > width:
            lines.append(line)
            line = indent + argument
        else:
            line = f"{line} {argument}" if line else argument
    return lines + [line]


def paragraphs(lines):
    """Roff of a comment's lines: parameters become tagged paragraphs, indented lines stay as they are."""
    out = []
    fresh = True
    for line in lines:
        parameter = re.match(r"@(\w+(?:, @\w+)*): (.*)", line)
        flag = re.match(r"\s+(NETDAM_\w+): (.*)", line)
        if not line.strip():
            fresh = True
        elif parameter or flag:
            match = parameter or flag
            names = re.findall(r"\w+", match.group(1))
            out += [".TP", ", ".join(f"\\fI{name}\\fR" if parameter else f"\\fB{name}\\fR" for name in names),
                    escape(match.group(2))]
            fresh = False
        else:
            if fresh:
                out.append(".PP")
            elif line.strip().startswith('"'):
                out.append(".br")
            out.append(escape(line.strip()))
            fresh = False
    return out


def describe(item):
    lines = list(item.comment)
    title = item.name + ("()" if item.is_function else "")
    out = [f".SS {escape(title) if item.is_function else item.declaration.split(' {')[0]}"]
    if lines:
        match = re.match(rf"(?:struct )?{item.name}(?:\(\))? - (.*)", lines[0])
        if match:
            lines[0] = match.group(1)
            # The brief sentence has no full stop and no capital; what follows has.
            brief = []
            while lines and lines[0].strip() and not lines[0].startswith("@"):
                brief.append(lines.pop(0))
            text = " ".join(part.strip() for part in brief)
            out += [".PP", escape(text[:1].upper() + text[1:] + ("" if text.endswith(".") else "."))]
    return out + paragraphs(lines)


def page(name, brief, wanted, items, general):
    functions = [items[item].name for item in wanted if items[item].is_function]
    titles = ([] if name in functions else [name]) + functions
    out = ['.\\" SPDX-License-Identifier: BSD-3-Clause', f'.TH {name.upper()} 3 "" "NetDAM" "Library Functions"', ".SH NAME",
           f"{', '.join(titles)} \\- {escape(brief)}", ".SH SYNOPSIS", ".nf", "#include <netdam.h>", ""]
    for item in wanted:
        if items[item].is_function:
            out += [line.replace("\\", "\\e") for line in wrap(items[item].declaration)]
        else:
            out += ["", *items[item].declaration.splitlines(), ""]
    out += ["", "cc program.c `pkg\\-config \\-\\-cflags \\-\\-libs netdam`", ".fi", ".SH DESCRIPTION"]
    if name in general:
        out += paragraphs(general[name])
    for item in wanted:
        # What shares a comment with the function before it needs no second copy.
        if items[item].comment:
            out += describe(items[item])
    out += [".SH CONVENTIONS"] + paragraphs(general[None][1:])
    others = [f".BR {topic} (3)" for topic, _, _ in TOPICS if topic != name]
    out += [".SH SEE ALSO", ",\n".join(others + [".BR netdam\\-info (1)", ".BR netdam\\-node (1)"])]
    return "\n".join(out).replace(",\n.BR", " ,\n.BR") + "\n", functions


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    items, general = {}, {}
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "netdam*.h"))):
        with open(path, encoding="utf-8") as file:
            for known, found in zip((items, general), parse(file.read())):
                known.update(found)
    known = {item for _, _, wanted in TOPICS for item in wanted}
    missing = [name for name, item in items.items() if item.is_function and name not in known]
    unknown = sorted(known - set(items))
    lost = [start for start, topic in GENERAL if topic not in general]
    if missing or unknown or lost:
        sys.exit(f"api.py: in no topic: {missing}; not in the headers: {unknown}; comments not found: {lost}")
    os.makedirs(sys.argv[2], exist_ok=True)
    for topic, brief, wanted in TOPICS:
        text, functions = page(topic, brief, wanted, items, general)
        with open(os.path.join(sys.argv[2], f"{topic}.3"), "w", encoding="utf-8") as file:
            file.write(text)
        for function in functions:
            if function != topic:
                with open(os.path.join(sys.argv[2], f"{function}.3"), "w", encoding="utf-8") as file:
                    file.write(f".so man3/{topic}.3\n")


if __name__ == "__main__":
    main()
