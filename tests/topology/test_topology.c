/* SPDX-License-Identifier: BSD-3-Clause */
/* Topology files: what they mean, and what is said about wrong ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topology.h"
#include "units.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static struct ndsim_topology topology;
static char error[NDSIM_TOPOLOGY_ERROR_MAX];

static void read_text(const char *text)
{
    if (!ndsim_topology_parse(&topology, text, error)) {
        fail_msg("%s", error);
    }
}

static int free_topology(void **state)
{
    (void)state;
    ndsim_topology_free(&topology);
    return 0;
}

static const struct ndsim_topology_link *link_called(const char *name)
{
    for (uint32_t i = 0; i < topology.link_count; i++) {
        if (strcmp(topology.links[i].name, name) == 0) {
            return &topology.links[i];
        }
    }
    fail_msg("no link is called %s", name);
    return NULL;
}

static void an_empty_file_is_an_empty_network(void **state)
{
    (void)state;
    read_text("");
    assert_int_equal(topology.port_count + topology.node_count + topology.switch_count + topology.link_count, 0);
    assert_int_equal(topology.seed, 1);
    assert_int_equal(topology.frame_bytes, 9216);
    assert_string_equal(topology.directory, "./");
}

static void every_setting_arrives_where_it_belongs(void **state)
{
    const struct ndsim_topology_way *there, *back;

    (void)state;
    read_text(
        "links = ( { from = \"a\"; to = \"s\"; name = \"cable\"; rate = \"2.5G\"; delay = \"10us\"; jitter = "
        "\"1.5us\";\n"
        "  queue = \"64K\"; overhead = 20; drop = \"1%\"; duplicate = { nth = 3; };\n"
        "  reorder = { chance = \"0.5%\"; by = \"200us\"; }; corrupt = { every = 10; anywhere = true; };\n"
        "  spike = { chance = \"20ppm\"; nth = 5; every = 7; by = \"2ms\"; }; capture = \"cable.pcap\";\n"
        "  down = ( { from = \"1s\"; until = \"2s\"; }, { from = \"3s\"; } );\n"
        "  back = { rate = \"1M\"; drop = \"0\"; }; }, { from = \"b\"; to = \"s\"; flap = { up = \"1s\"; down = "
        "\"10ms\"; }; } );\n"
        "switches = ( { name = \"s\"; spread = \"spray\"; rate = \"10G\"; latency = \"300ns\"; buffer = \"1M\";\n"
        "  queue = \"128K\"; priorities = true; overhead = 0; } );\n"
        "ports = ( { name = \"a\"; path = \"/run/a.sock\"; role = \"client\"; id = 7; driver = \"dpdk\"; mac = "
        "\"02:00:00:00:00:0a\"; },\n"
        "  { name = \"b\"; type = \"pcap\"; read = \"in.pcap\"; write = \"/tmp/out.pcap\"; capture = \"b.pcap\"; } );\n"
        "seed = 7; frame = 2048; buffers = 100; directory = \"/run/net\"; control = \"c.sock\";\n");
    assert_int_equal(topology.seed, 7);
    assert_int_equal(topology.frame_bytes, 2048);
    assert_int_equal(topology.buffers, 100);
    assert_string_equal(topology.directory, "/run/net/");
    assert_string_equal(topology.control, "/run/net/c.sock");
    assert_int_equal(topology.port_count, 2);
    assert_string_equal(topology.ports[0].path, "/run/a.sock");
    assert_int_equal(topology.ports[0].role, NDSIM_MEMIF_CLIENT);
    assert_int_equal(topology.ports[0].id, 7);
    assert_true(topology.ports[0].dpdk);
    assert_true(topology.ports[0].has_mac);
    assert_int_equal(topology.ports[0].mac[5], 10);
    assert_int_equal(topology.ports[0].line, 9);
    assert_int_equal(topology.ports[1].type, NDSIM_PORT_PCAP);
    assert_string_equal(topology.ports[1].read, "/run/net/in.pcap");
    assert_string_equal(topology.ports[1].write, "/tmp/out.pcap");
    assert_string_equal(topology.ports[1].capture, "/run/net/b.pcap");
    assert_int_equal(topology.switch_count, 1);
    assert_int_equal(topology.switches[0].config.ports, 2);
    assert_int_equal(topology.switches[0].config.spread, NDSIM_SPREAD_SPRAY);
    assert_int_equal(topology.switches[0].config.bits_per_s, 10000000000);
    assert_int_equal(topology.switches[0].config.latency_ns, 300);
    assert_int_equal(topology.switches[0].config.buffer_bytes, 1 << 20);
    assert_int_equal(topology.switches[0].config.queue_bytes, 128 << 10);
    assert_int_equal(topology.switches[0].config.frame_overhead, 0);
    assert_true(topology.switches[0].config.priorities);
    assert_int_equal(topology.link_count, 2);
    assert_int_equal(link_called("b-s")->ends[1].port, 1);
    assert_int_equal(link_called("b-s")->ways[1].flap_up_ns, 1000000000);
    assert_int_equal(link_called("b-s")->ways[1].flap_down_ns, 10000000);
    assert_int_equal(link_called("cable")->ends[0].kind, NDSIM_END_PORT);
    assert_int_equal(link_called("cable")->ends[1].kind, NDSIM_END_SWITCH);
    assert_string_equal(link_called("cable")->capture, "/run/net/cable.pcap");
    there = &link_called("cable")->ways[0];
    back = &link_called("cable")->ways[1];
    assert_int_equal(there->config.bits_per_s, 2500000000);
    assert_int_equal(there->config.propagation_ns, 10000);
    assert_int_equal(there->config.jitter_ns, 1500);
    assert_int_equal(there->config.queue_bytes, 65536);
    assert_int_equal(there->config.frame_overhead, 20);
    assert_int_equal(there->config.drop.parts_per_million, 10000);
    assert_int_equal(there->config.twice.nth, 3);
    assert_int_equal(there->config.twice.every, 0);
    assert_int_equal(there->config.reorder.parts_per_million, 5000);
    assert_int_equal(there->config.reorder_ns, 200000);
    assert_int_equal(there->config.corrupt.nth, 10);
    assert_int_equal(there->config.corrupt.every, 10);
    assert_int_equal(there->config.corrupt_from, 0);
    assert_int_equal(there->config.spike.parts_per_million, 20);
    assert_int_equal(there->config.spike.nth, 5);
    assert_int_equal(there->config.spike.every, 7);
    assert_int_equal(there->config.spike_ns, 2000000);
    assert_int_equal(there->down_count, 2);
    assert_int_equal(there->down[0].until_ns, 2000000000);
    assert_int_equal(there->down[1].from_ns, 3000000000);
    assert_true(there->down[1].until_ns == UINT64_MAX);
    assert_int_equal(back->config.bits_per_s, 1000000);
    assert_int_equal(back->config.drop.parts_per_million, 0);
    assert_int_equal(back->config.propagation_ns, 10000);
    assert_int_equal(back->config.reorder.parts_per_million, 5000);
}

static void corruption_spares_the_ethernet_header_unless_told_otherwise(void **state)
{
    (void)state;
    read_text("ports = ( { name = \"a\"; }, { name = \"b\"; } ); links = ( { from = \"a\"; to = \"b\"; corrupt = "
              "\"1%\"; } );");
    assert_int_equal(topology.links[0].ways[0].config.corrupt_from, 14);
}

static void nodes_in_numbers_get_the_next_name_address_and_socket(void **state)
{
    (void)state;
    read_text("nodes = ( { name = \"n\"; count = 3; address = \"10.1.0.255/16\"; memory = \"1M\"; mtu = 9000; key = "
              "\"0x12\"; } );\n"
              "switches = ( { name = \"s\"; } ); links = ( { from = \"n\"; to = \"s\"; } );");
    assert_int_equal(topology.node_count, 3);
    assert_int_equal(topology.port_count, 3);
    assert_int_equal(topology.link_count, 3);
    assert_string_equal(topology.nodes[2].name, "n2");
    assert_memory_equal(topology.nodes[2].address, ((uint8_t[]){10, 1, 1, 1}), 4);
    assert_memory_equal(topology.nodes[2].mac, ((uint8_t[]){2, 0, 10, 1, 1, 1}), 6);
    assert_int_equal(topology.nodes[2].prefix, 16);
    assert_int_equal(topology.nodes[2].memory_bytes, 1 << 20);
    assert_int_equal(topology.nodes[2].mtu, 9000);
    assert_int_equal(topology.nodes[2].region_count, 1);
    assert_int_equal(topology.nodes[2].regions[0].key, 0x12);
    assert_string_equal(topology.nodes[2].path, "n2.sock");
    assert_int_equal(topology.nodes[2].role, NDSIM_MEMIF_CLIENT);
    assert_string_equal(topology.ports[2].path, "n2.sock");
    assert_int_equal(topology.ports[2].role, NDSIM_MEMIF_SERVER);
    assert_int_equal(topology.ports[2].node, 2);
    assert_memory_equal(topology.ports[2].mac, topology.nodes[2].mac, 6);
    assert_string_equal(topology.links[2].name, "n2-s");
}

static void nodes_of_the_kernel_network_get_the_next_port(void **state)
{
    (void)state;
    read_text("nodes = ( { name = \"n\"; count = 2; join = \"udp\"; listen = \"127.0.0.1:5000\"; regions = (\n"
              "  { key = \"1\"; bytes = \"8K\"; permissions = \"r\"; }, { key = \"2\"; offset = \"8K\"; load = \"d\"; "
              "} ); } );");
    assert_int_equal(topology.node_count, 2);
    assert_int_equal(topology.port_count, 0);
    assert_string_equal(topology.nodes[0].listen, "127.0.0.1:5000");
    assert_string_equal(topology.nodes[1].listen, "127.0.0.1:5001");
    assert_int_equal(topology.nodes[1].region_count, 2);
    assert_int_equal(topology.nodes[1].regions[0].bytes, 8192);
    assert_int_equal(topology.nodes[1].regions[0].permissions, 4);
    assert_int_equal(topology.nodes[1].regions[1].offset, 8192);
    assert_int_equal(topology.nodes[1].regions[1].permissions, 28);
    assert_string_equal(topology.nodes[1].regions[1].load, "d");
}

static void several_interfaces_share_a_socket_by_id(void **state)
{
    (void)state;
    read_text("ports = ( { name = \"p\"; count = 2; path = \"one.sock\"; id = 4; driver = \"dpdk\"; } ); links = ( { "
              "from = \"p0\"; to = "
              "\"p1\"; } );");
    assert_string_equal(topology.ports[1].path, "one.sock");
    assert_int_equal(topology.ports[0].id, 4);
    assert_int_equal(topology.ports[1].id, 5);
}

#define MEMBERS "ports = ( { name = \"m\"; count = 6; } );"

static void shapes_become_switches_and_links(void **state)
{
    static const struct {
        const char *text;
        uint32_t switches, links;
        const char *link;
    } shapes[] = {
        {"ports = ( { name = \"m\"; count = 2; } ); shapes = ( { kind = \"pair\"; members = [ \"m\" ]; } );", 0, 1,
         "m0-m1"},
        {MEMBERS "shapes = ( { kind = \"star\"; name = \"s\"; members = ( \"m\" ); } );", 1, 6, "m5-s"},
        {MEMBERS "shapes = ( { kind = \"ring\"; name = \"r\"; members = ( \"m\" ); } );", 6, 12, "r-ring5-r-ring0"},
        {MEMBERS "shapes = ( { kind = \"ring\"; name = \"r\"; switches = 3; members = ( \"m\" ); } );", 3, 9,
         "m5-r-ring2"},
        {MEMBERS "shapes = ( { kind = \"leaf-spine\"; name = \"x\"; leaves = 2; planes = 4; members = ( \"m0\", "
                 "\"m1\", \"m2\", "
                 "\"m3\", \"m4\", \"m5\" ); link = { rate = \"1G\"; }; trunk = { delay = \"1us\"; }; switch = { spread "
                 "= \"spray\"; }; } );",
         6, 14, "x-leaf1-x-spine3"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        read_text(shapes[i].text);
        assert_int_equal(topology.switch_count, shapes[i].switches);
        assert_int_equal(topology.link_count, shapes[i].links);
        link_called(shapes[i].link);
        if (i == ARRAY_SIZE(shapes) - 1) {
            assert_int_equal(link_called("m3-x-leaf1")->ways[1].config.bits_per_s, 1000000000);
            assert_int_equal(link_called("x-leaf0-x-spine2")->ways[0].config.propagation_ns, 1000);
            assert_int_equal(topology.switches[5].config.spread, NDSIM_SPREAD_SPRAY);
            assert_int_equal(topology.switches[0].config.ports, 3 + 4);
        }
        ndsim_topology_free(&topology);
    }
}

static void ways_are_all_shortest_paths_and_each_tree_has_a_spine_of_its_own(void **state)
{
    uint32_t masks[6 * NDSIM_SWITCH_TREES_MAX];
    uint32_t spines = 0;

    (void)state;
    read_text("ports = ( { name = \"m\"; count = 4; } ); shapes = ( { kind = \"leaf-spine\"; name = \"x\"; leaves = 2; "
              "planes = 4;"
              "members = ( \"m\" ); } );");
    /* m0 and m1 are on leaf 0, ports 0 and 1; its ports 2 to 5 go to the spines; a spine's port 0 goes to leaf 0. */
    ndsim_topology_ways(&topology, NULL, 0, masks);
    assert_int_equal(masks[0], 1);
    assert_int_equal(masks[1], 0x3c);
    for (unsigned spine = 2; spine < 6; spine++) {
        assert_int_equal(masks[spine], 1);
    }
    assert_int_equal(ndsim_topology_trees(&topology, NULL, masks), 4);
    for (unsigned tree = 0; tree < 4; tree++) {
        const uint32_t *mask = &masks[6 * tree];

        assert_int_equal(mask[0] & 3, 3);
        assert_int_equal(mask[1], mask[0]);
        assert_int_equal(__builtin_popcount(mask[0]), 2 + 1);
        for (unsigned spine = 2; spine < 6; spine++) {
            assert_int_equal(mask[spine], (mask[0] >> spine & 1) != 0 ? 3 : 0);
        }
        spines |= mask[0] >> 2;
    }
    assert_int_equal(spines, 0xf);
}

