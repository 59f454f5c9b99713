-- The algorithms in Lua, for every script that counts. Rust puts this text before a script's own.
--
-- Each algorithm computes what its Rust counterpart in src/limit computes, in whole numbers below 2^53. Times are
-- microseconds. `now` is the server's time.
local call, pack, unpack_from = redis.call, struct.pack, struct.unpack
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local ADMIT, CHARGE, PEEK = 0, 1, 2
local LEAKY_BUCKET, SLICES, SLIDING_LOG, CONCURRENCY = 4, 5, 6, 7
-- The algorithms from SHARE on have a ratio: in sliding windows, and in fixed windows.
local SHARE, FIXED_SHARE, WHOLE = 8, 9, 10000
-- From 2^53 on, whole numbers are not exact. As a time it means never.
local NEVER = 9007199254740992
local MAX_COUNT, MAX_LEVEL = 4294967295, 8589934591
local CLOCK_SKEW, LEASE, RETRY_HINT = 10000000, 30000000, 1000000
-- The longest expiry, in milliseconds: 400 days.
local LONGEST_TTL = 34560000000
-- Tests with a clock of their own keep records for longer, in milliseconds.
local EXTRA_TTL = 0

-- The current step.
local op, algorithm, bans, limit, period, cost, capacity
local patience, max_wait, slices, lease, extra_key
-- With a ratio: the cost in the total, and the ratio in 1/10,000.
local total_cost, ratio
-- Its reading.
local fits, remaining, reset, delay
-- With a ratio: the units of `count` and of `total`, rounded up.
local units_of_count, units_of_total

-- === Arithmetic ===

-- a * b / c rounded down, and the remainder. Exact for a < 2^48, b and c <= 2^45.
local function divide(a, b, c)
  local product = a * b
  if product < NEVER then
    local quotient = floor(product / c)
    return quotient, product - quotient * c
  end
  local quotient, rest, weight = 0, 0, 1099511627776
  while weight >= 1 do
    local digit = floor(a / weight)
    a = a - digit * weight
    local old, new = rest * 256, digit * b
    local of_old, of_new = floor(old / c), floor(new / c)
    rest = old - of_old * c + new - of_new * c
    quotient = quotient * 256 + of_old + of_new
    if rest >= c then
      rest, quotient = rest - c, quotient + 1
    end
    weight = weight / 256
  end
  return quotient, rest
end

local function divide_up(a, b, c)
  local quotient, rest = divide(a, b, c)
  return rest > 0 and quotient + 1 or quotient
end

-- Whether a clock that is this far behind a record was set back, and not just read earlier elsewhere.
local function was_set(ahead)
  return ahead > max(period, CLOCK_SKEW)
end

-- The time into a window after which `count` of the previous window weighs at most `room`.
local function faded_to(count, room)
  if count <= room then
    return 0
  end
  return period - (divide(room, period, count))
end

-- Whether the step charges its cost. `turn` is the time until the turn of a request that does not fit.
local function charges(turn)
  if not fits and bans > 0 then
    return false
  end
  return op == CHARGE or op == ADMIT and (fits or patience > 0 and turn <= patience)
end

-- Whether the reading shows the counter after the charge. A request that waits sees it before.
local function shows_charge(charged)
  return charged and (fits or op == CHARGE)
end

-- === Algorithms ===
-- Each sets the reading. Each returns whether it charged the cost, the new record or nil, the time until that
-- record is empty, and whether the record's expiry stays as it is.

local function window_wait(previous, current, elapsed, ahead)
  local room = limit - cost
  if room < 0 then
    return NEVER
  end
  if room >= current then
    return ahead + max(0, faded_to(previous, room - current) - elapsed)
  end
  return ahead + period - elapsed + faded_to(current, room)
end

local function window_reset(previous, current, elapsed, ahead)
  local rest = ahead + period - elapsed
  return current > 0 and rest + period or previous > 0 and rest or 0
