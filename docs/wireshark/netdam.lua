-- SPDX-License-Identifier: BSD-3-Clause
-- Wireshark dissector for NetDAM packets: names, CRCs, which answer belongs to which request, the tours of chains, and
-- what deserves a second look. Beside this file lie netdam_tables.lua, names and places, which is generated, and
-- netdam_exchanges.lua. docs/wire-format.md explains what is shown.

local bit = bit or bit32

local function load_beside(name)
    local here = debug.getinfo(1, "S").source:gsub("^@", ""):match("^(.*[/\\])") or ""
    local file = assert(io.open(here .. name, "r"))
    local text = file:read("*a")
    file:close()
    return assert(load(text, "=" .. name))()
end

local t = load_beside("netdam_tables.lua")
local REQUEST, RESPONSE = 1, 2
for value, name in pairs(t.kind) do
    if name == "REQUEST" then
        REQUEST = value
    else
        RESPONSE = value
    end
end
local flag = {}
for _, f in ipairs(t.flag) do
    flag[f.name] = f.value
end
local opcode_of = {}
for value, name in pairs(t.opcode) do
    opcode_of[name] = value
end
local exchanges = load_beside("netdam_exchanges.lua")(t, flag, opcode_of)
local form_structure = {IPV4 = "node_ipv4", IPV6 = "node_ipv6"}
-- With these the node did not believe the segment: what an answer says about it means nothing.
local unbelieved = {BAD_VERSION = true, BAD_FLAGS = true, BAD_SEGMENTS = true}
local crc_state = {[0] = "wrong", [1] = "right", [2] = "not verified"}

local netdam = Proto("netdam", "Network Direct Attached Memory")
netdam.prefs.check_crc = Pref.bool("Verify checksums", true, "Compute the CRC32C of headers and payloads")

-- Fields by structure and member.
local DEC, HEX = base.DEC, base.HEX
local fields = {
    header = {
        version = ProtoField.uint8("netdam.version", "Version", DEC),
        kind = ProtoField.uint8("netdam.kind", "Kind", DEC, t.kind),
        flags = ProtoField.uint16("netdam.flags", "Flags", HEX),
        segment_count = ProtoField.uint8("netdam.segment_count", "Segments", DEC),
        segment_index = ProtoField.uint8("netdam.segment_index", "Current segment", DEC),
        node_form = ProtoField.uint8("netdam.node_form", "Node form", DEC, t.node_form),
        status = ProtoField.uint8("netdam.status", "Status", HEX, t.status),
        context = ProtoField.uint64("netdam.context", "Context", HEX),
        number = ProtoField.uint64("netdam.number", "Number", DEC),
        distance = ProtoField.uint16("netdam.distance", "Distance", DEC),
        payload_length = ProtoField.uint16("netdam.payload_length", "Payload bytes", DEC),
        header_length = ProtoField.uint16("netdam.header_length", "Header bytes", DEC),
        header_crc = ProtoField.uint32("netdam.header_crc", "Header CRC32C", HEX),
    },
    immediate = {
        value = ProtoField.uint64("netdam.immediate", "Immediate", HEX),
    },
    tenant = {
        tenant = ProtoField.uint32("netdam.tenant", "Tenant", DEC),
        mode = ProtoField.uint8("netdam.tenant.mode", "Mode", DEC, t.tenant_mode),
        salt = ProtoField.bytes("netdam.tenant.salt", "Salt"),
        counter = ProtoField.uint64("netdam.tenant.counter", "Counter", DEC),
        tag = ProtoField.bytes("netdam.tenant.tag", "Tag"),
    },
    segment = {
        opcode = ProtoField.uint8("netdam.opcode", "Opcode", HEX, t.opcode),
        operation = ProtoField.uint8("netdam.operation", "Operation", HEX, t.operation),
        type = ProtoField.uint8("netdam.type", "Type", HEX, t.type),
        reserved = ProtoField.uint8("netdam.reserved", "Reserved", HEX),
        length = ProtoField.uint32("netdam.length", "Length", DEC),
        key = ProtoField.uint64("netdam.key", "Region key", HEX),
        address = ProtoField.uint64("netdam.address", "Address", HEX),
        generation = ProtoField.uint64("netdam.generation", "Generation", HEX),
    },
    node_ipv4 = {
        address = ProtoField.ipv4("netdam.node.ipv4", "Node address"),
        port = ProtoField.uint16("netdam.node.port", "Node port", DEC),
        reserved = ProtoField.bytes("netdam.node.reserved", "Node reserved"),
    },
    node_ipv6 = {
        address = ProtoField.ipv6("netdam.node.ipv6", "Node address"),
    },
    answer = {
        hop = ProtoField.uint8("netdam.hop", "Hop", DEC),
        echo = ProtoField.uint64("netdam.echo", "Generation in the request", HEX),
        floor = ProtoField.uint64("netdam.floor", "Floor", DEC),
        depth = ProtoField.uint16("netdam.depth", "Requests waiting", DEC),
    },
}
-- Members of the same meaning share a field, so that one filter finds both.
fields.node_ipv6.port, fields.node_ipv6.reserved = fields.node_ipv4.port, fields.node_ipv4.reserved
for _, name in ipairs({"opcode", "operation", "type", "length", "generation"}) do
    fields.answer[name] = fields.segment[name]
