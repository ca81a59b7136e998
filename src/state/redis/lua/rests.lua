-- The streaks and rests of many names at once.
-- KEYS  streak, rest and quiet in turn
-- Gives, for each, { streak, number, whole ms, ms left, quiet ms left, after a trial 0/1 }.

local result = {}
for i = 1, #KEYS, 3 do
  local facts = redis.call('HMGET', KEYS[i], 'n', 'no', 'total', 'trial')
  table.insert(result, {
    tonumber(facts[1] or 0), tonumber(facts[2] or 0), facts[3] or '0',
    math.max(0, redis.call('PTTL', KEYS[i + 1])), math.max(0, redis.call('PTTL', KEYS[i + 2])),
    tonumber(facts[4] or 0),
  })
end
return result
