-- Renews all leases of one replica and its own place among the members; members that fell silent are dropped.
-- KEYS  1 held back  2 roll call  3 members  4 excesses  5 epoch  6 which Redis it is of, then the pools that ARGV[4] names by number
-- ARGV  1 replica  2 lease ms  3 channel  4 [[lease, [pool]]]  5 [[limit, name, held]] of these pools
-- Gives { members, ms for which nothing is given out, epoch or '', leases that had lapsed… }.

local replica, lease_ms, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local now = now_ms()
local lost = {}
for _, lease in ipairs(cjson.decode(ARGV[4])) do
  local missing = false
  for _, pool in ipairs(lease[2]) do
    local lapses = redis.call('ZSCORE', KEYS[pool], lease[1])
    if not lapses or tonumber(lapses) <= now then missing = true end
    -- Even one that had lapsed: it is held, so it counts.
    occupy(KEYS[pool], lease[1], now + lease_ms, now)
  end
  if missing then table.insert(lost, lease[1]) end
end
answer_roll(KEYS[1], KEYS[2], replica)
local before = redis.call('ZCARD', KEYS[3])
redis.call('ZADD', KEYS[3], whole(now), replica)
-- Longer than the epoch, so that a roll call misses nobody.
keep(KEYS[3], 172800000)
local silent = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. whole(now - lease_ms * 4 / 3))
for _, gone in ipairs(silent) do
  redis.call('ZREM', KEYS[3], gone)
  redis.call('SREM', KEYS[2], gone)
  for _, field in ipairs(redis.call('HKEYS', KEYS[4])) do
    if string.sub(field, 1, #gone + 1) == gone .. '|' then redis.call('HDEL', KEYS[4], field) end
  end
  publish(channel, { t = 'gone', r = gone })
end
local count = redis.call('ZCARD', KEYS[3])
tell_excesses(KEYS[4], channel, replica, count, cjson.decode(ARGV[5]))
if count ~= before then publish(channel, { t = 'replicas', n = count }) end
local epoch = redis.call('GET', KEYS[5]) or ''
if epoch ~= '' then
  redis.call('PEXPIRE', KEYS[5], 86400000)
  redis.call('PEXPIRE', KEYS[6], 86400000)
end
local answer = { count, math.max(0, redis.call('PTTL', KEYS[1])), epoch }
for _, lease in ipairs(lost) do answer[#answer + 1] = lease end
return answer