end

local function sliding_window(record)
  local index = floor(now / period)
  local elapsed, ahead, previous, current = now - index * period, 0, 0, 0
  local keeps_expiry, rebased = false, false
  if record then
    local window, older, newer = unpack_from('<I6I4I4', record, 2)
    local age = index - window
    if age == 0 then
      previous, current, keeps_expiry = older, newer, newer > 0
    elseif age == 1 then
      previous = newer
    elseif age < 0 and older + newer > 0 then
      previous, current = older, newer
      local wait = window * period - now
      if was_set(wait) then
        rebased = true
      else
        index, elapsed, ahead = window, 0, wait
      end
    end
  end
  local faded = previous == 0 and 0 or divide_up(previous, period - elapsed, period)
  fits = current + faded + cost <= limit
  delay = fits and 0 or window_wait(previous, current, elapsed, ahead)
  local charged, after = charges(delay), current
  if charged then
    after = min(current + cost, MAX_COUNT)
    if shows_charge(charged) then
      current = after
      delay = fits and 0 or window_wait(previous, current, elapsed, ahead)
    end
  end
  remaining = max(0, limit - current - faded)
  reset = window_reset(previous, current, elapsed, ahead)
  if charged or rebased and not fits then
    local expiry = window_reset(previous, after, elapsed, ahead)
    return charged, pack('<BI6I4I4', 1, index, previous, after), expiry, keeps_expiry
  end
  return charged
end

local function fixed_window(record)
  local index = floor(now / period)
  local rest, count, keeps_expiry, rebased = period - (now - index * period), 0, false, false
  if record then
    local window, stored = unpack_from('<I6I4', record, 2)
    if stored > 0 and window >= index then
      count = stored
      local ahead = window == index and 0 or window * period - now
      if ahead > 0 and was_set(ahead) then
        rebased = true
      elseif ahead > 0 then
        index, rest = window, ahead + period
      else
        keeps_expiry = true
      end
    end
  end
  fits = count + cost <= limit
  delay = fits and 0 or cost <= limit and rest or NEVER
  local charged, after = charges(delay), count
  if charged then
    after = min(count + cost, MAX_COUNT)
    if shows_charge(charged) then
      count = after
    end
  end
  remaining = max(0, limit - count)
  reset = count > 0 and rest or 0
  if charged or rebased and not fits then
    return charged, pack('<BI6I4', 2, index, after), after > 0 and rest or 0, keeps_expiry
  end
  return charged
end

-- A rule with a ratio: a count and a total with common windows. The units of the window before, and of this one. The
-- total is never less than the count. A fixed window has no units of the window before.
local function share(record)
  local index = floor(now / period)
  local elapsed, ahead, older, newer, older_total, newer_total = now - index * period, 0, 0, 0, 0, 0
  local is_fixed, keeps_expiry, rebased = algorithm == FIXED_SHARE, false, false
  if record then
    local window, first, second, first_total, second_total = unpack_from('<I6I4I4I4I4', record, 2)
    local age = index - window
    if age == 0 or age < 0 and first_total + second_total > 0 then
      older, newer, older_total, newer_total = first, second, first_total, second_total
      local wait = age < 0 and window * period - now or 0
      keeps_expiry = age == 0 and newer_total > 0
      if was_set(wait) then
        rebased = true
      elseif age < 0 then
        index, elapsed, ahead = window, 0, wait
      end
    elseif age == 1 and not is_fixed then
      older, older_total = second, second_total
    end
  end
  local faded = older == 0 and 0 or divide_up(older, period - elapsed, period)
  local faded_total = older_total == 0 and 0 or divide_up(older_total, period - elapsed, period)
  local count, total = newer + faded + cost, newer_total + faded_total + total_cost
  fits = count <= limit or WHOLE * count <= ratio * total
  delay = fits and 0 or NEVER
  local charged = charges(delay)
  if charged then
    newer, newer_total = min(newer + cost, MAX_COUNT), min(newer_total + total_cost, MAX_COUNT)
  end
  units_of_count, units_of_total = min(newer + faded, MAX_COUNT), min(newer_total + faded_total, MAX_COUNT)
  remaining = max(0, limit - units_of_count)
  reset = window_reset(is_fixed and 0 or older_total, newer_total, elapsed, ahead)
  if is_fixed then
    reset = max(0, reset - period)
  end
  if charged or rebased then
    local state = pack('<BI6I4I4I4I4', algorithm, index, older, newer, older_total, newer_total)
    return charged, state, reset, keeps_expiry
  end
  return charged
