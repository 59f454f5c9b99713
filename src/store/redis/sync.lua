-- Adds a node's reports to the records of async mode, and exchanges events with the other nodes. The texts of
-- limiters.lua and records.lua precede this one.
--
-- KEYS     if the call exchanges events: the sorted set of nodes, the stream of bans and the stream of exhausted keys;
--          then the record of each report
-- ARGV[1]  the reports, packed by sync_call.rs
-- ARGV[2]  ban events to append
-- ARGV[3]  exhausted events to append
-- ARGV[4]  the position in the stream of bans, or '' for its start
-- ARGV[5]  the position in the stream of exhausted keys, or '' for a second ago
-- returns  the results, packed; the ban events and the exhausted events after the positions, or, if the call does not
--          exchange events, those of its own reports, each entry after its length; the new positions. Only the time if
--          the deadline has passed: nothing was done. sync_reply.rs reads them.
--
-- An event is its kind, the length of the rest, and the rest. A node skips kinds that it does not know.
packed = ARGV[1]
local deadline, node, node_bit, call_flags, node_lifetime, max_events, reports, position =
  unpack_from('<I7c8BBI7I2I2', packed)
if deadline > 0 and now > deadline then
  return { pack('<I7', now) }
end

-- The flags of a call.
local EXCHANGES, LEAVES = 1, 2
-- What became of a report.
local MERGED, IS_BANNED, STARTED = 0, 1, 2
local EXHAUSTED_EVENT, BAN_EVENT = 1, 2
local no_nodes = ('\0'):rep(NODES_BYTES)
local exchanges = call_flags % (2 * EXCHANGES) == EXCHANGES
local first_record = exchanges and 4 or 1

-- The current report.
local id, event_interval, units, total_units, refused, age
local results, ban_events, exhausted_events = {}, { ARGV[2] }, {}

-- === Reports ===

local function load_report()
  id, algorithm, flags, bans, limit, period, capacity, event_interval, position =
    unpack_from('<c24BBBI4I6I4I7', packed, position)
  units, refused, age, slices, position = unpack_from('<I5I5I6I2', packed, position)
  total_units = 0
  if algorithm >= SHARE then
    ratio, total_units, position = unpack_from('<I2I5', packed, position)
  end
  ban_lengths, position = position, position + 6 * bans
  patience, max_wait = 0, NEVER
end

local function count_bits(map)
  local count = 0
  for number = 1, #map do
    local byte = map:byte(number)
    while byte > 0 do
      count, byte = count + byte % 2, floor(byte / 2)
    end
  end
  return count
end

-- Sets the bit of this node. Returns the window, the map, the number of bits in the window before, and the time of the
-- last event.
local function mark_active()
  local window = floor(now / period)
  local marked, map, previous, announced = unpack_from('<I6c16BI7', nodes or no_nodes)
  if marked ~= window then
    previous = marked + 1 == window and count_bits(map) or 0
    map = ('\0'):rep(16)
  end
  local index = floor(node_bit / 8) + 1
  local byte = bit.bor(map:byte(index), 2 ^ (node_bit % 8))
  map = map:sub(1, index - 1) .. string.char(byte) .. map:sub(index + 1)
  return window, map, previous, announced
end

-- Charges the reported units, even above the limit. A bucket drains from the time when the oldest unit was admitted.
local function charge(record)
  if units + total_units == 0 then
    return nil
  end
  local shift = RECORD_BYTES[algorithm] == 12 and min(age, period) or 0
  local at, ban_count = now, bans
  op, cost, total_cost, now, bans = CHARGE, units, total_units, now - shift, 0
  local _, new_record, expiry, keeps_expiry = ALGORITHMS[algorithm](record)
  now, bans = at, ban_count
  -- Other nodes may report units of the same time, which share the drain.
  return new_record, max(expiry - shift, shift, 1), keeps_expiry
end

