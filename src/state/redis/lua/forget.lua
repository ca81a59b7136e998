-- Takes back what a replica no longer waits for.
-- KEYS  waits and pools in turn
-- ARGV  1 replica  2 channel  3 [[limit, name]]

local replica, channel = ARGV[1], ARGV[2]
local now = now_ms()
for i, pool in ipairs(cjson.decode(ARGV[3])) do
  local waits, key = KEYS[i * 2 - 1], KEYS[i * 2]
  redis.call('ZREM', waits, replica)
  if redis.call('ZREM', key, 'r:' .. replica) == 1 then
    hand_on(key, waits, pool[1], 0, channel, pool[2], now)
  end
end
return 1
