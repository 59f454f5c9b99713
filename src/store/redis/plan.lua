-- Applies the plan of one request atomically: its steps in order until one ends evaluation. The texts of limiters.lua
-- and records.lua precede this one.
--
-- KEYS     the record of each step that has one, in step order; then the lists and sorted sets, in step order
-- ARGV[1]  the plan, packed by encode.rs
-- returns  the results, packed; decode.rs reads them. Only the time if the deadline has passed: nothing was done.
local plan = ARGV[1]
packed = plan
local deadline, has_ended, record_keys, position = unpack_from('<I7BI2', plan)
if deadline > 0 and now > deadline then
  return pack('<I7', now)
end

local CHECK_BAN, ALWAYS = 3, 4
-- The flags of a step. ONLY_TOTAL: the request does not match `count`.
local MITIGATES, TERMINAL, PEEK_AFTER_END, ONLY_TOTAL = 1, 2, 4, 16
-- A result's status, and what it can have.
local WITHIN, OVER, IS_BANNED, STARTED = 0, 1, 2, 3
local CHARGED, HAS_READING, FITS, HAS_SHARE = 16, 32, 64, 128

read_records(1, record_keys)

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
  elseif algorithm >= SHARE then
    ratio, position = unpack_from('<I2', plan, position)
    total_cost = cost
    if flags % (2 * ONLY_TOTAL) >= ONLY_TOTAL then
      cost = 0
    end
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
  nodes = nil
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
  local status = (is_within and WITHIN or OVER) + HAS_READING + (charged and CHARGED or 0) + (fits and FITS or 0)
  if algorithm < SHARE then
    add_result(number, status)
  else
    add_result(number, status + HAS_SHARE)
    results[#results + 1] = pack('<I4I4', units_of_count, units_of_total)
  end
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
    if is_within and is_peeked and op == ADMIT and algorithm < CONCURRENCY and remaining < cost then
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
