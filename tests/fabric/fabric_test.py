#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames through the fabric, with DPDK for real: ports, switches, links and their faults, what ends and begins. TAP."""

import os
import resource
import signal
import subprocess

from harness import Control, Endpoints, Fabric, by_name, main, numbered, numbers, path, pcap_read, pcap_write, way, write
from ndtest import FABRIC, LIMIT_S, Program, equal, expect, test


def star(members, link=""):
    """Memif ports e0, e1, ... round a switch."""
    return ('ports = ( { name = "e"; count = %d; } ); switches = ( { name = "s"; } );'
            'links = ( { from = "e"; to = "s"; %s } );' % (members, link))


def line(link, count, size=64, more=""):
    """A file of numbered frames, a link, and a file of what comes out."""
    pcap_write("in.pcap", numbered(count, size))
    return Fabric('ports = ( { name = "a"; type = "pcap"; read = "in.pcap"; }, { name = "b"; type = "pcap"; write = "out.pcap"; } );'
                  'links = ( { from = "a"; to = "b"; %s } ); %s' % (link, more))


def all_through(fabric, count):
    """Waits until so many frames have come in and nothing is under way; ends the fabric; returns its counters."""
    fabric.control.until(lambda c: by_name(c["ports"], "a")["in_frames"] == count and c["totals"]["under_way"] == 0,
                         "%d frames through" % count)
    return fabric.stop()


def out():
    return numbers(pcap_read("out.pcap")[1])


