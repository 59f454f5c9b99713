-- Adds a ban to the index of its rule, which is for listings only, or removes it. Drops bans that have ended.
--
-- KEYS     the sorted set of the rule's bans by their end, and the hash of what is known of each
-- ARGV[1]  the time, in milliseconds
-- ARGV[2]  the hash of the key
-- ARGV[3]  the end of the ban, in milliseconds; 0 removes the ban
-- ARGV[4]  what is known of the ban, packed by ban_index.rs
local call = redis.call
local ends, known, now, id, until_end = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local MAX_BANS, MAX_TRIMMED = 250000, 100

local function drop(ids)
  for _, gone in ipairs(ids) do
    call('ZREM', ends, gone)
    call('HDEL', known, gone)
  end
end

-- Deletes a key of another type.
local function heal(command, name, ...)
  local reply = redis.pcall(command, name, ...)
  if type(reply) == 'table' and reply.err then
    call('DEL', name)
  end
end

heal('ZCARD', ends)
heal('HGET', known, id)
drop(call('ZRANGE', ends, '-inf', ARGV[1], 'BYSCORE', 'LIMIT', '0', MAX_TRIMMED))
if until_end == 0 then
  drop({ id })
  return
end
if call('ZCARD', ends) >= MAX_BANS then
  drop(call('ZRANGE', ends, '0', '0'))
end
local ttl = string.format('%.0f', until_end - now)
call('ZADD', ends, ARGV[3], id)
call('HSET', known, id, ARGV[4])
for _, name in ipairs(KEYS) do
  -- NX for a new key, which has no expiry; GT for any other.
  call('PEXPIRE', name, ttl, 'NX')
  call('PEXPIRE', name, ttl, 'GT')
end