static void ways_and_trees_avoid_dead_links(void **state)
{
    bool dead[4 + 8] = {false};
    uint32_t masks[6 * NDSIM_SWITCH_TREES_MAX];

    (void)state;
    read_text("ports = ( { name = \"m\"; count = 4; } ); shapes = ( { kind = \"leaf-spine\"; name = \"x\"; leaves = 2; "
              "planes = "
              "4; members = ( \"m\" ); } );");
    /* Leaf 0's link to spine 0: nobody goes to leaf 0 through that spine any more, nor do broadcasts. */
    dead[link_called("x-leaf0-x-spine0") - topology.links] = true;
    ndsim_topology_ways(&topology, dead, 0, masks);
    assert_int_equal(masks[0], 1);
    assert_int_equal(masks[1], 0x38);
    assert_int_equal(ndsim_topology_trees(&topology, dead, masks), 3);
    for (unsigned tree = 0; tree < 3; tree++) {
        assert_int_equal(masks[6 * tree] & 4, 0);
        assert_int_equal(masks[6 * tree], masks[6 * tree + 1]);
    }
}

static void parallel_links_get_names_of_their_own(void **state)
{
    (void)state;
    read_text("switches = ( { name = \"s\"; }, { name = \"t\"; } ); links = ( { from = \"s\"; to = \"t\"; }, { from = "
              "\"s\"; to = \"t\"; } );");
    assert_string_equal(topology.links[0].name, "s-t");
    assert_string_equal(topology.links[1].name, "s-t.2");
}