end

-- The time until `surplus` units have drained, of which `elapsed` has passed.
local function drain_time(surplus, elapsed)
  if surplus <= 0 then
    return 0
  elseif limit == 0 then
    return NEVER
  end
  return min(NEVER, max(0, divide_up(surplus, period, limit) - elapsed))
end

local function later(wait, ahead)
  return (wait == 0 or wait == NEVER) and wait or wait + ahead
end

-- The time until a cost fits that does not fit now.
local function bucket_wait(used, elapsed, ahead, is_queue)
  local room = capacity - cost
  if room < 0 then
    return NEVER
  end
  local wait = later(drain_time(used - room, elapsed), ahead)
  if is_queue then
    local turn = drain_time(used, elapsed)
    wait = turn == NEVER and NEVER or max(wait, later(max(0, turn - max_wait), ahead))
  end
  return wait
end

-- token_bucket, gcra and leaky_bucket: units that drain evenly, and the time from which they drain.
local function bucket(record)
  local is_queue = algorithm == LEAKY_BUCKET
  local at, used, elapsed, drained, ahead, rebased = now, 0, 0, 0, 0, false
  if record then
    local high, low = unpack_from('<I6I5', record, 2)
    at, used = high * 32 + low % 32, floor(low / 32)
    if used == 0 then
      at = now
    elseif now < at then
      ahead = at - now
      if was_set(ahead) then
        at, ahead, rebased = now, 0, true
      end
    else
      local periods = floor((now - at) / period)
      used, at = max(0, used - periods * limit), at + periods * period
      elapsed = now - at
      drained = used == 0 and 0 or (divide(limit, elapsed, period))
      if drained >= used then
        at, used, elapsed, drained = now, 0, 0, 0
      end
    end
  end
  local wait = drain_time(used, elapsed)
  fits = used - drained + cost <= capacity and not (is_queue and wait > max_wait)
  delay = fits and (is_queue and wait or 0) or bucket_wait(used, elapsed, ahead, is_queue)
  reset = later(wait, ahead)
  local charged, after = charges(is_queue and delay ~= NEVER and reset or delay), used
  if charged then
    after = min(used + cost, MAX_LEVEL)
    if shows_charge(charged) then
      used = after
      reset = later(drain_time(used, elapsed), ahead)
      delay = fits and delay or bucket_wait(used, elapsed, ahead, is_queue)
    end
  end
  remaining = max(0, capacity - (used - drained))
  if is_queue and max_wait < NEVER then
    local turns = divide(limit, max_wait + elapsed, period) + 1
    remaining = min(remaining, max(0, turns - used))
  end
  if charged or rebased and not fits then
    local state = pack('<BI6I5', algorithm, floor(at / 32), after * 32 + at % 32)
    return charged, state, later(drain_time(after, elapsed), ahead), false
  end
  return charged
end

