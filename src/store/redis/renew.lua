-- Renews leases that have not expired. KEYS: their sorted sets. ARGV: the leases, in the same order.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local LEASE = 30000000
local EXTRA_TTL = 0
for number, key in ipairs(KEYS) do
  local ends = redis.pcall('ZSCORE', key, ARGV[number])
  if type(ends) == 'string' and tonumber(ends) > now then
    redis.call('ZADD', key, string.format('%.0f', now + LEASE), ARGV[number])
    redis.call('PEXPIRE', key, LEASE / 1000 + 1000 + EXTRA_TTL)
  end
end
return 'OK'
