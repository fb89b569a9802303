-- SPDX-License-Identifier: BSD-3-Clause
-- Exchanges: a request, its repetitions and their answers. Identity is context, opcode and number, never addresses.
-- netdam.lua beside this file loads it, and hands it packets in the order of the capture.

local bit = bit or bit32

-- `t`: the tables; flags and opcodes by name.
return function(t, flag, opcode_of)
    local exchanges = {}
    local by_key, by_frame
    -- By context: the largest floor that its requester has told so far. Numbers below it are finished.
    local floors

    function exchanges.forget()
        by_key, by_frame, floors = {}, {}, {}
    end

    -- Told by everything that uses a lane, and by CONFIRM, whose number is the floor. Returns whether the number lies
    -- below.
    local function note_floor(p)
        local without = bit.bor(flag.RELAXED, flag.UNRELIABLE)
        local confirm = p.opcode == opcode_of.CONFIRM
        local uses_lane = t.modifies[p.opcode or 0] and bit.band(p.flags, without) == 0
        if not confirm and (not uses_lane or p.distance > p.number) then
            return false
        end
        local told = floors[p.context] or 0
        local floor = confirm and p.number or p.number - p.distance
        floors[p.context] = math.max(told, floor)
        return not confirm and p.number < told
    end

    -- The newest frame of an exchange that goes to this hop.
    local function newest_to(exchange, hop)
        for i = #exchange.frames, 1, -1 do
            if exchange.frames[i].hop == hop then
                return exchange.frames[i]
            end
        end
        return nil
    end

    local function new_exchange(keys)
        local exchange = {frames = {}, answers = {}}
        for _, key in ipairs(keys) do
            by_key[key] = exchange
        end
        return exchange
    end

    function exchanges.note_request(p, frame, time)
        local loose = p.context .. "/" .. p.number
        -- At each hop of a chain it is the same request with another current segment.
        local exact = loose .. "/" .. (p.is_chain and "chain" or p.opcode or "")
        local exchange = by_key[exact]
        -- A CONFIRM's number is the floor, so that two of them may well have the same.
        if not exchange or (p.opcode == opcode_of.CONFIRM and bit.band(p.flags, flag.AGAIN) == 0) then
            exchange = new_exchange({exact, loose})
        end
        by_key[loose] = exchange
        local first
        for _, earlier in ipairs(exchange.frames) do
            first = first or (earlier.hop == p.segment_index and earlier.frame or nil)
        end
        local own = {frame = frame, time = time, generation = p.generation, hop = p.segment_index}
        if p.is_chain and p.segment_index > 0 then
            own.previous = newest_to(exchange, p.segment_index - 1)
            own.start = own.previous and (own.previous.start or own.previous) or newest_to(exchange, 0)
            if own.previous then
                own.previous.next = own.previous.next or frame
            end
        end
        exchange.segments = p.segments or exchange.segments
        exchange.frames[#exchange.frames + 1] = own
        by_frame[frame] = {exchange = exchange, index = #exchange.frames, first = first, is_late = note_floor(p)}
    end

    function exchanges.note_response(p, frame)
        local loose = p.context .. "/" .. p.number
        local exchange = by_key[loose .. "/" .. (p.opcode or "")]
        exchange = exchange or by_key[loose .. "/chain"]
        if not exchange and p.is_unbelieved then
            exchange = by_key[loose]
        end
        if not exchange then
            by_frame[frame] = {}
            return
        end
        -- The newest one that carried the generation which the answer echoes, else the newest.
        local request = exchange.frames[#exchange.frames]
        for i = #exchange.frames, 1, -1 do
            local earlier = exchange.frames[i]
            if not p.is_unbelieved and earlier.generation == p.echo and earlier.hop == p.segment_index then
                request = earlier
                break
            end
        end
        request.answer = request.answer or frame
        exchange.answer = exchange.answer or frame
        by_frame[frame] = {exchange = exchange, request = request}
    end

    -- What is known of a frame: its exchange, and its place in it. Nil if it was not noted.
    function exchanges.of(frame)
        return by_frame[frame]
    end

    return exchanges
end
