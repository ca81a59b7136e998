-- A replica ends in order: it is no member any more, and nothing stands in its name.
-- KEYS  1 roll call  2 members  3 excesses  4 held back
-- ARGV  1 replica  2 channel

local replica, channel = ARGV[1], ARGV[2]
answer_roll(KEYS[4], KEYS[1], replica)
redis.call('ZREM', KEYS[2], replica)
for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
  if string.sub(field, 1, #replica + 1) == replica .. '|' then redis.call('HDEL', KEYS[3], field) end
end
publish(channel, { t = 'gone', r = replica })
publish(channel, { t = 'replicas', n = math.max(1, redis.call('ZCARD', KEYS[2])) })
return 1
