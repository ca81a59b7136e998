-- Something stays so for some time, at least; 0 ms = it is over.
-- KEYS  1 the fact
-- ARGV  1 ms  2 channel  3 name  4 replica

local ms = tonumber(ARGV[1])
local left = 0
if ms > 0 then
  left = math.max(ms, redis.call('PTTL', KEYS[1]))
  redis.call('SET', KEYS[1], '1', 'PX', whole(left))
else
  redis.call('DEL', KEYS[1])
end
publish(ARGV[2], { t = 'held', k = ARGV[3], left = left, r = ARGV[4] })
return left