#define AB         "ports = ( { name = \"a\"; }, { name = \"b\"; } );\n"
#define LINK(keys) AB "links = ( { from = \"a\"; to = \"b\"; " keys " } );"
#define NODE(keys) "nodes = (\n{ name = \"n\"; address = \"10.0.0.1\"; " keys " } );"

static void a_wrong_file_is_refused_with_line_and_reason(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } wrong[] = {
        {"ports = (", "topology:1: syntax error"},
        {"\n\nprots = ();",
         "topology:3: unknown key prots; here belong: seed, frame, buffers, directory, ports, nodes"},
        {"seed = \"1\";", "topology:1: seed: expected a whole number, from 2147483648 on with L behind it"},
        {"seed = 3000000000;", "topology:1: seed: expected a whole number, from 2147483648 on with L behind it"},
        {"seed = -1;", "topology:1: seed: expected a whole number, from 2147483648 on with L behind it"},
        {"seed = 1.5;", "topology:1: seed: expected a whole number, from 2147483648 on with L behind it"},
        {"frame = 100;", "topology:1: frame: expected 1514 to 16384 bytes"},
        {"frame = 5000000000L;", "topology:1: frame: too large"},
        {"buffers = 1;", "topology:1: buffers: expected 64 to 1048576 frames"},
        {"directory = \"\";", "topology:1: directory: expected a path"},
        {"control = 1;", "topology:1: control: expected a path"},
        {"ports = 1;", "topology:1: ports: expected a list"},
        {"ports = ( 1 );", "topology:1: expected a group"},
        {"ports = (\n{ } );", "topology:2: a port needs a name"},
        {"ports = ( { name = \"a b\"; } );", "topology:1: name: expected at most 31 letters"},
        {"ports = ( { name = \"a234567890123456789012345678901x\"; } );", "topology:1: name: expected at most 31"},
        {"ports = ( { name = \"a23456789012345678901234567890x\"; count = 2; } );",
         "a name of more than 31 characters"},
        {"ports = ( { name = \"a\"; count = 5000; } );", "topology:1: count: more than 1024"},
        {"ports = ( { name = \"a\"; count = 0; } );", "topology:1: count: expected at least 1"},
        {"nodes = ( { name = \"n\"; address = \"10.0.0.1\"; count = 0; } );", "topology:1: count: expected at least 1"},
        {"ports = ( { name = \"a\"; mac = \"02:00:00:00:00:0a\"; },\n{ name = \"b\"; mac = \"02:00:00:00:00:0A\"; } );",
         "topology:2: port b has the mac of port a"},
        {"ports = ( { name = \"a\"; mac = \"02:00:0a:00:00:01\"; } );\n"
         "nodes = ( { name = \"n\"; address = \"10.0.0.1\"; } );",
         "topology:2: port n has the mac of port a"},
        {"ports = ( { name = \"a\"; mac = \"00:00:00:00:00:00\"; } );",
         "topology:1: mac: expected an address of one station"},
        {"ports = ( { name = \"a\"; name = \"b\"; } );", "topology:1: duplicate setting name"},
        {"ports = ( { name = \"a\"; type = \"x\"; } );", "topology:1: type: expected one of: \"memif\" \"tap\""},
        {"ports = ( { name = \"a\"; type = \"tap\"; } );", "topology:1: port a: needs interface"},
        {"ports = ( { name = \"a\"; type = \"pcap\"; } );", "topology:1: port a: needs read or write"},
        {"ports = ( { name = \"a\"; type = \"pmd\"; } );", "topology:1: port a: needs devargs"},
        {"ports = ( { name = \"a\"; type = \"tap\"; interface = \"x\"; path = \"p\"; } );",
         "are for ports of another type"},
        {"ports = ( { name = \"a\"; interface = \"x\"; } );", "topology:1: port a: interface are for ports of another"},
        {"ports = ( { name = \"a\"; type = \"tap\"; interface = \"a,b\"; } );", "an interface's name has at most 11"},
        {"ports = ( { name = \"a\"; count = 2; capture = \"x\"; } );", "count is for types memif and tap, without"},
        {"ports = ( { name = \"a\"; driver = \"x\"; } );", "driver: expected one of: \"netdam\" \"dpdk\""},
        {"ports = ( { name = \"a\"; role = \"master\"; } );",
         "topology:1: role: expected one of: \"server\" \"client\""},
        {"ports = ( { name = \"a\"; mac = \"03:00:00:00:00:00\"; } );", "topology:1: mac: expected an address of one"},
        {"ports = ( { name = \"a\"; mac = \"02:00:00:00:00\"; } );", "topology:1: mac: expected an address of one"},
        {"ports = ( { name = \"a\"; },\n{ name = \"a\"; } );",
         "topology:2: a is the name of the port in line 1 already"},
        {AB "switches = ( { name = \"a\"; } );", "topology:2: a is the name of the port in line 1 already"},
        {"switches = ( { name = \"s\"; } ); ports = ( { name = \"s\"; } );",
         "s is the name of the port in line 1 already"},
        {"ports = ( { name = \"a\"; path = \"x\"; }, { name = \"b\"; path = \"x\"; } );", "port a has path x and id 0"},
        {"ports = ( { name = \"a\"; path = \"x\"; }, { name = \"b\"; path = \"x\"; id = 1; driver = \"dpdk\"; } );",
         "topology:1: port b: to share the socket x with port a takes driver = \"dpdk\" for both"},
        {"ports = ( { name = \"a\"; path = \"x\"; }, { name = \"b\"; path = \"x\"; id = 1; role = \"client\"; } );",
         "already"},
        {"directory = "
         "\"/"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""
         ";" AB,
         "has more than 107 characters"},
        {AB, NULL},
        {AB "switches = ( { name = \"s\"; } ); links = ( { from = \"a\"; to = \"s\"; } );",
         "topology:1: no link joins b"},
        {"switches = ( { } );", "topology:1: a switch needs a name"},
        {"switches = ( { name = \"s\"; spread = \"x\"; } );",
         "topology:1: spread: expected one of: \"ecmp\" \"spray\""},
        {"switches = ( { name = \"s\"; priorities = 9; } );", "topology:1: priorities: expected true or false"},
        {"switches = ( { name = \"s\"; rate = \"1\"; } );", "topology:1: rate: less than 1000 bits per second"},
        {"switches = ( { name = \"s\"; latency = 5; } );", "topology:1: latency: expected a time with its unit"},
        {"switches = ( { name = \"s\"; overhead = 2000; } );", "topology:1: overhead of more than 1024 bytes"},
        {"links = ( { from = \"a\"; } );", "topology:1: a link needs from and to"},
        {"links = ( { from = \"a\"; to = \"b\"; } );", "topology:1: nothing is called a"},
        {AB "links = ( { from = \"a\"; to = \"c\"; } );", "topology:2: nothing is called c"},
        {AB "links = ( { from = \"a\"; to = \"a\"; } );", "topology:2: a link from a to itself"},
        {AB "links = ( { from = \"a\"; to = \"b\"; },\n{ from = \"a\"; to = \"b\"; } );",
         "topology:3: a has a link already, in line 2"},
        {"switches = ( { name = \"s\"; }, { name = \"t\"; } ); links = ( { from = \"s\"; to = \"t\"; name = \"l\"; }, "
         "{ from = \"s\"; to "
         "= \"t\"; name = \"l\"; } );",
         "topology:1: l is the name of the link in line 1 already"},
        {"ports = ( { name = \"p\"; count = 33; } ); switches = ( { name = \"s\"; } ); links = ( { from = \"p\"; to = "
         "\"s\"; } );",
         "topology:1: switch s has more than 32 links"},
        {"ports = ( { name = \"p\"; count = 2; } ); switches = ( { name = \"s\"; } ); links = ( { from = \"p\"; to = "
         "\"s\"; name = "
         "\"l\"; } );",
         "name and capture do not go with the 2 links that p stands for"},
        {LINK("dorp = \"1%\";"), "topology:2: unknown key dorp; here belong: rate, delay"},
        {LINK("drop = \"101%\";"), "topology:2: drop: expected a chance, such as \"1%\""},
        {LINK("drop = 0.01;"), "topology:2: drop: expected a chance"},
        {LINK("drop = { by = \"1us\"; };"), "topology:2: unknown key by; here belong: chance, nth, every"},
        {LINK("drop = { nth = -1; };"),
         "topology:2: nth: expected a whole number, from 2147483648 on with L behind it"},
        {LINK("corrupt = { anywhere = 1; };"), "topology:2: anywhere: expected true or false"},
        {LINK("delay = \"10\";"), "topology:2: delay: expected a time with its unit"},
        {LINK("delay = \"2000000s\";"), "topology:2: a delay of more than an hour"},
        {LINK("rate = \"10Q\";"), "topology:2: rate: expected bits per second"},
        {LINK("rate = \"999\";"), "topology:2: rate: less than 1000 bits per second"},
        {LINK("queue = \"1.5K\";"), "topology:2: queue: expected bytes"},
        {LINK("overhead = 1025;"), "topology:2: overhead: more than 1024 bytes"},
        {LINK("down = \"1s\";"), "topology:2: down: expected a list"},
        {LINK("down = ( { from = \"2s\"; until = \"1s\"; } );"), "topology:2: down: until is not after from"},
        {LINK("down = ( { from = \"2s\"; }, { from = \"3s\"; } );"), "down: begins before the one above it has ended"},
        {LINK("flap = { up = \"1s\"; };"), "topology:2: flap: needs both up and down"},
        {LINK("flap = { up = \"1s\"; down = \"1s\"; }; down = ( { from = \"1s\"; } );"), "exclude each other"},
        {LINK("back = { name = \"x\"; };"), "topology:2: unknown key name; here belong: rate"},
        {LINK("back = 1;"), "topology:2: expected a group"},
        {"nodes = ( { } );", "topology:1: a node needs a name"},
        {"nodes = ( { name = \"n\"; } );", "topology:1: node n: needs an address"},
        {"nodes = ( { name = \"n\"; address = \"10.0.0\"; } );", "topology:1: address: expected one IPv4 address"},
        {"nodes = ( { name = \"n\"; address = \"224.0.0.1\"; } );", "topology:1: address: expected one IPv4 address"},
        {"nodes = ( { name = \"n\"; address = \"10.0.0.1/33\"; } );", "topology:1: address: expected one IPv4 address"},
        {"nodes = ( { name = \"n\"; address = \"10.0.0.1/\"; } );", "topology:1: address: expected one IPv4 address"},
        {NODE("memory = 100;"), "topology:2: node n: memory is not a multiple of 4K"},
        {NODE("memory = \"8388608T\";"), "topology:2: node n: memory of more than 65536T"},
        {NODE("mtu = 100;"), "topology:2: node n: mtu is not within 1500 and 9000"},
        {NODE("key = \"0\";"), "topology:2: key: expected a number of 64 bits"},
        {NODE("key = \"0x12345678901234567\";"), "topology:2: key: expected a number of 64 bits"},
        {NODE("permissions = \"x\";"), "topology:2: permissions: expected letters"},
        {NODE("regions = ();"), "topology:2: regions: expected a list of 1 to 16"},
        {NODE("regions = ( { offset = \"64M\"; } );"), "topology:2: node n: region 0 does not begin"},
        {NODE("regions = ( { bytes = \"65M\"; } );"), "topology:2: node n: region 0 does not begin"},
        {NODE("regions = ( { key = \"1\"; } ); key = \"2\";"),
         "topology:2: node n: key, permissions, load and pattern belong to"},
        {"nodes = (\n{ name = \"n\"; address = \"10.0.0.1\"; pattern = \"abc\"; } );",
         "topology:2: pattern: expected \"count\", or 1 to 64 bytes"},
        {NODE("join = \"tcp\";"), "topology:2: join: expected one of: \"memif\" \"udp\""},
        {NODE("listen = \"127.0.0.1:1\";"), "topology:2: node n: listen is for join = \"udp\""},
        {"nodes = ( { name = \"n\"; join = \"udp\"; } );", "topology:1: node n: needs listen"},
        {"nodes = ( { name = \"n\"; join = \"udp\"; listen = \"0.0.0.0:1\"; } );", "topology:1: node n: needs listen"},
        {"nodes = ( { name = \"n\"; join = \"udp\"; listen = \"239.255.255.255:1\"; } );",
         "topology:1: node n: needs listen"},
        {"nodes = ( { name = \"n\"; join = \"udp\"; listen = \"224.0.0.1:1\"; } );",
         "topology:1: node n: needs listen"},
        {"nodes = ( { name = \"n\"; join = \"udp\"; listen = \"255.255.255.255:1\"; } );",
         "topology:1: node n: needs listen"},
        {"nodes = ( { name = \"n\"; join = \"udp\"; listen = \"127.0.0.1:1\"; path = \"x\"; } );",
         "are not for join = \"udp\""},
        {"nodes = ( { name = \"n\"; join = \"udp\"; listen = \"127.0.0.1:65535\"; count = 2; } );",
         "there are not so many ports"},
        {NODE("") "ports = ( { name = \"n\"; } );", "n is the name of the port in line"},
        {"nodes = ( { name = \"n\"; address = \"10.0.0.1\"; }, { name = \"m\"; address = \"10.0.0.1\"; } );",
         "topology:1: node m: has the address of node n"},
        {"nodes = ( { name = \"n\"; address = \"10.0.0.254\"; count = 2; } );",
         "topology:1: node n1: 10.0.0.255/24 is the address of no host in its network"},
        {"nodes = ( { name = \"n\"; address = \"10.1.0.0/16\"; } );", "node n: 10.1.0.0/16 is the address of no host"},
        {"nodes = ( { name = \"n\"; join = \"udp\"; listen = \"127.0.0.1:1\"; } ); switches = ( { name = \"s\"; } ); "
         "links = ( { from = "
         "\"n\"; to = \"s\"; } );",
         "topology:1: node n is on the kernel's network, and can have no link"},
        {"shapes = ( { } );", "topology:1: a shape needs a kind"},
        {"shapes = ( { kind = \"torus\"; } );",
         "topology:1: kind: expected one of: \"pair\" \"star\" \"ring\" \"leaf-spine\""},
        {"shapes = ( { kind = \"star\"; } );", "topology:1: a shape needs a kind and, but for pairs, a name"},
        {"shapes = ( { kind = \"star\"; name = \"s\"; } );", "topology:1: a shape needs members"},
        {"shapes = ( { kind = \"star\"; name = \"s\"; members = ( ); } );", "topology:1: a shape without members"},
        {"shapes = ( { kind = \"star\"; name = \"s\"; members = ( \"x\" ); } );", "topology:1: nothing is called x"},
        {"shapes = ( { kind = \"star\"; name = \"s\"; members = ( 1 ); } );", "topology:1: nothing is called"},
        {MEMBERS "shapes = ( { kind = \"pair\"; members = ( \"m\" ); } );",
         "topology:1: a pair has two members, not 6"},
        {AB "shapes = ( { kind = \"ring\"; name = \"r\"; members = ( \"a\", \"b\" ); } );",
         "a ring has three switches or more, not 2"},
        {AB "shapes = ( { kind = \"leaf-spine\"; name = \"r\"; members = ( \"a\", \"b\" ); } );",
         "a leaf-spine needs leaves and planes"},
        {AB "shapes = ( { kind = \"star\"; name = \"r\"; leaves = 1; members = ( \"a\", \"b\" ); } );",
         "a star takes no trunk"},
        {AB "shapes = ( { kind = \"star\"; name = \"r\"; members = ( \"a\" ); link = { capture = \"x\"; }; } );",
         "topology:2: capture belongs to one port or link"},
        {AB "shapes = ( { kind = \"star\"; name = \"r\"; members = ( \"a\", \"b\" ); switch = { name = \"x\"; }; } );",
         "topology:2: unknown key name; here belong: spread"},
        {AB
         "shapes = ( { kind = \"leaf-spine\"; name = \"r\"; members = ( \"a\", \"b\" ); leaves = 1; planes = 32; } );",
         "the shape is larger than 32 members, 16 switches or 128 links"},
        {"@include \"/etc/passwd\"", "text may not include files"},
    };
    bool all = true;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        bool good = ndsim_topology_parse(&topology, wrong[i].text, error);

        if (wrong[i].expected == NULL ? !good : good || strstr(error, wrong[i].expected) == NULL) {
            print_error("%s\n  expected: %s\n  got: %s\n", wrong[i].text, wrong[i].expected, good ? "success" : error);
            all = false;
        }
        if (!good) {
            assert_int_equal(topology.port_count, 0);
            assert_null(topology.ports);
        }
        ndsim_topology_free(&topology);
    }
    assert_true(all);
}

