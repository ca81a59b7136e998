-- Adds to a sum that is kept in parts, and tells the others what was added.
-- KEYS  1 the sum
-- ARGV  1 part  2 amount  3 ms to keep it  4 channel  5 name  6 replica

local sum = redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
keep(KEYS[1], tonumber(ARGV[3]))
if redis.call('HLEN', KEYS[1]) > 250 then
  for _, part in ipairs(redis.call('HKEYS', KEYS[1])) do
    if tonumber(part) < ARGV[1] - ARGV[3] then redis.call('HDEL', KEYS[1], part) end
  end
end
publish(ARGV[4], { t = 'counted', k = ARGV[5], p = ARGV[1], n = tonumber(ARGV[2]), r = ARGV[6] })
return sum
