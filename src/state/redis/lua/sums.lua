-- All that counts in quotas. A mark among the messages says which of them the answer knows of: those before it.
-- KEYS  1 held back  2 members, then sum and reserved of each quota in turn
-- ARGV  1 replica  2 lease ms  3 channel  4 [{ n: name, w: window }]  5 mark
-- Gives { now, ms for which nothing is given out, then for each quota { part, amount… } and { replica, tokens… } }.

local now = now_ms()
local result = { now, math.max(0, redis.call('PTTL', KEYS[1])) }
for i, quota in ipairs(cjson.decode(ARGV[4])) do
  local sum, reserved = KEYS[1 + i * 2], KEYS[2 + i * 2]
  total_reserved(sum, reserved, quota.w, ARGV[1], KEYS[2], tonumber(ARGV[2]), ARGV[3], quota.n, now)
  local flat = {}
  for _, part in ipairs(parts_in(sum, quota.w, now)) do
    table.insert(flat, part[1])
    table.insert(flat, part[2])
  end
  table.insert(result, flat)
  table.insert(result, redis.call('HGETALL', reserved))
end
publish(ARGV[3] .. ':' .. ARGV[1], { t = 'mark', n = tonumber(ARGV[5]) })
return result
