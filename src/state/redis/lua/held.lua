-- What is left of facts, in ms.
-- KEYS  the facts

local result = {}
for i, key in ipairs(KEYS) do result[i] = math.max(0, redis.call('PTTL', key)) end
return result