-- sliding_window with `slices`: the number of the newest slice, the sum, and all counts from the oldest on.
local function sub_windows(record)
  local window = floor(now / period)
  local slice, passed = divide(now - window * period, slices, period)
  local index, behind, total, counts, rebased = window * slices + slice, 0, 0, nil, false
  local zeros = '\0\0\0\0'
  if record then
    local newest
    newest, total = unpack_from('<I7I5', record, 2)
    counts = record:sub(14)
    if total > 0 and index > newest then
      local turns = min(index - newest, slices + 1)
      for turn = 0, turns - 1 do
        total = total - unpack_from('<I4', counts, 4 * turn + 1)
      end
      counts = counts:sub(4 * turns + 1) .. zeros:rep(turns)
    elseif total > 0 and index < newest then
      local whole, rest = divide(newest - index, period, slices)
      rebased = was_set(whole + ceil((rest - passed) / slices))
      if not rebased then
        index, behind = newest, newest - index
      end
    end
  end
  if total <= 0 or not counts then
    total, counts = 0, zeros:rep(slices + 1)
  end
  local function count(age)
    return (unpack_from('<I4', counts, 4 * (slices - age) + 1))
  end
  local function until_slice(turns, into)
    local whole, rest = divide(turns + behind, period, slices)
    return max(0, whole + ceil((rest + into - passed) / slices))
  end
  local function wait()
    local room, whole = limit - cost, total
    if room < 0 then
      return NEVER
    end
    for turns = 0, slices do
      local oldest = count(slices - turns)
      whole = whole - oldest
      if whole <= room then
        return until_slice(turns, faded_to(oldest, room - whole))
      end
    end
    return NEVER
  end
  local function until_empty()
    for age = 0, slices do
      if count(age) > 0 then
        return until_slice(slices + 1 - age, 0)
      end
    end
    return 0
  end
  local oldest = count(slices)
  local faded = divide_up(oldest, behind == 0 and period - passed or period, period)
  fits = total - oldest + faded + cost <= limit
  delay = fits and 0 or wait()
  local charged, keeps_expiry = charges(delay), false
  if not shows_charge(charged) then
    remaining, reset = max(0, limit - total + oldest - faded), until_empty()
  end
  if charged then
    local newest = count(0)
    local sum = min(newest + cost, MAX_COUNT)
    keeps_expiry = newest > 0 and behind == 0 and not rebased
    total, counts = total + sum - newest, counts:sub(1, -5) .. pack('<I4', sum)
    if shows_charge(charged) then
      remaining, reset = max(0, limit - total + oldest - faded), until_empty()
      delay = fits and 0 or wait()
    end
  end
  if charged or rebased and not fits then
    return charged, pack('<BI7I5', SLICES, index, total) .. counts, until_empty(), keeps_expiry
  end
  return charged
end

-- Reads the entries `first` to `last` of a log: a list of times, each with its units if these are not 1.
local function log_entries(first, last)
  local entries = redis.pcall('LRANGE', extra_key, first, last)
  if entries.err then
    call('DEL', extra_key)
    return {}
  end
  for number, entry in ipairs(entries) do
    local at, units = entry:match('^(%d+):?(%d*)$')
    entries[number] = { tonumber(at) or 0, tonumber(units) or 1 }
  end
  return entries
end

-- Calls `visit` with the oldest entries until it returns true.
local function each_log_entry(visit)
  local first = 0
  repeat
    local entries = log_entries(first, first + 31)
    for _, entry in ipairs(entries) do
      if visit(entry[1], entry[2]) then
        return
      end
    end
    first = first + #entries
  until #entries < 32
end

local function log_entry(at, units)
  return string.format(units == 1 and '%.0f' or '%.0f:%.0f', at, units)
end

