-- Applies the plan of one request atomically: its steps in order until one ends evaluation. The text of limiters.lua
-- precedes this one.
--
-- KEYS     the record of each step that has one, in step order; then the lists and sorted sets, in step order
-- ARGV[1]  the plan, packed by encode.rs
-- returns  the results, packed; decode.rs reads them. Only the time if the deadline has passed: nothing was done.
local plan = ARGV[1]
local deadline, has_ended, record_keys, position = unpack_from('<I7BI2', plan)
if deadline > 0 and now > deadline then
  return pack('<I7', now)
end

local CHECK_BAN, ALWAYS = 3, 4
-- The flags of a step.
local MITIGATES, TERMINAL, PEEK_AFTER_END, ESCALATES = 1, 2, 4, 8
-- A record starts with its algorithm. A suffix with past offences adds 64. A ban has 128.
local HAS_OFFENCES, BANNED = 64, 128
local DAY = 86400000000
-- A result's status, and what it can have.
local WITHIN, OVER, IS_BANNED, STARTED = 0, 1, 2, 3
local CHARGED, HAS_READING, FITS = 16, 32, 64

-- The current step.
local flags, ban_lengths, key, offences, forget_at

-- === Records ===

local records = {}
for first = 1, record_keys, 1000 do
  local last = min(first + 999, record_keys)
  local values = call('MGET', unpack(KEYS, first, last))
  for number = first, last do
    records[KEYS[number]] = values[number - first + 1]
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

local function write_counter(record, ttl, keeps_expiry)
  if offences > 0 then
    record = string.char(algorithm + HAS_OFFENCES) .. record:sub(2) .. pack('<I2I7', offences, forget_at)
    ttl, keeps_expiry = max(ttl, forget_at - now), false
  end
  if ttl > 0 then
    write(record, ttl, keeps_expiry)
  end
end

-- Reads the record of the key. Returns the counter's part, or nil, and the end of a ban that is in force, or nil.
local function read_record()
  offences, forget_at = 0, 0
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
  elseif kind >= HAS_OFFENCES and kind < BANNED and #record > 10 then
    offences, forget_at = unpack_from('<I2I7', record, #record - 8)
    kind, record = kind - HAS_OFFENCES, record:sub(1, -10)
  end
  if forget_at <= now then
    offences = 0
  end
  local bytes = algorithm == SLICES and 13 + 4 * (slices + 1) or RECORD_BYTES[algorithm]
  if kind ~= algorithm or not record or #record ~= bytes then
    return nil
  end
  return record
end

-- Bans the key and clears its counter. Leases stay: their requests are in flight.
local function start_ban()
  local escalates = flags % (2 * ESCALATES) >= ESCALATES
  local which = escalates and min(offences + 1, bans) or 1
  local length = unpack_from('<I6', plan, ban_lengths + 6 * (which - 1))
  local count = escalates and min(offences + 1, 65535) or 0
  write(pack('<BI7I2', BANNED, now + length, count), length + (escalates and DAY or 0))
  if algorithm == SLIDING_LOG then
    call('DEL', extra_key)
  end
  fits, remaining, reset, delay = false, max(1, count), length, length
end

-- === Steps ===

local steps, results = {}, { pack('<I7', now) }

-- Reads the step at `position` of the plan.
local function load_step(at)
  position = at
  op, algorithm, flags, bans, limit, period, cost, capacity, position =
    unpack_from('<BBBBI4I6I5I4', plan, position)
  patience, max_wait, position = unpack_from('<I7I7', plan, position)
  if algorithm == SLICES then
    slices, position = unpack_from('<I2', plan, position)
  elseif algorithm == CONCURRENCY then
    lease, position = unpack_from('c8', plan, position)
  end
  ban_lengths, position = position, position + 6 * bans
end

local function add_result(number, status)
  results[#results + 1] = pack('<I2BI5I7I7', number, status, remaining, min(reset, NEVER), min(delay, NEVER))
end

-- Runs the current step. Returns whether its key is within the limit.
local function run(number, original_op)
  remaining, reset, delay = 0, 0, 0
  if op == ALWAYS then
    add_result(number, OVER)
    return false
  end
  local record, banned_until = read_record()
  if banned_until then
    remaining, reset, delay = max(1, offences), banned_until - now, banned_until - now
    add_result(number, IS_BANNED)
    return false
  end
  if op == CHECK_BAN then
    add_result(number, WITHIN)
    return true
  end
  local charged, new_record, expiry, keeps_expiry = ALGORITHMS[algorithm](record)
  if not fits and bans > 0 and op < PEEK then
    start_ban()
    add_result(number, STARTED + HAS_READING)
    return false
  end
  if new_record then
    write_counter(new_record, expiry, keeps_expiry)
  end
  -- A ban rule mitigates a key only while it is banned.
  local is_within = fits or original_op == PEEK and bans > 0
  add_result(number, (is_within and WITHIN or OVER) + HAS_READING + (charged and CHARGED or 0) + (fits and FITS or 0))
  return is_within
end

local next_record, next_extra, number = 1, record_keys + 1, 0
local filled, ended = {}, has_ended == 1
while position <= #plan do
  local start = position
  load_step(start)
  if op ~= ALWAYS then
    key, next_record = KEYS[next_record], next_record + 1
  end
  if algorithm == SLIDING_LOG or algorithm == CONCURRENCY then
    extra_key, next_extra = KEYS[next_extra], next_extra + 1
  end
  local is_peeked = flags % (2 * PEEK_AFTER_END) >= PEEK_AFTER_END
  local original_op = op
  if not ended then
    local is_within = run(number, original_op)
    if is_within and is_peeked and op == ADMIT and algorithm ~= CONCURRENCY and remaining < cost then
      filled[#filled + 1] = { number, start, key, extra_key }
    end
    ended = not is_within and flags % (2 * TERMINAL) == MITIGATES + TERMINAL
  elseif is_peeked then
    op = op < PEEK and PEEK or op
    run(number, original_op)
  end
  number = number + 1
end

-- The steps that this request has filled up: a retry would find them full.
if ended then
  for _, step in ipairs(filled) do
    load_step(step[2])
    key, extra_key, op = step[3], step[4], PEEK
    run(step[1], ADMIT)
  end
end
return table.concat(results)