end

-- A transaction's list is little-endian, like all payload.
local entry_kinds = {}
for value, kind in pairs(t.entry_kind) do
    entry_kinds[value] = kind.name
end
fields.entry = {
    kind = ProtoField.uint8("netdam.entry.kind", "Kind", DEC, entry_kinds),
    reserved = ProtoField.bytes("netdam.entry.reserved", "Reserved"),
    length = ProtoField.uint32("netdam.entry.length", "Length", DEC),
    key = ProtoField.uint64("netdam.entry.key", "Region key", HEX),
    address = ProtoField.uint64("netdam.entry.address", "Address", HEX),
    data = ProtoField.bytes("netdam.entry.data", "Data"),
    padding = ProtoField.bytes("netdam.entry.padding", "Padding"),
}

local flag_fields = {}
for _, f in ipairs(t.flag) do
    flag_fields[#flag_fields + 1] = ProtoField.bool("netdam.flags." .. f.name:lower(), f.name, 16, nil, f.value)
end

local extra = {
    header_crc_status = ProtoField.uint8("netdam.header_crc.status", "Header CRC", DEC, crc_state),
    payload = ProtoField.bytes("netdam.payload", "Payload"),
    payload_crc = ProtoField.uint32("netdam.payload_crc", "Payload CRC32C", HEX),
    payload_crc_status = ProtoField.uint8("netdam.payload_crc.status", "Payload CRC", DEC, crc_state),
    rest = ProtoField.bytes("netdam.rest", "Not understood"),
    request_floor = ProtoField.double("netdam.request_floor", "Requester's floor"),
    status_class = ProtoField.string("netdam.status_class", "Status class"),
    request_in = ProtoField.framenum("netdam.request_in", "Request", base.NONE, frametype.REQUEST),
    response_in = ProtoField.framenum("netdam.response_in", "Response", base.NONE, frametype.RESPONSE),
    repetition_of = ProtoField.framenum("netdam.repetition_of", "First sent in", base.NONE),
    time = ProtoField.relative_time("netdam.time", "Time since the request"),
    tour_start = ProtoField.framenum("netdam.tour.start", "Tour began in", base.NONE, frametype.REQUEST),
    tour_previous = ProtoField.framenum("netdam.tour.previous", "From the hop before", base.NONE),
    tour_next = ProtoField.framenum("netdam.tour.next", "To the next hop", base.NONE),
    tour_time = ProtoField.relative_time("netdam.tour.time", "Time since the tour began"),
}

local problem = {
    malformed = ProtoExpert.new("netdam.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
    header_crc = ProtoExpert.new("netdam.header_crc.bad", "Header CRC is wrong", expert.group.CHECKSUM,
                                 expert.severity.ERROR),
    payload_crc = ProtoExpert.new("netdam.payload_crc.bad", "Payload CRC is wrong", expert.group.CHECKSUM,
                                  expert.severity.ERROR),
    form = ProtoExpert.new("netdam.form", "A node refuses this", expert.group.PROTOCOL, expert.severity.WARN),
    cut = ProtoExpert.new("netdam.cut", "The capture does not hold the whole packet", expert.group.UNDECODED,
                          expert.severity.NOTE),
    status = ProtoExpert.new("netdam.refused", "The answer is not OK", expert.group.RESPONSE_CODE, expert.severity.NOTE),
    no_response = ProtoExpert.new("netdam.no_response", "No answer in this capture", expert.group.SEQUENCE,
                                  expert.severity.NOTE),
    no_request = ProtoExpert.new("netdam.no_request", "No request in this capture", expert.group.SEQUENCE,
                                 expert.severity.NOTE),
    repetition = ProtoExpert.new("netdam.repetition", "Sent before", expert.group.SEQUENCE, expert.severity.WARN),
    stale_copy = ProtoExpert.new("netdam.stale_copy", "A late copy of what the requester has finished: nodes drop it",
                                 expert.group.SEQUENCE, expert.severity.WARN),
    stale = ProtoExpert.new("netdam.stale", "The node wants its current generation, not the request's",
                            expert.group.RESPONSE_CODE, expert.severity.WARN),
    refused_hop = ProtoExpert.new("netdam.refused_hop", "A hop of a chain has refused", expert.group.RESPONSE_CODE,
                                  expert.severity.WARN),
}

local all_fields, all_problems = {}, {}
local seen_field = {}
for _, group in pairs(fields) do
    for _, field in pairs(group) do
        if not seen_field[field] then
            seen_field[field] = true
            all_fields[#all_fields + 1] = field
        end
    end
end
for _, field in ipairs(flag_fields) do
    all_fields[#all_fields + 1] = field
end
for _, field in pairs(extra) do
    all_fields[#all_fields + 1] = field
end
for _, p in pairs(problem) do
    all_problems[#all_problems + 1] = p
end
netdam.fields = all_fields
netdam.experts = all_problems

-- CRC32C: reflected polynomial 0x82f63b78, initial value and final exclusive-or all ones (docs/wire-format.md, 2.1).
local crc_table = {}
for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
        c = bit.bxor(bit.rshift(c, 1), bit.band(c, 1) == 1 and 0x82f63b78 or 0)
    end
    crc_table[i] = c
end

local function crc32c(data)
    local crc = 0xffffffff
    local bxor, band, rshift = bit.bxor, bit.band, bit.rshift
    for i = 1, #data do
        crc = bxor(rshift(crc, 8), crc_table[band(bxor(crc, data:byte(i)), 0xff)])
    end
    -- bit's results are signed in some versions.
    return bxor(crc, 0xffffffff) % 4294967296
end

-- A member's bytes in a structure at `at`; nil where the capture does not hold them.
local function part(tvb, structure, member, at)
    local place = t[structure][member]
    if at + place[1] + place[2] <= tvb:captured_len() then
        return tvb:range(at + place[1], place[2])
    end
    return nil
end

local function uint(tvb, structure, member, at)
    local range = part(tvb, structure, member, at)
    if not range then
        return nil
    end
    if range:len() <= 4 then
        return range:uint()
    end
    -- Up to 48 bits, exact in a Lua number.
    return range:range(0, range:len() - 4):uint() * 4294967296 + range:range(range:len() - 4, 4):uint()
end

local function hex(tvb, structure, member, at)
    local range = part(tvb, structure, member, at)
    return range and range:bytes():tohex():lower() or ""
end

local function add(tree, tvb, structure, member, at)
    local range = part(tvb, structure, member, at)
    return range and tree:add(fields[structure][member], range) or nil
end

local function show_time(tree, field, since, pinfo)
    local delta = pinfo.rel_ts - since
    local seconds = math.floor(delta)
    tree:add(field, NSTime.new(seconds, math.floor((delta - seconds) * 1e9 + 0.5))):set_generated()
end

-- Of a chain: where a packet has come from and gone to, and where all of it began.
local function show_tour(tree, own, pinfo)
    if own.previous and own.frame == pinfo.number then
        tree:add(extra.tour_previous, own.previous.frame):set_generated()
    end
    if own.next and own.frame == pinfo.number then
        tree:add(extra.tour_next, own.next):set_generated()
    end
    if own.start then
        tree:add(extra.tour_start, own.start.frame):set_generated()
        show_time(tree, extra.tour_time, own.start.time, pinfo)
    end
end

local function show_refused_hop(p, tree, exchange)
    local segment = exchange.segments and exchange.segments[p.segment_index]
    if segment and t.status_class[p.status] == "REFUSED" then
        tree:add_proto_expert_info(problem.refused_hop, string.format("Hop %d, %s at %s, has refused: %s", p.segment_index,
                                                                      segment.name, segment.node, t.status[p.status]))
    end
end

local function show_exchange(p, pinfo, tree)
    if not pinfo.visited then
        if p.kind == REQUEST then
            exchanges.note_request(p, pinfo.number, pinfo.rel_ts)
        else
            exchanges.note_response(p, pinfo.number)
        end
    end
    local known = exchanges.of(pinfo.number)
    if not known then
        return
    end
    if p.kind == RESPONSE then
        if known.request then
            tree:add(extra.request_in, known.request.frame):set_generated()
            show_time(tree, extra.time, known.request.time, pinfo)
            show_tour(tree, known.request, pinfo)
            show_refused_hop(p, tree, known.exchange)
        else
            tree:add_proto_expert_info(problem.no_request)
        end
        return
    end
    local own = known.exchange.frames[known.index]
    local answer = own.answer or known.exchange.answer
    if answer then
        tree:add(extra.response_in, answer):set_generated()
    elseif pinfo.visited and not own.next and bit.band(p.flags, flag.UNRELIABLE) == 0 then
        tree:add_proto_expert_info(problem.no_response)
    end
    show_tour(tree, own, pinfo)
    if known.first then
        tree:add(extra.repetition_of, known.first):set_generated()
        tree:add_proto_expert_info(problem.repetition, "Sent before, in frame " .. known.first)
    elseif bit.band(p.flags, flag.AGAIN) ~= 0 then
        tree:add_proto_expert_info(problem.repetition, "Sent before, says the requester; this capture does not hold it")
    end
    if known.is_late then
        tree:add_proto_expert_info(problem.stale_copy)
    end
end

local function flag_names(p)
    local names = {}
    for _, f in ipairs(t.flag) do
        if f.value ~= flag.PAYLOAD_CRC and bit.band(p.flags, f.value) ~= 0 then
            names[#names + 1] = f.name
        end
    end
    return #names > 0 and " [" .. table.concat(names, " ") .. "]" or ""
end

local function show_flags(p, tvb, tree)
    local range = part(tvb, "header", "flags", 0)
    local item = tree:add(fields.header.flags, range)
    for _, field in ipairs(flag_fields) do
        item:add(field, range)
    end
    if bit.band(p.flags, bit.bnot(t.flags_defined[p.kind] or 0xffff)) == 0 then
        return true
    end
    -- A request is refused for it, a response is dropped.
    item:add_proto_expert_info(p.kind == RESPONSE and problem.malformed or problem.form,
                               "A flag is not defined for this kind of packet")
    return p.kind ~= RESPONSE
end

-- Adds right, wrong or not verified; returns true unless it is known to be wrong.
local function show_crc(tree, item, field, range, wrong, computed, carried)
    local state = 2
    if computed then
        state = computed == carried and 1 or 0
    end
    tree:add(field, range, state):set_generated()
    if state == 0 then
        item:add_proto_expert_info(wrong, string.format("CRC is 0x%08x, should be 0x%08x", carried, computed))
    end
    return state ~= 0
end

local function show_header_crc(p, tvb, tree)
    local range = part(tvb, "header", "header_crc", 0)
    local item = tree:add(fields.header.header_crc, range)
    local computed
    if netdam.prefs.check_crc and p.header_length >= t.header.bytes and p.header_length <= tvb:captured_len() then
        local at = t.header.header_crc[1]
        computed = crc32c(tvb:raw(0, at) .. "\0\0\0\0" ..
                          tvb:raw(at + t.crc_bytes, p.header_length - at - t.crc_bytes))
    end
    return show_crc(tree, item, extra.header_crc_status, range, problem.header_crc, computed, range:uint())
end

local function operation_name(p)
    local name = t.opcode[p.opcode] or string.format("opcode 0x%02x", p.opcode)
    if p.operation ~= 0 then
        name = name .. "." .. (t.operation[p.operation] or string.format("0x%02x", p.operation))
    end
    if p.type ~= 0 then
        name = name .. "." .. (t.type[p.type] or string.format("0x%02x", p.type))
    end
    return name
end

local function take_operation(p, tvb, structure, at)
    p.opcode = uint(tvb, structure, "opcode", at)
    p.operation = uint(tvb, structure, "operation", at)
    p.type = uint(tvb, structure, "type", at)
    p.length = uint(tvb, structure, "length", at)
    p.generation = hex(tvb, structure, "generation", at)
    return p.length ~= nil
end

local function members(tree, tvb, structure, names, at)
    for _, name in ipairs(names) do
        add(tree, tvb, structure, name, at)
    end
end

-- A node as people write it.
local function node_name(tvb, node, at)
    local address = part(tvb, node, "address", at)
    if node == "node_ipv6" then
        return string.format("[%s]:%d", tostring(address:ipv6()), uint(tvb, node, "port", at))
    end
    return string.format("%s:%d", tostring(address:ipv4()), uint(tvb, node, "port", at))
end

local function show_segment(p, tvb, tree, index, at, node)
    local s = {}
    local bytes = t.segment.bytes + (node and t[node].bytes or 0)
    if at + bytes > p.header_length or at + bytes > tvb:captured_len() then
        return nil
    end
    take_operation(s, tvb, "segment", at)
    local sub = tree:add(netdam, tvb:range(at, bytes), string.format("Segment %d%s: %s", index,
        index == p.segment_index and " (current)" or "", operation_name(s)))
    members(sub, tvb, "segment", {"opcode", "operation", "type", "reserved", "length", "key", "address", "generation"}, at)
    if uint(tvb, "segment", "reserved", at) ~= 0 then
        sub:add_proto_expert_info(problem.form, "The reserved byte of a segment is not 0")
    end
    if not t.opcode[s.opcode] then
        sub:add_proto_expert_info(problem.form, "The opcode is not defined")
    end
    if node then
        members(sub, tvb, node, {"address", "port", "reserved"}, at + t.segment.bytes)
    end
    p.segments = p.segments or {}
    p.segments[index] = {name = operation_name(s), node = node and node_name(tvb, node, at + t.segment.bytes) or "?"}
    if index == p.segment_index then
        p.opcode, p.operation, p.type, p.length, p.generation = s.opcode, s.operation, s.type, s.length, s.generation
        p.address = hex(tvb, "segment", "address", at):gsub("^0+(%x)", "%1")
        p.key = hex(tvb, "segment", "key", at)
    end
    return at + bytes
end

-- Returns where the body ends, or nil when it is not what the header says.
local function show_request_body(p, tvb, tree, at)
    local form = t.node_form[p.node_form]
    if not form or p.segment_count < 1 or p.segment_count > t.segments_max or p.segment_index >= p.segment_count or
        (form == "IMPLICIT" and p.segment_count > 1) then
        tree:add_proto_expert_info(problem.form, "Segment count, current segment or node form is wrong")
        p.has_wrong_segments = true
    end
    if not form then
        return nil
    end
    local node = form_structure[form]
    if node then
        p.is_chain = true
        if at + t[node].bytes > p.header_length or at + t[node].bytes > tvb:captured_len() then
            return nil
        end
        local sub = tree:add(netdam, tvb:range(at, t[node].bytes), "Origin")
        members(sub, tvb, node, {"address", "port", "reserved"}, at)
        at = at + t[node].bytes
    end
    for index = 0, math.min(p.segment_count, t.segments_max) - 1 do
        at = show_segment(p, tvb, tree, index, at, form_structure[form])
        if not at then
            return nil
        end
    end
    return at
end

local function show_response_body(p, tvb, tree, at)
    if at + t.answer.bytes > p.header_length or at + t.answer.bytes > tvb:captured_len() then
        return nil
    end
    take_operation(p, tvb, "answer", at)
    p.echo = hex(tvb, "answer", "echo", at)
    p.floor = uint(tvb, "answer", "floor", at)
    p.is_unbelieved = unbelieved[t.status[p.status] or ""] or false
    local sub = tree:add(netdam, tvb:range(at, t.answer.bytes), "Answer: " .. (p.is_unbelieved
        and "the node did not look at the segment" or operation_name(p)))
    members(sub, tvb, "answer", {"opcode", "operation", "type", "hop", "length", "generation", "echo", "floor", "depth"}, at)
    return at + t.answer.bytes
end

local function show_extensions(p, tvb, tree)
    local at = t.header.bytes
    for _, extension in ipairs({{"IMMEDIATE", "immediate", {"value"}}, {"TENANT", "tenant", {"tenant", "mode", "salt", "counter", "tag"}}}) do
        if bit.band(p.flags, flag[extension[1]]) ~= 0 then
            local bytes = t[extension[2]].bytes
            if at + bytes > p.header_length or at + bytes > tvb:captured_len() then
                return nil
            end
            members(tree:add(netdam, tvb:range(at, bytes), "Extension: " .. extension[1]), tvb, extension[2],
                    extension[3], at)
            at = at + bytes
        end
    end
    return at
end

-- One entry of a transaction's list. Returns where the next one begins and what is fetched; nil and why if it is wrong.
local function show_entry(tvb, tree, index, at, past)
    if at + t.entry_bytes > past then
        tree:add_le(fields.entry.kind, tvb:range(at, 1))
        return nil, "An entry goes beyond the payload"
    end
    local kind = t.entry_kind[tvb:range(at, 1):uint()]
    local length = tvb:range(at + 4, 4):le_uint()
    local data = kind and kind.data and length or 0
    local bytes = t.entry_bytes + math.ceil(data / 8) * 8
    local sub = tree:add(netdam, tvb:range(at, math.min(bytes, past - at)),
                         string.format("Entry %d: %s of %.0f bytes", index, kind and kind.name or "?", length))
    sub:add_le(fields.entry.kind, tvb:range(at, 1))
    sub:add_le(fields.entry.reserved, tvb:range(at + 1, 3))
    sub:add_le(fields.entry.length, tvb:range(at + 4, 4))
    sub:add_le(fields.entry.key, tvb:range(at + 8, 8))
    sub:add_le(fields.entry.address, tvb:range(at + 16, 8))
    if not kind then
        return nil, "The kind of an entry is not defined"
    elseif tvb:range(at + 1, 3):uint() ~= 0 then
        return nil, "A reserved byte of an entry is not 0"
    elseif at + bytes > past then
        return nil, "An entry's data goes beyond the payload"
    end
    at = at + t.entry_bytes
    if data > 0 then
        sub:add(fields.entry.data, tvb:range(at, data))
    end
    local padding = bytes - t.entry_bytes - data
    if padding > 0 then
        sub:add(fields.entry.padding, tvb:range(at + data, padding))
        if tvb:raw(at + data, padding):find("[^%z]") then
            return nil, "An entry's padding is not 0"
        end
    end
    return at - t.entry_bytes + bytes, kind.data and 0 or length
end

local function show_entries(tvb, tree, at, past)
    local count, fetched, wrong = 0, 0, nil
    while at and at < past and count < t.entries_max do
        local next_at, told = show_entry(tvb, tree, count, at, past)
        if next_at then
            fetched = fetched + told
        else
            wrong = told
        end
        at = next_at
        count = count + 1
    end
    if not wrong and (count == 0 or at < past) then
        wrong = string.format("A list has 1 to %d entries", t.entries_max)
    elseif not wrong and fetched > t.fetch_max then
        wrong = string.format("The list fetches more than %d bytes", t.fetch_max)
    end
    if wrong then
        tree:add_proto_expert_info(problem.form, wrong)
    end
end

local function show_payload(p, tvb, tree)
    local at, captured = p.header_length, tvb:captured_len()
    local has_crc = bit.band(p.flags, flag.PAYLOAD_CRC) ~= 0 and p.payload_length > 0
    local expected = at + p.payload_length + (has_crc and t.crc_bytes or 0)
    local there = math.min(p.payload_length, captured - at)
    if there > 0 then
        tree:add(extra.payload, tvb:range(at, there))
    end
    if p.kind == REQUEST and t.opcode[p.opcode or 0] == "TRANSACTION" and there == p.payload_length then
        show_entries(tvb, tree, at, at + there)
    end
    if expected ~= tvb:reported_len() then
        tree:add_proto_expert_info(problem.malformed, string.format("The datagram has %d bytes, its header says %d",
                                                                    tvb:reported_len(), expected))
        return false
    end
    if captured < tvb:reported_len() then
        tree:add_proto_expert_info(problem.cut)
        return true
    end
    if not has_crc then
        return true
    end
    local range = tvb:range(at + p.payload_length, t.crc_bytes)
    local item = tree:add(extra.payload_crc, range)
    local computed = netdam.prefs.check_crc and crc32c(tvb:raw(at, p.payload_length)) or nil
    return show_crc(tree, item, extra.payload_crc_status, range, problem.payload_crc, computed, range:uint())
end

local function header_of(tvb)
    local p = {context = hex(tvb, "header", "context", 0)}
    for _, name in ipairs({"version", "kind", "flags", "segment_count", "segment_index", "node_form", "status", "number",
                           "distance", "payload_length", "header_length"}) do
        p[name] = uint(tvb, "header", name, 0)
    end
    return p
end

local function info_text(p)
    local text
    if p.kind == REQUEST then
        text = p.opcode and operation_name(p) or "REQUEST"
        text = string.format("%s #%.0f", text, p.number)
        if p.opcode and t.modifies[p.opcode] then
            text = string.format("%s floor %.0f", text, p.number - p.distance)
        end
        if p.opcode and p.key ~= "0000000000000000" then
            text = string.format("%s address 0x%s", text, p.address)
        end
        if p.is_chain then
            text = string.format("%s hop %d of %d", text, p.segment_index, p.segment_count)
        end
    else
        text = t.status[p.status] or string.format("status 0x%02x", p.status)
        if p.opcode and not p.is_unbelieved then
            text = text .. " to " .. operation_name(p)
        end
        text = string.format("%s #%.0f", text, p.number)
    end
    if p.length and not p.is_unbelieved then
        text = string.format("%s length %.0f", text, p.length)
    end
    return text .. flag_names(p)
end

local function damage(intact)
    return intact and "" or " (damaged: dropped by nodes)"
end

local function give_up(tvb, pinfo, tree, at, text)
    tree:add_proto_expert_info(problem.malformed, text)
    if at < tvb:captured_len() then
        tree:add(extra.rest, tvb:range(at))
    end
    pinfo.cols.info = "Malformed: " .. text
    return tvb:captured_len()
end

netdam.init = exchanges.forget

function netdam.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "NetDAM"
    local tree = root:add(netdam, tvb:range(0))
    if tvb:captured_len() < t.header.bytes then
        return give_up(tvb, pinfo, tree, 0, "less than a header")
    end

    local p = header_of(tvb)
    members(tree, tvb, "header", {"version", "kind"}, 0)
    local has_right_flags = show_flags(p, tvb, tree)
    members(tree, tvb, "header", {"segment_count", "segment_index", "node_form"}, 0)
    local status = add(tree, tvb, "header", "status", 0)
    members(tree, tvb, "header", {"context", "number", "distance", "payload_length", "header_length"}, 0)
    if p.header_length < t.header.bytes or p.header_length > tvb:reported_len() then
        return give_up(tvb, pinfo, tree, t.header.bytes, "header_length is not within the datagram")
    end
    local intact = show_header_crc(p, tvb, tree) and has_right_flags
    if not t.kind[p.kind] then
        return give_up(tvb, pinfo, tree, t.header.bytes, "kind is neither request nor response")
    end
    if p.version ~= t.version then
        tree:add_proto_expert_info(p.kind == RESPONSE and problem.malformed or problem.form,
                                   "Another version of the wire format")
        intact = intact and p.kind == REQUEST
        if t.header.bytes < tvb:captured_len() then
            tree:add(extra.rest, tvb:range(t.header.bytes))
        end
        pinfo.cols.info = string.format("%s of version %d #%.0f%s", t.kind[p.kind], p.version, p.number, damage(intact))
        return tvb:captured_len()
    end
    if p.kind == RESPONSE then
        tree:add(extra.status_class, part(tvb, "header", "status", 0), t.status_class[p.status] or "NONE"):set_generated()
        if p.status ~= 0 then
            status:add_proto_expert_info(problem.status, "The answer is " .. (t.status[p.status] or "of unknown status"))
        end
        if t.status[p.status] == "STALE" then
            status:add_proto_expert_info(problem.stale)
        end
    elseif p.status ~= 0 then
        status:add_proto_expert_info(problem.form, "A request has a status")
    end

    local at = show_extensions(p, tvb, tree)
    if at then
        at = (p.kind == REQUEST and show_request_body or show_response_body)(p, tvb, tree, at)
    end
    local is_cut = p.header_length > tvb:captured_len()
    if is_cut then
        tree:add_proto_expert_info(problem.cut)
    elseif at ~= p.header_length and not p.has_wrong_segments then
        tree:add_proto_expert_info(problem.malformed, "header_length is not what flags and segments need")
        intact = false
    end
    if p.kind == REQUEST and p.opcode and t.modifies[p.opcode] then
        local item = tree:add(extra.request_floor, part(tvb, "header", "distance", 0), p.number - p.distance)
        item:set_generated()
        if p.distance > p.number or p.distance >= t.window_max then
            item:add_proto_expert_info(problem.form, "The distance is beyond the window, or larger than the number")
        end
    end
    if not is_cut then
        intact = show_payload(p, tvb, tree) and intact
    end
    -- What a node drops belongs to no exchange.
    if intact then
        show_exchange(p, pinfo, tree)
    end
    local text = info_text(p)
    tree:append_text(", " .. text)
    pinfo.cols.info = text .. damage(intact)
    return tvb:captured_len()
end

-- Nodes listen on any port. What has this version, exact lengths and a right header CRC is a NetDAM packet.
local function is_netdam(tvb)
    if tvb:captured_len() < t.header.bytes or tvb:captured_len() < tvb:reported_len() then
        return false
    end
    local p = header_of(tvb)
    if p.version ~= t.version or not t.kind[p.kind] or p.header_length < t.header.bytes + t.answer.bytes or
        p.header_length + p.payload_length > tvb:captured_len() or
        p.header_length + p.payload_length + t.crc_bytes < tvb:captured_len() then
        return false
    end
    local at = t.header.header_crc[1]
    return crc32c(tvb:raw(0, at) .. "\0\0\0\0" .. tvb:raw(at + t.crc_bytes, p.header_length - at - t.crc_bytes)) ==
        part(tvb, "header", "header_crc", 0):uint()
end

local function heuristic(tvb, pinfo, root)
    if not is_netdam(tvb) then
        return false
    end
    pinfo.conversation = netdam
    netdam.dissector(tvb, pinfo, root)
    return true
end

netdam:register_heuristic("udp", heuristic)
local udp = DissectorTable.get("udp.port")
udp:add(t.port, netdam)
udp:add_for_decode_as(netdam)