static void a_file_is_read_with_paths_beside_it_and_named_in_messages(void **state)
{
    char directory[] = "/tmp/netdam-topology-XXXXXX";
    char path[64], expected[120];
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/net.conf", directory);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("control = \"c\"; " AB "links = ( { from = \"a\"; to = \"b\"; } );\n", file);
    fclose(file);
    assert_true(ndsim_topology_read(&topology, path, error));
    snprintf(expected, sizeof(expected), "%s/c", directory);
    assert_string_equal(topology.control, expected);
    snprintf(expected, sizeof(expected), "%s/b.sock", directory);
    assert_string_equal(topology.ports[1].path, expected);
    ndsim_topology_free(&topology);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("\nports = ( { nam = \"a\"; } );\n", file);
    fclose(file);
    assert_false(ndsim_topology_read(&topology, path, error));
    snprintf(expected, sizeof(expected), "%s:2: unknown key nam;", path);
    assert_non_null(strstr(error, expected));
    remove(path);
    assert_false(ndsim_topology_read(&topology, path, error));
    assert_non_null(strstr(error, "No such file"));
    assert_false(ndsim_topology_read(&topology, directory, error));
    assert_non_null(strstr(error, "Is a directory"));
    remove(directory);
}

static void links_join_what_shapes_have_made(void **state)
{
    (void)state;
    read_text("links = ( { from = \"a\"; to = \"s\"; drop = \"1%\"; } );\n" AB
              "shapes = ( { kind = \"star\"; name = \"s\"; members = ( \"b\" ); } );");
    assert_int_equal(link_called("a-s")->ways[0].config.drop.parts_per_million, 10000);
    assert_int_equal(topology.switches[0].config.ports, 2);
}

