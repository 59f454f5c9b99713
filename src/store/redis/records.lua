-- The record of a key, for every script that counts: a counter or a ban. Rust puts this text between limiters.lua and a
-- script's own text.
--
-- A record is its algorithm, the counter, then optional parts: what async mode knows of the nodes, and past offences.
-- A ban replaces the whole record.

-- The first byte is the algorithm. A part with nodes adds 32. A part with past offences adds 64. A ban has 128.
local HAS_NODES, HAS_OFFENCES, BANNED = 32, 64, 128
local NODES_BYTES, OFFENCES_BYTES = 30, 9
local DAY = 86400000000
-- A flag of a step: every offence has a ban length of its own.
local ESCALATES = 8

-- The records of all keys of the call, and the current key.
local records, key = {}, nil
-- The flags of the current step, and the packed lengths of its bans.
local flags, packed, ban_lengths
-- The other parts of the current record. `nodes` is nil if the record has none.
local nodes, offences, forget_at

-- Reads the records KEYS[first] to KEYS[last].
local function read_records(first, last)
  for start = first, last, 1000 do
    local stop = min(start + 999, last)
    local values = call('MGET', unpack(KEYS, start, stop))
    for number = start, stop do
      records[KEYS[number]] = values[number - start + 1]
    end
  end
end

local function write(record, ttl, keeps_expiry)
  records[key] = record
  if keeps_expiry then
    call('SET', key, record, 'KEEPTTL')
  else
    call('SET', key, record, 'PX', max(1, min(LONGEST_TTL, ceil(ttl / 1000))) + EXTRA_TTL)
  end
end

-- Writes a counter with the other parts of its record.
local function write_counter(record, ttl, keeps_expiry)
  local kind, parts = algorithm, ''
  if nodes then
    kind, parts = kind + HAS_NODES, nodes
  end
  if offences > 0 then
    kind, parts = kind + HAS_OFFENCES, parts .. pack('<I2I7', offences, forget_at)
    ttl, keeps_expiry = max(ttl, forget_at - now), false
  end
  if kind ~= algorithm then
    record = string.char(kind) .. record:sub(2) .. parts
  end
  if ttl > 0 then
    write(record, ttl, keeps_expiry)
  end
end

-- Reads the record of the key. Returns the counter's part, or nil, and the end of a ban that is in force, or nil.
local function read_record()
  nodes, offences, forget_at = nil, 0, 0
  local record = records[key]
  local kind = record and record:byte(1)
  if not kind then
    return nil
  end
  if kind == BANNED and #record == 10 then
    local ends
    ends, offences = unpack_from('<I7I2', record, 2)
    if ends > now then
      return nil, ends
    end
    forget_at, record = ends + DAY, nil
  elseif kind >= HAS_NODES and kind < BANNED then
    if kind >= HAS_OFFENCES and #record > OFFENCES_BYTES then
      offences, forget_at = unpack_from('<I2I7', record, #record - OFFENCES_BYTES + 1)
      kind, record = kind - HAS_OFFENCES, record:sub(1, -OFFENCES_BYTES - 1)
    end
    if kind >= HAS_NODES and #record > NODES_BYTES then
      nodes = record:sub(-NODES_BYTES)
      kind, record = kind - HAS_NODES, record:sub(1, -NODES_BYTES - 1)
    end
  end
  if forget_at <= now then
    offences = 0
  end
  local bytes = algorithm == SLICES and 13 + 4 * (slices + 1) or RECORD_BYTES[algorithm]
  if kind ~= algorithm or not record or #record ~= bytes then
    nodes = nil
    return nil
  end
  return record
end

-- Bans the key and clears its counter. Leases stay: their requests are in flight.
local function start_ban()
  local escalates = flags % (2 * ESCALATES) >= ESCALATES
  local which = escalates and min(offences + 1, bans) or 1
  local length = unpack_from('<I6', packed, ban_lengths + 6 * (which - 1))
  local count = escalates and min(offences + 1, 65535) or 0
  write(pack('<BI7I2', BANNED, now + length, count), length + (escalates and DAY or 0))
  if algorithm == SLIDING_LOG then
    call('DEL', extra_key)
  end
  fits, remaining, reset, delay = false, max(1, count), length, length
end