-- sliding_log: the time of every unit in a list. The record has the latest time, the sum of the units, and by how
-- much the times in the list are ahead of the clock, because it was set back.
local function sliding_log(record)
  local at, total, shift, changed = now, 0, 0, false
  if record then
    at, total, shift = unpack_from('<I7I5I7', record, 2)
  end
  local function drop(surplus)
    local dropped, rest = 0, nil
    each_log_entry(function(entry_at, units)
      local gone = surplus and min(surplus, units) or at - (entry_at - shift) >= period and units or 0
      total, surplus = total - gone, surplus and surplus - gone
      if gone < units then
        rest = gone > 0 and log_entry(entry_at, units - gone)
        return true
      end
      dropped = dropped + 1
    end)
    if dropped > 0 then
      call('LTRIM', extra_key, dropped, -1)
    end
    if rest then
      call('LSET', extra_key, 0, rest)
    end
    changed = changed or dropped > 0 or rest
  end
  if total == 0 or now >= at then
    at = now
    if total > 0 then
      drop()
    end
  elseif was_set(at - now) then
    shift, at, changed = shift + at - now, now, true
  end
  local newest = total > 0 and log_entries(-1, -1)[1]
  if not newest then
    total, shift, newest = 0, 0, { now - period, 0 }
  end
  local function wait()
    local left, found = total, nil
    if cost > limit then
      return NEVER
    end
    each_log_entry(function(entry_at, units)
      left = left - units
      found = left <= limit - cost and entry_at
      return found
    end)
    return found and max(0, found - shift + period - now) or NEVER
  end
  fits = total + cost <= limit
  delay = fits and 0 or wait()
  reset = max(0, newest[1] - shift + period - now)
  remaining = max(0, limit - total)
  local charged = charges(delay)
  local expiry = reset
  if charged then
    local units = min(cost, limit + 1)
    if total == 0 then
      call('DEL', extra_key)
    end
    if units > 0 then
      call('RPUSH', extra_key, log_entry(at + shift, units))
      total = total + units
      expiry = at + period - now
    end
    if total > limit + 1 then
      drop(total - limit - 1)
    end
    if shows_charge(charged) then
      remaining, reset = max(0, limit - total), expiry
      delay = fits and 0 or wait()
    end
  end
  if not charged and not changed then
    return false
  end
  if expiry > 0 then
    call('PEXPIRE', extra_key, min(LONGEST_TTL, ceil(expiry / 1000)) + EXTRA_TTL)
  end
  return charged, pack('<BI7I5I7', SLIDING_LOG, at, total, shift), expiry, false
end

-- concurrency: a sorted set of leases with their expiry. A lease of one unit is its id; of another number of units,
-- its id and the number, and then the set has the mark 'units'.
local function concurrency()
  local expired = redis.pcall('ZREMRANGEBYSCORE', extra_key, '-inf', string.format('%.0f', now))
  if type(expired) == 'table' then
    call('DEL', extra_key)
  end
  local member = cost == 1 and lease or lease .. pack('<I5', min(cost, MAX_COUNT + 1))
  if op < PEEK then
    call('ZREM', extra_key, member)
  end
  local total, leases = call('ZCARD', extra_key), nil
  leases = total
  if call('ZSCORE', extra_key, 'units') then
    total, leases = 0, leases - 1
    for _, held in ipairs(call('ZRANGE', extra_key, 0, -1)) do
      total = total + (#held == 13 and unpack_from('<I5', held, 9) or #held == 8 and 1 or 0)
    end
  end
  fits = total + cost <= limit
  delay = fits and 0 or cost <= limit and RETRY_HINT or NEVER
  local charged = charges(delay)
  if charged then
    call('ZADD', extra_key, string.format('%.0f', now + LEASE), member)
    if cost ~= 1 then
      call('ZADD', extra_key, 'inf', 'units')
    end
    call('PEXPIRE', extra_key, LEASE / 1000 + 1000 + EXTRA_TTL)
    if shows_charge(charged) then
      total, leases = total + min(cost, MAX_COUNT + 1), leases + 1
    end
  end
  remaining, reset = max(0, limit - total), leases > 0 and LEASE or 0
  return charged
end

local ALGORITHMS = { sliding_window, fixed_window, bucket, bucket, sub_windows, sliding_log, concurrency, share, share }
local RECORD_BYTES = { 15, 11, 12, 12, 0, 20, 0, 23, 23 }
