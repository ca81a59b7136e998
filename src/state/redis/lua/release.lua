-- Gives a lease back, after a pause or at once, and hands each freed place on. Also a place that was kept for a replica
-- which does not need it any more: its name is then r:<replica>. Twice is as good as once.
-- KEYS  1 members  2 excesses, then pool and waits in turn
-- ARGV  1 replica  2 lease  3 pause ms  4 lease ms  5 channel  6 [[limit, held after, name]]

local replica, lease, pause, lease_ms, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local now = now_ms()
local count = replica_count(KEYS[1], lease_ms, now)
for i, pool in ipairs(cjson.decode(ARGV[6])) do
  local key, waits = KEYS[1 + i * 2], KEYS[2 + i * 2]
  local limit, held, name = pool[1], pool[2], pool[3]
  if redis.call('ZREM', key, lease) == 1 then
    if string.sub(lease, 1, 2) ~= 'r:' then
      tell_excess(KEYS[2], channel, replica, name, math.floor(limit / count), held + 1, held)
    end
    if pause > 0 then occupy(key, 's:' .. lease, now + pause, now) end
    hand_on(key, waits, limit, pause, channel, name, now)
  end
end
return 1
