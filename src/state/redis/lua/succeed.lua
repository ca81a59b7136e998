-- A success: no streak, no rest. The number of the last rest is kept, so that an old probe's word never meets a new rest.
-- KEYS  1 streak  2 rest  3 quiet
-- ARGV  1 channel  2 name

local number = tonumber(redis.call('HGET', KEYS[1], 'no') or 0)
redis.call('DEL', KEYS[2], KEYS[3])
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'n', 0, 'total', 0, 'trial', '0')
end
publish(ARGV[1], { t = 'rest', k = ARGV[2], n = 0, no = number, total = 0, left = 0, quiet = 0, trial = false })
return 1