@test
def two_endpoints_exchange_frames_of_all_sizes_in_order_and_intact():
    fabric = Fabric(star(2))
    ends = Endpoints("e0", "e1")
    ends.do("up")
    sent = 0
    for size in (46, 60, 64, 65, 1514, 2048, 2049, 9014):
        ends.do("send", 0, 1, 1000, size)
        ends.do("send", 1, 0, 500, size)
        sent += 1000
    ends.do("wait", 1, sent)
    ends.do("wait", 0, sent // 2)
    # One frame from each end was flooded, the addresses being unknown; the only other port is the right one.
    equal(ends.report(), [{"got": n, "disorder": 0, "damaged": 0, "up": True} for n in (sent // 2, sent)], "report")
    ends.stop()
    totals = fabric.stop()["totals"]
    equal((totals["in"], totals["out"], totals["dropped"]), (sent * 3 // 2, sent * 3 // 2, 0), "totals")


@test
def eight_endpoints_reach_each_other_and_nobody_else():
    fabric = Fabric(star(8))
    ends = Endpoints(*["e%d" % i for i in range(8)])
    ends.do("up")
    for i in range(8):
        ends.do("send", i, -1, 1, 60)
    for i in range(8):
        ends.do("wait", i, 7)
    ends.report()
    for i in range(8):
        ends.do("send", i, (i + 1) % 8, 200, 700)
        ends.do("send", i, (i + 3) % 8, 100, 700)
    for i in range(8):
        ends.do("wait", i, 300)
    counters = fabric.control.until(lambda c: c["totals"]["under_way"] == 0, "nothing under way")
    equal(ends.report(), [{"got": 300, "disorder": 0, "damaged": 0, "up": True}] * 8, "report")
    equal(by_name(counters["switches"], "s")["flooded"], 8, "flooded")
    equal(by_name(counters["switches"], "s")["copies"], 8 * 6, "copies")
    equal([port["stations"] for port in counters["ports"]], [1] * 8, "stations")
    ends.stop()
    fabric.stop()


@test
def a_fault_by_count_happens_to_exactly_these_frames():
    last = all_through(line("drop = { nth = 3; every = 10; }; duplicate = { nth = 5; };", 1000), 1000)
    expected = [n for n in range(1000) for _ in range(2 if n == 4 else 1) if n % 10 != 2]
    equal(out(), expected, "frames")
    there = way(last, "a-b")
    equal((there["frames"], there["delivered"], there["dropped"]["fault"], there["duplicated"]), (1000, 901, 100, 1), "counters")


@test
def a_late_frame_is_overtaken():
    all_through(line('reorder = { nth = 4; by = "300ms"; };', 100), 100)
    equal(out(), [n for n in range(100) if n != 3] + [3], "frames")


@test
def corruption_spares_the_ethernet_header_and_all_other_frames():
    all_through(line("corrupt = { every = 2; };", 400, 60), 400)
    got = pcap_read("out.pcap")[1]
    sent = numbered(400, 60)
    equal(len(got), 400, "frames")
    for i, (is_, was) in enumerate(zip(got, sent)):
        flips = sum(bin(a ^ b).count("1") for a, b in zip(is_, was))
        expect(is_[:14] == was[:14], "frame %d: damaged header" % i)
        expect(1 <= flips <= 3 if i % 2 else flips == 0, "frame %d: %d flips" % (i, flips))


@test
def a_copy_is_damaged_alone():
    all_through(line('duplicate = { nth = 1; every = 1; }; corrupt = "50%"; jitter = "1ms";', 200, 60), 200)
    got = pcap_read("out.pcap")[1]
    intact = [n for n in numbers([f for f in got if f in numbered(200, 60)])]
    equal(len(got), 400, "frames")
    expect(any(intact.count(n) == 1 for n in range(200)), "never one copy damaged and the other not")


@test
def a_frame_has_no_more_owners_than_a_buffer_counts():
    pcap_write("in.pcap", numbered(1, 60))
    # 2^14 copies come to the last switch, which sends each to six ports whose links hold as many as there are buffers.
    hops = ["a"] + ["s%d" % n for n in range(14)]
    ends = range(6)
    fabric = Fabric('ports = ( { name = "a"; type = "pcap"; read = "in.pcap"; }, %s, { name = "e"; count = 2; } );'
                    'switches = ( %s, { name = "s"; } ); links = ( %s, { from = "e"; to = "s"; delay = "1ms"; } );' % (
                        ", ".join('{ name = "b%d"; type = "pcap"; write = "out%d.pcap"; }' % (n, n) for n in ends),
                        ", ".join('{ name = "%s"; }' % name for name in hops[1:]),
                        ", ".join(['{ from = "%s"; to = "%s"; duplicate = "100%%"; delay = "1ms"; }' % pair
                                   for pair in zip(hops, hops[1:])] +
                                  ['{ from = "%s"; to = "b%d"; delay = "1s"; }' % (hops[-1], n) for n in ends])))
    ends = Endpoints("e0", "e1")
    ends.do("up")
    counters = fabric.control.until(lambda c: by_name(c["ports"], "a")["in_frames"] == 1 and c["totals"]["under_way"] == 0, "all through")
    lost = sum(one["dropped"]["memory"] for one in counters["links"] + counters["switches"])
    expect(lost > 0 and counters["totals"]["balanced"], lost, counters["totals"])
    ends.do("send", 0, 1, 500, 600)
    ends.do("wait", 1, 500)
    ends.stop()
    fabric.stop()


@test
def whatever_is_slow_leaves_buffers_for_others():
    # One frame in 0.7 s, or in an hour, comes through to e1 and to e2.
    slow = 'rate = "1000"; queue = 0;'
    for what, switch, link in (("link", "", slow), ("link with the usual queue", "", 'rate = "1000";'),
                               ("long link", "", 'delay = "3600s";'), ("switch", slow, ""),
                               ("switch with priorities", slow + "priorities = true;", "")):
        fabric = Fabric('buffers = 2048; ports = ( { name = "e"; count = 5; } ); switches = ( { name = "s"; %s }, { name = "t"; } );'
                        'links = ( { from = "e0"; to = "s"; }, { from = "e1"; to = "s"; back = { %s }; },'
                        ' { from = "e2"; to = "s"; back = { %s }; }, { from = "e3"; to = "t"; }, { from = "e4"; to = "t"; } );'
                        % (switch, link, link))
        ends = Endpoints("e0", "e1", "e2", "e3", "e4")
        ends.do("up")
        for end in (1, 2):
            ends.do("send", end, 0, 1, 60)
        fabric.control.until(lambda c: all(by_name(c["ports"], "e%d" % n)["in_frames"] == 1 for n in (1, 2)), what)
        for end in (1, 2):
            ends.do("send", 0, end, 6000, 60)
        counters = fabric.control.until(lambda c: by_name(c["ports"], "e0")["in_frames"] == 12000, what)
        expect(counters["totals"]["under_way"] > 1000, "%s: only %d frames are held up" % (what, counters["totals"]["under_way"]))
        ends.do("send", 3, 4, 6000, 60)
        ends.do("wait", 4, 6000)
        ends.stop()
        fabric.stop()


@test
def few_buffers_are_enough():
    fabric = Fabric(star(2) + "buffers = 64;")
    ends = Endpoints("e0", "e1")
    ends.do("up")
    ends.do("send", 0, 1, 1000, 1000)
    ends.do("wait", 1, 1000)
    ends.stop()
    fabric.stop()


@test
def faults_by_chance_repeat_with_the_seed_and_differ_without():
    seen = []
    for seed in (7, 7, 8):
        all_through(line('drop = "10%"; corrupt = "5%"; duplicate = "5%";', 2000, more="seed = %d;" % seed), 2000)
        seen.append(pcap_read("out.pcap")[1])
    expect(seen[0] == seen[1], "the same seed, other frames")
    expect(seen[0] != seen[2], "another seed, the same frames")
    expect(1700 < len(set(numbers(seen[0]))) <= 2000, "%d frames" % len(seen[0]))


@test
def counters_balance_while_frames_are_under_way_and_no_buffer_is_lost():
    fabric = line('delay = "10s"; drop = { every = 3; };', 300)
    counters = fabric.control.until(lambda c: by_name(c["ports"], "a")["in_frames"] == 300, "all frames in")
    # All of 10 s after the first may have passed on a machine that stands still, but not half of them lost.
    there = way(counters, "a-b")
    equal(there["frames"], there["delivered"] + there["in_flight"] + there["dropped"]["fault"], "frames of the link")
    expect(counters["totals"]["balanced"], counters)
    fabric.stop()


@test
def queues_are_limited_and_what_does_not_fit_is_counted():
    last = all_through(line('rate = "1M"; queue = "2K"; overhead = 0;', 100, 1000), 100)
    there = way(last, "a-b")
    expect(there["dropped"]["queue"] > 0, there)
    equal(there["dropped"]["queue"] + there["delivered"], 100, "frames")
    equal(len(out()), there["delivered"], "frames out")


@test
def priorities_let_the_urgent_overtake():
    urgent = [f[:12] + bytes([0x81, 0, 0xe0, 0]) + f[12:] for f in numbered(10, 1000)]
    pcap_write("in.pcap", numbered(50, 1000) + urgent)
    fabric = Fabric('ports = ( { name = "a"; type = "pcap"; read = "in.pcap"; },'
                    ' { name = "b"; type = "pcap"; write = "out.pcap"; mac = "02:00:00:00:00:02"; } );'
                    'switches = ( { name = "s"; rate = "2M"; priorities = true; } );'
                    'links = ( { from = "a"; to = "s"; }, { from = "b"; to = "s"; } );')
    all_through(fabric, 60)
    got = pcap_read("out.pcap")[1]
    equal(len(got), 60, "frames")
    expect(max(i for i, f in enumerate(got) if f[12:14] == b"\x81\0") < 30, "the urgent ones came late")


@test
def a_switch_sprays_over_all_planes_and_avoids_those_it_knows_dead():
    fabric = Fabric('ports = ( { name = "e"; count = 2; } ); shapes = ( { kind = "leaf-spine"; name = "x"; leaves = 2; planes = 4;'
                    ' members = ( "e" ); } );')
    ends = Endpoints("e0", "e1")
    ends.do("up")
    ends.do("send", 1, 0, 1, 100)
    ends.do("wait", 0, 1)

    def frames():
        counters = fabric.control.counters()
        return [way(counters, "x-leaf0-x-spine%d" % plane)["frames"] for plane in range(4)]

    before = frames()
    ends.do("send", 0, 1, 4000, 100)
    ends.do("wait", 1, 4000)
    shares = [after - b for after, b in zip(frames(), before)]
    equal(sum(shares), 4000, "frames of all planes")
    expect(min(shares) > 500, shares)
    fabric.control.good("down", link="x-leaf0-x-spine2", noticed=True)
    ends.do("send", 0, 1, 1000, 100)
    ends.do("wait", 1, 5000)
    equal(frames()[2], before[2] + shares[2], "frames of the dead plane")
    ends.report()
    ends.do("send", 1, 0, 1000, 100)  # whom the far end of the dead link tells, too
    ends.do("wait", 0, 1000)
    for plane in (0, 1):
        fabric.control.good("down", link="x-leaf1-x-spine%d" % plane, noticed=True)
    ends.do("send", 0, -1, 5, 60)
    ends.do("wait", 1, 5)
    for leaf, plane in ((0, 2), (1, 0), (1, 1)):
        fabric.control.good("up", link="x-leaf%d-x-spine%d" % (leaf, plane))
    before = frames()
    ends.do("send", 0, 1, 4000, 100)
    ends.do("wait", 1, 4005)
    expect(min(after - b for after, b in zip(frames(), before)) > 500, "planes that came back are not used")
    ends.stop()
    fabric.stop()


@test
def a_link_goes_down_and_up_by_command():
    fabric = Fabric(star(2))
    ends = Endpoints("e0", "e1")
    ends.do("up")
    ends.do("send", 0, 1, 10, 100)
    ends.do("wait", 1, 10)
    fabric.control.good("down", link="e1-s", direction="back")
    ends.do("send", 0, 1, 20, 100)
    ends.do("send", 1, 0, 5, 100)
    fabric.control.until(lambda c: way(c, "e1-s", True)["dropped"]["down"] == 20, "20 frames lost")
    ends.do("wait", 0, 5)
    fabric.control.good("up", link="e1-s")
    ends.do("send", 0, 1, 30, 100)
    ends.do("wait", 1, 40)
    equal([end["got"] for end in ends.report()], [5, 40], "frames")
    ends.stop()
    fabric.stop()


@test
def a_file_s_down_time_is_kept():
    fabric = Fabric(star(2, 'down = ( { from = "0"; until = "3600s"; } );'))
    ends = Endpoints("e0", "e1")
    ends.do("up")
    ends.do("send", 0, 1, 10, 100)
    fabric.control.until(lambda c: way(c, "e0-s")["dropped"]["down"] == 10, "10 frames lost")
    expect(not way(fabric.control.counters(), "e0-s")["up"], "up")
    fabric.control.good("up", link="e0-s")
    fabric.control.good("up", link="e1-s")
    ends.do("send", 0, 1, 10, 100)
    ends.do("wait", 1, 10)
    ends.stop()
    fabric.stop()


@test
def faults_change_at_run_time():
    fabric = Fabric(star(2))
    ends = Endpoints("e0", "e1")
    ends.do("up")
    fabric.control.good("faults", link="e0-s", direction="there", faults={"drop": {"every": 2}})
    ends.do("send", 0, 1, 100, 100)
    fabric.control.until(lambda c: way(c, "e0-s")["dropped"]["fault"] == 50, "50 frames lost")
    fabric.control.good("faults", link="e0-s", faults={"drop": "0", "delay": "1ms"})
    ends.do("send", 0, 1, 100, 100)
    ends.do("wait", 1, 150)
    ends.stop()
    fabric.stop()


@test
def who_was_killed_may_come_back_under_another_address():
    fabric = Fabric(star(3))
    ends = Endpoints("e0", "e1")
    guest = Endpoints("e2")
    ends.do("up")
    guest.do("up")
    guest.do("send", 0, -1, 1, 60)  # from the address of e0, as somebody who comes and goes
    ends.do("wait", 0, 1)
    guest.kill()
    fabric.control.until(lambda c: not by_name(c["ports"], "e2")["up"], "port down")
    equal(by_name(fabric.control.counters()["ports"], "e2")["stations"], 0, "stations of who has gone")
    ends.do("send", 0, 1, 10, 100)
    ends.do("send", 1, 0, 10, 100)
    ends.do("wait", 0, 11)
    again = Endpoints("e2")
    again.do("up")
    fabric.control.until(lambda c: by_name(c["ports"], "e2")["up"], "port up")
    ends.stop()
    again.stop()
    fabric.stop()


@test
def after_kill_9_another_fabric_takes_the_sockets_over_and_the_endpoints_come_back():
    fabric = Fabric(star(2))
    ends = Endpoints("e0", "e1")
    ends.do("up")
    ends.do("send", 0, 1, 100, 100)
    ends.do("wait", 1, 100)
    fabric.kill()
    ends.do("down")
    expect(os.path.exists(path("e0.sock")) and os.path.exists(path("control")), "nothing was left behind")
    fabric = Fabric(star(2))
    ends.do("up")
    ends.do("send", 0, 1, 100, 100)
    ends.do("wait", 1, 200)
    ends.stop()
    fabric.stop()


@test
def a_second_fabric_on_the_same_sockets_is_refused():
    fabric = Fabric(star(2))
    write("other.conf", star(2))
    done = subprocess.run([FABRIC, path("other.conf")], capture_output=True, timeout=LIMIT_S, check=False)
    equal(done.returncode, 1, "status")
    expect(b"port e0: " in done.stderr and b"another program listens there" in done.stderr, done.stderr)
    fabric.control.good("list")
    fabric.stop()


@test
def nothing_is_left_behind_whatever_ends_it():
    for how in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None):
        os.environ["TMPDIR"] = path("")
        fabric = Fabric(star(2))
        del os.environ["TMPDIR"]
        ends = Endpoints("e0", "e1")
        ends.do("up")
        if how is None:
            fabric.control.good("quit")
            how = 0
        fabric.stop(how)
        ends.kill()
        equal(os.listdir(path("")), ["net.conf"], "files")
        for top in ("/dev/shm", "/run/dpdk", "/tmp/dpdk"):
            if os.path.isdir(top):
                equal([name for name in os.listdir(top) if str(fabric.process.pid) in name], [], "names in " + top)


@test
def captures_have_nanoseconds_and_all_frames_and_start_and_stop_by_command():
    fabric = Fabric(star(2))
    ends = Endpoints("e0", "e1")
    ends.do("up")
    fabric.control.good("capture", port="e0", file=path("port.pcap"))
    fabric.control.good("capture", link="e1-s", file=path("link.pcap"))
    expect(not fabric.control.ask("capture", port="e0", file=path("other.pcap"))["ok"], "two captures of a port")
    ends.do("send", 0, 1, 50, 1000)
    ends.do("send", 1, 0, 20, 9000)
    ends.do("wait", 1, 50)
    ends.do("wait", 0, 20)
    fabric.control.good("capture-stop", port="e0")
    fabric.control.good("capture-stop", link="e1-s")
    ends.do("send", 0, 1, 5, 1000)
    ends.do("wait", 1, 55)
    for name in ("port.pcap", "link.pcap"):
        magic, frames = pcap_read(name)
        equal(magic, 0xa1b23c4d, "magic of " + name)
        equal(sorted(len(f) for f in frames), [1000] * 50 + [9000] * 20, "lengths in " + name)
    expect(not fabric.control.ask("capture", port="e0", file="/no/such/directory/x")["ok"], "a capture nowhere")
    ends.stop()
    fabric.stop()


@test
def nobody_writes_to_a_file_that_another_port_or_capture_uses():
    fabric = Fabric(star(2))
    fabric.control.good("capture", port="e0", file=path("port.pcap"))
    os.link(path("port.pcap"), path("same.pcap"))
    before = os.path.getsize(path("port.pcap"))
    for request in {"port": "e1", "file": path("port.pcap")}, {"link": "e1-s", "file": path("same.pcap")}:
        expect("another port or capture uses this file" in fabric.control.ask("capture", **request)["error"], request)
    pcap_write("in.pcap", numbered(50, 300))
    frames = pcap_read("in.pcap")[1]
    links = " links = ( { from = \"a\"; to = \"b\"; %s } );"
    recorder = '{ name = "b"; type = "pcap"; write = "%s"; }'
    for ports, link, name in (('{ name = "a"; capture = "port.pcap"; }, { name = "b"; }', "", "port"),
                              ('{ name = "a"; capture = "x.pcap"; }, { name = "b"; capture = "./x.pcap"; }', "", "x"),
                              ('{ name = "a"; capture = "x.pcap"; }, { name = "b"; }', 'capture = "x.pcap";', "x"),
                              ('{ name = "a"; capture = "x.pcap"; }, ' + recorder % "x.pcap", "", "x"),
                              ('{ name = "a"; type = "pcap"; read = "in.pcap"; write = "in.pcap"; }, { name = "b"; }', "", "in"),
                              ('{ name = "a"; type = "pcap"; read = "in.pcap"; }, ' + recorder % "./in.pcap", "", "in"),
                              ('{ name = "a"; type = "pcap"; read = "in.pcap"; }, { name = "b"; }', 'capture = "in.pcap";', "in")):
        done = subprocess.run([FABRIC, write("other.conf", "ports = ( %s );" % ports + links % link)], capture_output=True, timeout=LIMIT_S,
                              text=True, check=False)
        equal((done.returncode, done.stdout), (1, ""), ports)
        expect(done.stderr.endswith("/%s.pcap: another port or capture uses this file\n" % name) and done.stderr.count("\n") == 1, done.stderr)
        equal((os.path.getsize(path("port.pcap")), pcap_read("in.pcap")[1]), (before, frames), "what the files hold")
    fabric.control.good("capture-stop", port="e0")
    fabric.control.good("capture", port="e1", file=path("same.pcap"))
    fabric.stop()


@test
def a_capture_into_a_pipe_is_refused_and_holds_nothing_up():
    fabric = Fabric(star(2))
    os.mkfifo(path("pipe"))
    expect(not fabric.control.ask("capture", port="e0", file=path("pipe"))["ok"], "a pipe that nobody reads")
    reader = os.open(path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
    expect(not fabric.control.ask("capture", port="e0", file=path("pipe"))["ok"], "a pipe that somebody reads")
    os.close(reader)
    expect(not fabric.control.ask("capture", link="e1-s", file="/dev/null")["ok"], "a device")
    fabric.control.good("capture", port="e0", file=path("port.pcap"))
    fabric.stop()


@test
def the_driver_of_dpdk_joins_too_and_outlives_the_death_of_its_peer():
    fabric = Fabric('ports = ( { name = "e0"; driver = "dpdk"; }, { name = "e1"; } ); switches = ( { name = "s"; } );'
                    'links = ( { from = "e0"; to = "s"; }, { from = "e1"; to = "s"; } );')
    other = Endpoints("e1")
    for _ in range(3):
        peer = Endpoints("e0")
        peer.do("up")
        other.do("up")
        fabric.control.until(lambda c: all(port["up"] for port in c["ports"]), "ports up")
        peer.do("send", 0, -1, 1000, 1500)  # no more than the fabric holds while the other end does not run
        other.do("wait", 0, 1000)
        equal(other.report()[0]["damaged"], 0, "damaged")
        peer.kill()
        fabric.control.until(lambda c: not by_name(c["ports"], "e0")["up"], "port down")
    other.stop()
    fabric.stop()


@test
def a_peer_of_dpdk_s_driver_dies_in_the_middle_of_traffic():
    fabric = Fabric('ports = ( { name = "e0"; driver = "dpdk"; }, { name = "e1"; } ); switches = ( { name = "s"; } );'
                    'links = ( { from = "e0"; to = "s"; }, { from = "e1"; to = "s"; } );')
    other = Endpoints("e1")
    for _ in range(8):
        peer = Endpoints("e0")
        peer.do("up")
        other.do("up")
        fabric.control.until(lambda c: all(port["up"] for port in c["ports"]), "ports up")
        peer.tell("send 0 -1 100000000 1500")
        other.report()
        other.do("wait", 0, 5000)
        peer.kill()
        fabric.control.until(lambda c: not by_name(c["ports"], "e0")["up"], "port down")
    other.stop()
    fabric.stop()


@test
def two_fabrics_join_by_dpdk_s_driver_in_both_roles():
    pcap_write("in.pcap", numbered(500, 300))
    server = Fabric('ports = ( { name = "m"; path = "m.sock"; driver = "dpdk"; }, { name = "f"; type = "pcap"; write = "out.pcap"; } );'
                    'links = ( { from = "m"; to = "f"; } );')
    write("client.conf", 'ports = ( { name = "m"; path = "m.sock"; driver = "dpdk"; role = "client"; },'
          '{ name = "f"; type = "pcap"; read = "in.pcap"; } ); links = ( { from = "m"; to = "f"; } ); control = "client";')
    client = Program(FABRIC, path("client.conf"))
    server.control.until(lambda c: by_name(c["ports"], "f")["out_frames"] == 500, "500 frames out")
    client.end()
    server.stop()
    equal(out(), list(range(500)), "frames")


@test
def it_runs_without_root():
    user = 65534 if os.getuid() == 0 else None
    fabric = Fabric(star(2), user=user)
    expect(user is None or os.stat(path("control")).st_uid == user, "not that user")
    ends = Endpoints("e0", "e1")
    ends.do("up")
    ends.do("send", 0, 1, 10, 100)
    ends.do("wait", 1, 10)
    ends.stop()
    fabric.stop()


@test
def a_wrong_file_is_refused_before_anything_begins():
    for text, expected in (("\nports = ( { nam = 1; } );", "net.conf:2: unknown key nam;"),
                           ('ports = ( { name = "a"; } );', "there are no links"),
                           (star(32).replace("count = 32", "count = 33"), "has more than 32 links"),
                           ("links = (", "net.conf:1: syntax error")):
        fabric = Fabric(text, ready=False)
        status, output, errors = fabric.ended()
        equal((status, output), (2, ""), "status and output")
        expect(errors.startswith("netdam-fabric: ") and expected in errors and errors.count("\n") == 1, errors)
    for text, expected in (('ports = ( { name = "a"; type = "pcap"; read = "none.pcap"; }, { name = "b"; } ); links = ( { from = "a"; to = "b"; } );',
                            "port a: %s: No such file" % path("none.pcap")),
                           ('ports = ( { name = "a"; type = "pmd"; devargs = "net_nonsense0"; }, { name = "b"; } ); links = ( { from = "a"; to = "b"; } );',
                            "port a: net_nonsense0"),
                           ('ports = ( { name = "a"; path = "net.conf"; }, { name = "b"; } ); links = ( { from = "a"; to = "b"; } );',
                            "port a: ")):
        fabric = Fabric(text, ready=False)
        status, output, errors = fabric.ended()
        equal((status, output), (1, ""), "status and output")
        expect(expected in errors, errors)


@test
def what_a_port_lacks_is_told_in_one_line():
    pair = 'ports = ( { name = "a"; %s }, { name = "b"; } ); links = ( { from = "a"; to = "b"; } );'
    user = 65534 if os.getuid() == 0 else None
    for port, expected in (('type = "pcap"; write = "/no/such/directory/x.pcap";', "/no/such/directory/x.pcap: No such file"),
                           ('type = "tap"; interface = "netdam-no";', "tap and packet need root"),
                           ('type = "packet"; interface = "lo";', "tap and packet need root")):
        fabric = Fabric(pair % port, ready=False, user=user)
        status, output, errors = fabric.ended()
        equal((status, output), (1, ""), "status and output")
        expect(errors.startswith("netdam-fabric: port a: ") and expected in errors and errors.count("\n") == 1, errors)
    if user is not None:
        fabric = Fabric(pair % 'type = "packet"; interface = "netdam-no";', ready=False)
        equal(fabric.ended(), (1, "", "netdam-fabric: port a: netdam-no: No such device\n"), "status, output and error")


@test
def captures_that_are_cut_short_are_told_of_at_once_and_at_the_end_and_stop_nothing_else():
    file = write("net.conf", star(2))
    fabric = Program(FABRIC, "--json", "--control", path("control"), file, stderr=subprocess.PIPE)
    fabric.line()
    control = Control()
    ends = Endpoints("e0", "e1")
    ends.do("up")
    control.good("capture", port="e0", file=path("port.pcap"))
    control.good("capture", link="e1-s", file=path("link.pcap"))
    control.good("capture", port="e1", file=path("stopped.pcap"))
    control.good("capture", link="e0-s", file=path("other.pcap"))
    resource.prlimit(fabric.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    ends.do("send", 0, 1, 50, 1000)
    ends.do("wait", 1, 50)
    told = fabric.process.stderr.readline().decode()
    expect(told.endswith(".pcap: File too large: the capture ends here\n"), told)
    equal(control.ask("capture-stop", port="e1"), {"ok": False, "error": "the capture could not be written to its end"}, "capture-stop")
    control.good("capture", port="e1", file=path("next.pcap"))
    ends.do("send", 0, 1, 50, 1000)
    ends.do("wait", 1, 100)
    counters = control.counters()
    equal((by_name(counters["ports"], "e0")["in_frames"], counters["totals"]["balanced"]), (100, True), "counters")
    control.good("quit")
    errors = told + fabric.process.stderr.read().decode()
    equal(fabric.process.wait(LIMIT_S), 0, "status")
    for part in ("port e0", "link e1-s"):
        expect("%s: the capture could not be written to its end\n" % part in errors, errors)
    for name in ("port", "link", "stopped", "other", "next"):
        equal(errors.count("%s: File too large" % path(name + ".pcap")), 1, "messages on " + name)
    ends.stop()


@test
def the_driver_of_dpdk_takes_relative_paths():
    write("net.conf", 'ports = ( { name = "a"; driver = "dpdk"; }, { name = "b"; } ); links = ( { from = "a"; to = "b"; } );')
    fabric = Program(FABRIC, "--json", "net.conf", cwd=path(""))
    ports, there = fabric.json()["ports"], os.path.exists(path("a.sock"))
    fabric.end()
    equal((ports, there, os.listdir(path(""))), (2, True, ["net.conf"]), "ports, socket, and what is left")


main()
