-- Renews a lease that has not expired. KEYS: its sorted set. ARGV: the lease, and '1' if it is added again when it is
-- gone. Returns 1 if the lease is in the set now.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local LEASE = 30000000
local EXTRA_TTL = 0
local key, lease = KEYS[1], ARGV[1]
local ends = redis.pcall('ZSCORE', key, lease)
local is_held = type(ends) == 'string' and tonumber(ends) > now
if is_held or (ends == false and ARGV[2] == '1') then
  redis.call('ZADD', key, string.format('%.0f', now + LEASE), lease)
  redis.call('PEXPIRE', key, LEASE / 1000 + 1000 + EXTRA_TTL)
  return 1
end
return 0