static void the_examples_of_the_manual_are_right(void **state)
{
    static const char *const examples[] = {"docs/topologies/star.conf", "docs/topologies/leaf-spine.conf"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
        if (!ndsim_topology_read(&topology, examples[i], error)) {
            fail_msg("%s", error);
        }
        assert_true(topology.link_count >= 9);
        ndsim_topology_free(&topology);
    }
}

static void numbers_with_units_are_exact(void **state)
{
    static const struct {
        const char *text;
        uint64_t size, rate, time, chance; /* UINT64_MAX: refused */
    } numbers[] = {
#define NO UINT64_MAX
        {"", NO, NO, NO, NO},
        {"0", 0, 0, 0, 0},
        {"1", 1, 1, NO, NO},
        {"64K", 65536, 64000, NO, NO},
        {"1.5K", NO, 1500, NO, NO},
        {"1.0001K", NO, NO, NO, NO},
        {"1.", NO, NO, NO, NO},
        {".5", NO, NO, NO, NO},
        {"1..5K", NO, NO, NO, NO},
        {"-1", NO, NO, NO, NO},
        {" 1", NO, NO, NO, NO},
        {"1 ", NO, NO, NO, NO},
        {"10us", NO, NO, 10000, NO},
        {"0.5us", NO, NO, 500, NO},
        {"0.5ns", NO, NO, NO, NO},
        {"1ms", NO, NO, 1000000, NO},
        {"1s", NO, NO, 1000000000, NO},
        {"100%", NO, NO, NO, 1000000},
        {"100.0001%", NO, NO, NO, NO},
        {"0.0001%", NO, NO, NO, 1},
        {"7ppm", NO, NO, NO, 7},
        {"16777216T", NO, UINT64_C(16777216000000000000), NO, NO},
        {"18446744073709551615", NO, NO, NO, NO},
        {"99999999999999999999", NO, NO, NO, NO},
        {"0.00000000000000000000001K", NO, NO, NO, NO},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        uint64_t value = NO;
        uint32_t chance = 0;

        assert_int_equal(ndsim_size_parse(numbers[i].text, &value), numbers[i].size != NO);
        assert_true(value == numbers[i].size);
        value = NO;
        assert_int_equal(ndsim_rate_parse(numbers[i].text, &value), numbers[i].rate != NO);
        assert_true(value == numbers[i].rate);
        value = NO;
        assert_int_equal(ndsim_time_parse(numbers[i].text, &value), numbers[i].time != NO);
        assert_true(value == numbers[i].time);
        assert_int_equal(ndsim_chance_parse(numbers[i].text, &chance), numbers[i].chance != NO);
        assert_true(numbers[i].chance == NO || chance == numbers[i].chance);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_empty_file_is_an_empty_network, free_topology),
        cmocka_unit_test_teardown(every_setting_arrives_where_it_belongs, free_topology),
        cmocka_unit_test_teardown(corruption_spares_the_ethernet_header_unless_told_otherwise, free_topology),
        cmocka_unit_test_teardown(nodes_in_numbers_get_the_next_name_address_and_socket, free_topology),
        cmocka_unit_test_teardown(nodes_of_the_kernel_network_get_the_next_port, free_topology),
        cmocka_unit_test_teardown(several_interfaces_share_a_socket_by_id, free_topology),
        cmocka_unit_test_teardown(shapes_become_switches_and_links, free_topology),
        cmocka_unit_test_teardown(ways_are_all_shortest_paths_and_each_tree_has_a_spine_of_its_own, free_topology),
        cmocka_unit_test_teardown(ways_and_trees_avoid_dead_links, free_topology),
        cmocka_unit_test_teardown(parallel_links_get_names_of_their_own, free_topology),
        cmocka_unit_test_teardown(links_join_what_shapes_have_made, free_topology),
        cmocka_unit_test_teardown(the_examples_of_the_manual_are_right, free_topology),
        cmocka_unit_test(a_wrong_file_is_refused_with_line_and_reason),
        cmocka_unit_test(a_file_is_read_with_paths_beside_it_and_named_in_messages),
        cmocka_unit_test(numbers_with_units_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