local function merge()
  local record, banned_until = read_record()
  if banned_until then
    results[#results + 1] = pack('<BI7I2', IS_BANNED, banned_until, max(1, offences))
    return
  end
  local window, map, previous, announced = mark_active()
  local new_record, expiry, keeps_expiry = charge(record)
  local counter = new_record or record
  op, cost, total_cost = PEEK, refused, refused
  ALGORITHMS[algorithm](counter)
  if not fits and bans > 0 then
    start_ban()
    results[#results + 1] = pack('<BI7I2', STARTED, now + delay, remaining)
    ban_events[#ban_events + 1] = pack('<BI2c24I7I7I2', BAN_EVENT, 40, id, now, now + delay, remaining)
    return
  end
  local active = max(count_bits(map), previous)
  local view = counter and string.char(algorithm) .. counter:sub(2) or ''
  local is_due = announced == 0 or announced > now or now - announced >= event_interval
  if not fits and counter and is_due and #exhausted_events < max_events then
    announced = now
    exhausted_events[#exhausted_events + 1] =
      pack('<BI2c24I7BI2', EXHAUSTED_EVENT, 34 + #view, id, now, active, #view) .. view
  end
  nodes = pack('<I6c16BI7', window, map, min(previous, 255), announced)
  if new_record then
    write_counter(new_record, expiry, keeps_expiry)
  elseif record then
    write_counter(record, max(reset, 1), true)
  end
  results[#results + 1] = pack('<BBI2', MERGED, active, #view) .. view
end

read_records(first_record, first_record + reports - 1)
for number = first_record, first_record + reports - 1 do
  key = KEYS[number]
  load_report()
  merge()
end

-- === Events ===

-- Runs a command on a key. Deletes the key first if it has another type.
local function on_own_type(name, command, ...)
  local reply = redis.pcall(command, name, ...)
  if type(reply) == 'table' and reply.err then
    if reply.err:find('WRONGTYPE') then
      call('DEL', name)
    end
    reply = call(command, name, ...)
  end
  return reply
end

-- A text with its length.
local function framed(text)
  return #text > 0 and pack('<I4', #text) .. text or ''
end

-- Appends events to a stream, and reads what follows `from`. Returns the entries, framed, and the new position.
local function exchange(stream, events, from, lifetime)
  if #events > 0 then
    local oldest = string.format('%.0f', max(0, floor(now / 1000) - lifetime - EXTRA_TTL))
    on_own_type(stream, 'XADD', 'MINID', '~', oldest, '*', 'e', events)
    call('XTRIM', stream, 'MAXLEN', '~', 10000)
    call('PEXPIRE', stream, lifetime + EXTRA_TTL)
  end
  local read = {}
  for number, entry in ipairs(on_own_type(stream, 'XRANGE', '(' .. from, '+', 'COUNT', 500)) do
    from, read[number] = entry[1], framed(entry[2][2])
  end
  return table.concat(read), from
end

-- How long events live, in milliseconds.
local BAN_EVENT_LIFETIME, EXHAUSTED_EVENT_LIFETIME = 600000, 10000
local ban_text, exhausted_text = table.concat(ban_events), ARGV[3] .. table.concat(exhausted_events)
local ban_position, exhausted_position, node_count = ARGV[4], ARGV[5], 0
if exchanges then
  local time = string.format('%.0f', now)
  if call_flags % (2 * LEAVES) >= LEAVES then
    on_own_type(KEYS[1], 'ZREM', node)
  else
    on_own_type(KEYS[1], 'ZADD', time, node)
  end
  call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - node_lifetime))
  -- A clock that was set back must not leave nodes behind.
  call('ZREMRANGEBYSCORE', KEYS[1], string.format('%.0f', now + node_lifetime), '+inf')
  call('PEXPIRE', KEYS[1], ceil(node_lifetime / 1000) + EXTRA_TTL)
  node_count = call('ZCARD', KEYS[1])
  if ban_position == '' then
    ban_position = '0'
  end
  if exhausted_position == '' then
    exhausted_position = string.format('%.0f', floor(now / 1000) - 1000)
  end
  ban_text, ban_position = exchange(KEYS[2], ban_text, ban_position, BAN_EVENT_LIFETIME)
  exhausted_text, exhausted_position =
    exchange(KEYS[3], exhausted_text, exhausted_position, EXHAUSTED_EVENT_LIFETIME)
else
  ban_text, exhausted_text = framed(ban_text), framed(exhausted_text)
end
return {
  pack('<I7I4', now, node_count) .. table.concat(results),
  ban_text,
  exhausted_text,
  ban_position,
  exhausted_position,
}
